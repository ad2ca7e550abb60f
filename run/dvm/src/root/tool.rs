//! Tools: which are connected, through which daemon, and what is cleaned up when they leave.
//!
//! The root keeps all of them, because a tool's name must be unique in the whole DVM and the same on every server that the tool
//! connects to. Which users may connect has already been decided by the daemon's server.

use std::collections::BTreeMap;

use phalanx_core::HostReply;
use phalanx_core::host::ToolRequest;
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::job::{JobVerdict, ToolProcess};
use crate::msg::{Control, Down, Pauser};
use crate::root::Root;
use crate::root::answer::Answer;
use crate::root::kind::Kind;
use crate::root::turn::Cx;
use crate::signals::SIGHUP;

#[derive(Debug, Default)]
pub(super) struct Tools {
    connected: BTreeMap<ProcId, Connected>,
    named: u64,
}

#[derive(Debug)]
struct Connected {
    /// The daemon to which it is connected.
    node: NodeId,
    process: ToolProcess,
}

impl Tools {
    /// The daemons that tools are connected to.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.connected.values().map(|connected| connected.node)
    }

    pub(super) fn process(&self, tool: &ProcId) -> Option<&ToolProcess> {
        self.connected.get(tool).map(|connected| &connected.process)
    }
}

impl Root {
    /// A tool has connected to the server of the daemon that asks. Without a name of its own it is given one.
    pub(super) fn admit_tool(&mut self, cx: &mut Cx<'_>, answer: Answer, request: &ToolRequest) {
        let admitted = match &request.claims {
            Some(proc) => self.check_claim(proc).map(|()| proc.clone()),
            None => self.name_tool(),
        };
        if let Ok(proc) = &admitted
            && !self.jobs.contains_key(&proc.nspace)
        {
            let connected = Connected { node: answer.origin(), process: process_of(request) };
            self.tools.connected.insert(proc.clone(), connected);
        }
        answer.give(cx, HostReply::ToolAdmitted(admitted));
    }

    /// A tool may be a process of a running job, or have a namespace that is not in use.
    fn check_claim(&self, proc: &ProcId) -> Result<(), Status> {
        let is_rank = |size: u32| proc.rank.0 < size;
        let taken = match self.jobs.get(&proc.nspace) {
            Some(job) => !is_rank(job.desc.size),
            None => self.tools.connected.contains_key(proc) || *proc.nspace.as_str() == *self.config.dvm,
        };
        if taken { Err(Status::ERR_EXISTS) } else { Ok(()) }
    }

    fn name_tool(&mut self) -> Result<ProcId, Status> {
        let dvm = self.config.dvm.clone();
        if self.tools.connected.len() >= MOST_TOOLS {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        loop {
            self.tools.named += 1;
            let name = format!("{dvm}-tool{}", self.tools.named);
            let proc = ProcId::new(&Nspace::new(&name).map_err(|_| Status::ERR_BAD_PARAM)?, Rank(0));
            // A tool may have claimed this very name.
            if !self.tools.connected.contains_key(&proc) {
                return Ok(proc);
            }
        }
    }

    /// A process outside of any job has finalized or lost its connection. Its publications and requests are dropped, and the
    /// jobs that it has started end unless they are to stay; its server ends its registrations.
    pub(super) fn on_tool_left(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if self.tools.connected.remove(proc).is_none() {
            return;
        }
        self.forget_unread_of(proc);
        self.dismiss(cx, Kind::is_of_askers, |asker| asker.by == *proc, Status::ERR_LOST_CONNECTION);
        let others = self.tools.connected.keys().any(|tool| tool.nspace == proc.nspace);
        self.forget_invitations_of_tool(cx, proc);
        self.withdraw_published_by(cx, proc);
        if !others {
            self.withdraw_published(cx, &proc.nspace);
        }
        for nspace in self.jobs_ending_with(proc) {
            self.end_job(cx, &nspace, JobVerdict::Cancelled { signal: SIGHUP });
        }
        self.resume_for(cx, proc);
    }

    /// Ends the pauses of a launcher that was stopped and will not go on.
    fn resume_for(&mut self, cx: &mut Cx<'_>, launcher: &ProcId) {
        let pauser = Pauser::Launcher(launcher.clone());
        let jobs = self.jobs.iter();
        let paused = jobs.filter_map(|(nspace, job)| Some((nspace.clone(), job.pauses.by(&pauser)?.clone())));
        for (nspace, ranks) in paused.collect::<Vec<_>>() {
            self.note_paused(cx, &nspace, &ranks, (Some(launcher), &pauser), Control::Resume);
            let Some(to) = self.desc(&nspace).map(|desc| desc.nodes_of(&ranks)) else { continue };
            let (ranks, pauser, action) = (Some(ranks), pauser.clone(), Control::Resume);
            cx.cast(to, Down::Control { nspace, ranks, action, pauser });
        }
    }

    /// A daemon is gone, and with it the tools that were connected to it.
    pub(super) fn on_tools_lost(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let gone = self.tools.connected.iter().filter(|(_, connected)| connected.node == node);
        let gone: Vec<ProcId> = gone.map(|(proc, _)| proc.clone()).collect();
        gone.iter().for_each(|proc| self.on_tool_left(cx, proc));
    }

    /// The daemon that a process's server belongs to. For tools, only the root knows it.
    pub(super) fn node_of(&self, proc: &ProcId) -> Option<NodeId> {
        match self.jobs.get(&proc.nspace) {
            Some(job) => job.desc.node_of(proc.rank),
            None => self.tools.connected.get(proc).map(|connected| connected.node),
        }
    }

    /// The daemons to which tools of this namespace are connected.
    pub(super) fn nodes_of_tools<'a>(&'a self, nspace: &'a Nspace) -> impl Iterator<Item = NodeId> + 'a {
        let tools = self.tools.connected.iter();
        tools.filter(|(proc, _)| proc.nspace == *nspace).map(|(_, connected)| connected.node)
    }

    pub(super) fn is_tool(&self, proc: &ProcId) -> bool {
        self.tools.connected.contains_key(proc)
    }
}

fn process_of(request: &ToolRequest) -> ToolProcess {
    let command = request.info.find(keys::CMD_LINE).and_then(Value::as_text);
    let command = command.map(|command| {
        let mut command = command.to_string_lossy();
        command.truncate(command.floor_char_boundary(LONGEST_COMMAND));
        command
    });
    // The kernel gives no pid over TCP, which tools of OpenPMIx use; then the tool's own statement serves.
    let stated = request.info.find(keys::PROC_PID).and_then(Value::as_u32);
    ToolProcess { uid: request.uid, pid: request.pid.or(stated), command }
}

/// More than any server has connections for.
const MOST_TOOLS: usize = 65_536;
/// Bytes of a tool's command line that are kept.
const LONGEST_COMMAND: usize = 200;

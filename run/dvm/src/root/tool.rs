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
use crate::job::ToolProcess;
use crate::root::answer::Answer;
use crate::root::jobs::Jobs;
use crate::root::turn::Cx;

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

    pub(super) fn node_of(&self, tool: &ProcId) -> Option<NodeId> {
        self.connected.get(tool).map(|connected| connected.node)
    }

    /// The daemons to which tools of this namespace are connected.
    pub(super) fn nodes_of<'a>(&'a self, nspace: &'a Nspace) -> impl Iterator<Item = NodeId> + 'a {
        let tools = self.connected.iter().filter(|(proc, _)| proc.nspace == *nspace);
        tools.map(|(_, connected)| connected.node)
    }

    /// The tools that are connected to this daemon.
    pub(super) fn at(&self, node: NodeId) -> Vec<ProcId> {
        let there = self.connected.iter().filter(|(_, connected)| connected.node == node);
        there.map(|(proc, _)| proc.clone()).collect()
    }

    /// The tool has finalized or lost its connection. Returns whether it was connected.
    pub(super) fn remove(&mut self, tool: &ProcId) -> bool {
        self.connected.remove(tool).is_some()
    }

    pub(super) fn process(&self, tool: &ProcId) -> Option<&ToolProcess> {
        self.connected.get(tool).map(|connected| &connected.process)
    }

    /// A tool has connected to the server of the daemon that asks. Without a name of its own it is given one. `dvm`: the name of the
    /// DVM.
    pub(super) fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        request: &ToolRequest,
        (jobs, dvm): (&Jobs, &str),
    ) {
        let admitted = match &request.claims {
            Some(proc) => self.check_claim(proc, jobs, dvm).map(|()| proc.clone()),
            None => self.name(dvm),
        };
        if let Ok(proc) = &admitted
            && !jobs.contains_key(&proc.nspace)
        {
            let connected = Connected { node: answer.origin(), process: process_of(request) };
            self.connected.insert(proc.clone(), connected);
        }
        answer.give(cx, HostReply::ToolAdmitted(admitted));
    }

    /// A tool may be a process of a running job, or have a namespace that is not in use.
    fn check_claim(&self, proc: &ProcId, jobs: &Jobs, dvm: &str) -> Result<(), Status> {
        let is_rank = |size: u32| proc.rank.0 < size;
        let taken = match jobs.get(&proc.nspace) {
            Some(job) => !is_rank(job.desc.size),
            None => self.connected.contains_key(proc) || proc.nspace.as_str() == dvm,
        };
        if taken { Err(Status::ERR_EXISTS) } else { Ok(()) }
    }

    fn name(&mut self, dvm: &str) -> Result<ProcId, Status> {
        if self.connected.len() >= MOST_TOOLS {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        loop {
            self.named += 1;
            let name = format!("{dvm}-tool{}", self.named);
            let proc = ProcId::new(&Nspace::new(&name).map_err(|_| Status::ERR_BAD_PARAM)?, Rank(0));
            // A tool may have claimed this very name.
            if !self.connected.contains_key(&proc) {
                return Ok(proc);
            }
        }
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

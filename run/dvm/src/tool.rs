//! Tools: who was let in, through which daemon, and what goes with each of them when it leaves.
//!
//! The root knows them all, because a tool's name must be unique in the whole DVM and stay what it is on every server
//! that the tool connects to. Which users may come at all, the server of the daemon has decided before.

use std::collections::BTreeMap;

use phalanx_core::HostReply;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId};

use crate::daemon::{Cx, Daemon};
use crate::id::NodeId;
use crate::job::JobVerdict;
use crate::msg::Up;

/// Root only.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    connected: BTreeMap<ProcId, NodeId>,
    named: u64,
}

impl Tools {
    /// The daemons that tools are connected to.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.connected.values().copied()
    }
}

impl Daemon {
    /// Root only: a tool has connected to the server of `origin`. Without a name of its own it is given one.
    pub(crate) fn admit_tool(
        &mut self,
        cx: &mut Cx<'_>,
        origin: NodeId,
        request: u64,
        claims: Option<&ProcId>,
    ) {
        let admitted = match claims {
            Some(proc) => self.check_claim(proc).map(|()| proc.clone()),
            None => self.name_tool(),
        };
        let Some(root) = &mut self.root else { return };
        if let Ok(proc) = &admitted
            && !root.jobs.contains_key(&proc.nspace)
        {
            root.tools.connected.insert(proc.clone(), origin);
        }
        self.answer(cx, origin, request, HostReply::ToolAdmitted(admitted));
    }

    /// A tool may be a process of a job that we run, or have a namespace that is nobody's.
    fn check_claim(&self, proc: &ProcId) -> Result<(), Status> {
        let Some(root) = &self.root else { return Err(Status::ERR_NOT_SUPPORTED) };
        let is_rank = |size: u32| proc.rank.0 < size;
        let taken = match root.jobs.get(&proc.nspace) {
            Some(job) => !is_rank(job.desc.size),
            None => root.tools.connected.contains_key(proc) || *proc.nspace.as_str() == *self.config.dvm,
        };
        if taken { Err(Status::ERR_EXISTS) } else { Ok(()) }
    }

    fn name_tool(&mut self) -> Result<ProcId, Status> {
        let dvm = self.config.dvm.clone();
        let Some(root) = &mut self.root else { return Err(Status::ERR_NOT_SUPPORTED) };
        if root.tools.connected.len() >= MOST_TOOLS {
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        loop {
            root.tools.named += 1;
            let name = format!("{dvm}-tool{}", root.tools.named);
            let proc = ProcId::new(&Nspace::new(&name).map_err(|_| Status::ERR_BAD_PARAM)?, Rank(0));
            // Somebody may have come with just this name.
            if !root.tools.connected.contains_key(&proc) {
                return Ok(proc);
            }
        }
    }

    /// Our server has said goodbye to a process. Those that no job of ours holds were tools.
    pub(crate) fn tell_of_tool(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.jobs.contains_key(&proc.nspace) {
            self.post(cx, Up::ToolLeft { proc: proc.clone() });
        }
    }

    /// Root only: a process that no job holds has finalized or lost its connection. What it published and what it waits
    /// for goes with it, and the jobs that it has started, unless they were to stay; its registrations end where they are, at
    /// its server.
    pub(crate) fn on_tool_left(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Some(root) = &mut self.root else { return };
        if root.tools.connected.remove(proc).is_none() {
            return;
        }
        self.forget_unread_of(proc);
        let Some(root) = &self.root else { return };
        let others = root.tools.connected.keys().any(|tool| tool.nspace == proc.nspace);
        self.withdraw_published_by(cx, proc);
        if !others {
            self.withdraw_published(cx, &proc.nspace);
        }
        for nspace in self.jobs_ending_with(proc) {
            self.end_job(cx, &nspace, JobVerdict::Cancelled { signal: SIGHUP });
        }
    }

    /// Root only: a daemon is gone, and the tools that were connected to it.
    pub(crate) fn on_tools_lost(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let Some(root) = &self.root else { return };
        let gone = root.tools.connected.iter().filter(|(_, at)| **at == node);
        let gone: Vec<ProcId> = gone.map(|(proc, _)| proc.clone()).collect();
        gone.iter().for_each(|proc| self.on_tool_left(cx, proc));
    }

    /// The daemon whose server a process is connected to. Of tools only the root knows it.
    pub(crate) fn node_of(&self, proc: &ProcId) -> Option<NodeId> {
        match self.jobs.get(&proc.nspace) {
            Some(job) => job.desc.node_of(proc.rank),
            None => self.root.as_ref()?.tools.connected.get(proc).copied(),
        }
    }

    /// Root only: the daemons to which tools of this namespace are connected.
    pub(crate) fn nodes_of_tools<'a>(&'a self, nspace: &'a Nspace) -> impl Iterator<Item = NodeId> + 'a {
        let tools = self.root.iter().flat_map(|root| &root.tools.connected);
        tools.filter(|(proc, _)| proc.nspace == *nspace).map(|(_, node)| *node)
    }

    /// Root only.
    pub(crate) fn is_tool(&self, proc: &ProcId) -> bool {
        self.root.as_ref().is_some_and(|root| root.tools.connected.contains_key(proc))
    }
}

/// As if the terminal of a job were gone.
const SIGHUP: i32 = 1;
/// More than any server has connections for.
const MOST_TOOLS: usize = 65_536;

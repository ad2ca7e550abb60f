//! Jobs that jobs have started: which tool runs all of them, and what becomes of them when their parent ends.
//!
//! Only the root knows. A job that a rank starts belongs to whoever runs the rank's job: he sees its output, and waits for its end.

use phalanx_spec::{IofChannel, keys};
use phalanx_wire::{InfoList, Nspace, ProcId, Value};

use crate::daemon::{Cx, Daemon};
use crate::id::NodeId;
use crate::job::{JobEnd, JobRequest, JobVerdict};

/// The tool that has started a job, or the job from which it descends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunBy {
    pub(crate) tool: ProcId,
    pub(crate) node: NodeId,
    /// What it wants to see.
    pub(crate) channels: IofChannel,
    /// The job is not to outlive it (`PMIX_NOHUP` was not said).
    pub(crate) ends_with_it: bool,
}

impl Daemon {
    /// Root only: who runs a job that is about to start, if that is not the user.
    pub(crate) fn run_by(&self, job: &JobRequest) -> Option<RunBy> {
        let parent = job.parent.as_ref()?;
        let of_tool = job.info.is_set(keys::REQUESTOR_IS_TOOL);
        match self.root.as_ref()?.jobs.get(&parent.nspace).filter(|_| !of_tool) {
            Some(parent) => parent.run_by.clone().filter(|by| self.is_tool(&by.tool)),
            None => Some(RunBy {
                tool: parent.clone(),
                node: self.node_of(parent)?,
                channels: job.forward.unwrap_or(IofChannel::ALL),
                ends_with_it: !job.info.is_set(keys::NOHUP),
            }),
        }
    }

    /// Root only: a job has ended. The jobs that it has started go on only if it has ended well, and those only that need not end with
    /// it (`PMIX_SPAWN_CHILD_SEP`, which is so unless it is said to be false).
    pub(crate) fn end_children(&mut self, cx: &mut Cx<'_>, end: &JobEnd) {
        let Some(root) = &self.root else { return };
        let well = end.verdict == JobVerdict::Success;
        let children = root.jobs.iter().filter(|(_, job)| !(well && job.is_separate));
        let children =
            children.filter(|(_, job)| job.desc.parent.as_ref().is_some_and(|p| p.nspace == end.nspace));
        let children: Vec<Nspace> = children.map(|(nspace, _)| nspace.clone()).collect();
        for child in children {
            self.end_job(cx, &child, JobVerdict::ParentEnded { parent: end.nspace.clone() });
        }
    }

    /// Root only: the jobs that end with a tool.
    pub(crate) fn jobs_ending_with(&self, tool: &ProcId) -> Vec<Nspace> {
        let jobs = self.root.iter().flat_map(|root| &root.jobs);
        let with =
            jobs.filter(|(_, job)| job.run_by.as_ref().is_some_and(|by| by.ends_with_it && by.tool == *tool));
        with.map(|(nspace, _)| nspace.clone()).collect()
    }
}

/// Whether the job may go on when its parent has ended well.
pub(crate) fn is_separate(job: &JobRequest) -> bool {
    job.info.find(keys::SPAWN_CHILD_SEP).is_none_or(Value::is_true)
}

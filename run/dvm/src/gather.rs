//! Operations to which many daemons contribute, as this DVM has them: who takes part in which, and what becomes of
//! the parts. What each operation *does* is in the file of its name.

use phalanx_core::Waiting;
use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use crate::daemon::{Cx, Daemon, ENOUGH};
use crate::msg::{OpId, Part, Subject};
use crate::ranges::Ranges;

impl Daemon {
    /// This daemon's own part.
    pub(crate) fn contribute(&mut self, cx: &mut Cx<'_>, op: OpId, part: Part) {
        if let Some(among) = self.participants(&op) {
            self.overlay.join(cx.now, op, &among, part);
        }
    }

    /// The daemons that contribute to an operation.
    pub(crate) fn participants(&self, op: &OpId) -> Option<Ranges> {
        self.overlay.participants(op).cloned().or_else(|| self.daemons_of(op))
    }

    /// `None`: the operation is about a job that is forgotten, or about processes that have failed.
    fn daemons_of(&self, op: &OpId) -> Option<Ranges> {
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => Some(self.jobs.get(nspace)?.desc.nodes.clone()),
            OpId::Survey(survey) => match &survey.of {
                Subject::Procs { nspace, .. } => Some(self.jobs.get(nspace)?.desc.nodes.clone()),
                Subject::Waits | Subject::Nodes => Some(Ranges::first(self.overlay.size())),
            },
            OpId::Collective(collective) => {
                let mut nodes = Ranges::new();
                for members in collective.members.iter() {
                    let job =
                        self.jobs.get(&members.nspace).filter(|job| !job.dead.intersects(&members.ranks))?;
                    nodes.add(&job.desc.nodes_of(&members.ranks));
                }
                Some(nodes)
            }
        }
    }

    pub(crate) fn explain_gathers(&self) -> Vec<Waiting> {
        let waiting = |(op, since, awaited): (&OpId, _, Ranges)| Waiting {
            operation: op.name(),
            subject: op.subject(),
            asked_by: Vec::new(),
            missing: self.members_on(op, &awaited),
            since,
            deadline: None,
            unblocked_by: "the named processes' daemons sending their part, or being declared lost",
        };
        self.overlay.open_operations().map(waiting).collect()
    }

    /// The members of an operation that live on `nodes`; no more than people read.
    fn members_on(&self, op: &OpId, nodes: &Ranges) -> Vec<ProcId> {
        let on = |nspace: &Nspace, ranks: Option<&Ranges>| -> Vec<ProcId> {
            let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
            let here = |rank: &u32| nodes.contains(job.desc.places.node.get(*rank));
            let all = ranks.cloned().unwrap_or_else(|| job.desc.ranks());
            all.iter().filter(here).take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect()
        };
        match op {
            OpId::Started(nspace) | OpId::Ended(nspace) => on(nspace, None),
            OpId::Survey(_) => Vec::new(),
            OpId::Collective(c) => {
                c.members.iter().flat_map(|m| on(&m.nspace, Some(&m.ranks))).take(ENOUGH).collect()
            }
        }
    }
}

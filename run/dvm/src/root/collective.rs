//! Operations to which many daemons contribute: what becomes of the parts when all of them are here.

use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::Blob;

use crate::msg::{Agreed, Collective, Down, Kind, OpId, Outcome, Part, each};
use crate::ranges::Ranges;
use crate::root::{Cx, Root};

/// An operation to which all have contributed, and who is told how it ends.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    pub(super) op: Arc<OpId>,
    pub(super) to: Ranges,
}

impl Root {
    /// Everybody's part is here, but for daemons that were lost.
    pub(super) fn gathered(
        &mut self,
        cx: &mut Cx<'_>,
        op: Arc<OpId>,
        among: Ranges,
        missing: Ranges,
        part: Part,
    ) {
        match (&*op, part) {
            (OpId::Started(nspace), part) => {
                let nspace = nspace.clone();
                cx.cast(among, Down::Done { op, outcome: Ok(Agreed::Nothing) });
                self.job_started(cx, &nspace, part);
            }
            (OpId::Ended(nspace), part) => {
                let nspace = nspace.clone();
                cx.cast(among, Down::Done { op, outcome: Ok(Agreed::Nothing) });
                self.ended.push_back((nspace, part));
            }
            (OpId::Task(task), part) => {
                cx.cast(among, Down::Done { op: op.clone(), outcome: Ok(Agreed::Nothing) });
                self.task_done(cx, task, &missing, part);
            }
            (OpId::Collective(collective), part) => {
                let meeting = Meeting { op: op.clone(), to: among };
                let outcome = match missing.is_empty() {
                    true => self.outcome_of(cx, meeting.clone(), collective, part),
                    false => Some(Err(Status::ERR_LOST_CONNECTION)),
                };
                if let Some(outcome) = outcome {
                    cx.cast(meeting.to, Down::Done { op: meeting.op, outcome });
                }
            }
        }
    }

    /// The result, from everybody's parts. `None`: it comes later.
    pub(super) fn outcome_of(
        &mut self,
        cx: &mut Cx<'_>,
        meeting: Meeting,
        collective: &Collective,
        part: Part,
    ) -> Option<Outcome> {
        Some(match (collective.kind, part) {
            (Kind::GroupConstruct, Part::Failed(status)) => {
                self.give_up_group(cx, collective, status);
                Err(status)
            }
            (_, Part::Failed(status)) => Err(status),
            (Kind::Fence, Part::Modex(blobs)) => Ok(Agreed::Modex(join(&blobs))),
            (Kind::Fence, _) => Ok(Agreed::Modex(Blob::default())),
            (kind @ (Kind::Connect | Kind::Disconnect | Kind::GroupDestruct), _) => {
                match kind {
                    Kind::Connect => self.relations.connect(&collective.members),
                    Kind::Disconnect => self.relations.disconnect(&collective.members),
                    _ => {}
                }
                Ok(Agreed::Nothing)
            }
            (Kind::GroupConstruct, part) => {
                let members = each(&collective.members).collect();
                return self.form_group(cx, meeting, collective, members, part);
            }
        })
    }
}

fn join(blobs: &[Blob]) -> Blob {
    let mut all = Vec::with_capacity(blobs.iter().map(Blob::len).sum());
    blobs.iter().for_each(|blob| all.extend_from_slice(blob.as_bytes()));
    Blob::from(all)
}

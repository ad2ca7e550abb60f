//! Groups: what members contribute is collected, and the root gives the group its context id.

use phalanx_core::host::GroupFormed;
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Info, InfoList, ProcId};

use crate::daemon::Daemon;
use crate::gather::{Collective, Outcome, Part, Settled};

pub(crate) const ATTRIBUTES: &[&str] =
    &[keys::GROUP_ASSIGN_CONTEXT_ID, keys::GROUP_INFO, keys::GROUP_INFO_ARRAY];

impl Daemon {
    /// Root only.
    pub(crate) fn form_group(&mut self, collective: &Collective, part: Part) -> Outcome {
        let infos = match part {
            Part::Infos(infos) => infos,
            _ => Vec::new(),
        };
        let Some(root) = &mut self.root else { return Err(Status::ERR_NOT_SUPPORTED) };
        let context_id = infos.is_set(keys::GROUP_ASSIGN_CONTEXT_ID).then(|| {
            root.last_context += 1;
            root.last_context
        });
        let members = collective.members.iter();
        let members =
            members.flat_map(|m| m.ranks.iter().map(|rank| ProcId::new(&m.nspace, Rank(rank)))).collect();
        let contributed = |info: &Info| info.key == keys::GROUP_INFO || info.key == keys::GROUP_INFO_ARRAY;
        let info = infos.into_iter().filter(contributed).collect();
        Ok(Settled::Group(GroupFormed { members, context_id, info }))
    }
}

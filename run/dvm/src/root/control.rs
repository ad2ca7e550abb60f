//! Job control: which daemons do what to which processes.

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{Info, ProcId};

use crate::id::NodeId;
use crate::msg::{Control, Down, Members, Orders};
use crate::root::{Cx, Root};

impl Root {
    /// What a process wants done to processes. Answered here or later.
    pub(super) fn job_control(
        &mut self,
        cx: &mut Cx<'_>,
        request: (NodeId, u64),
        from: &ProcId,
        targets: &[ProcId],
        directives: &[Info],
    ) {
        let read = Orders::read(directives);
        // As OpenPMIx's tools ask for it: nobody in particular is the whole DVM.
        let ends =
            |orders: &Orders| orders.actions.iter().any(|action| matches!(action, Control::Terminate { .. }));
        if targets.is_empty() && self.is_tool(from) && read.as_ref().is_ok_and(ends) {
            cx.answer(request.0, request.1, HostReply::Infos(Status::SUCCESS, Vec::new()));
            return self.on_shutdown(cx);
        }
        let read = read
            .and_then(|orders| Ok((orders, Members::targets(from, targets, |nspace| self.desc(nspace))?)));
        let (orders, members) = match read {
            Ok(read) => read,
            Err(status) => return cx.refuse(request.0, request.1, status),
        };
        for Members { nspace, ranks } in members.iter() {
            let Some(job) = self.jobs.get(nspace) else { continue };
            let to = job.desc.nodes_of(ranks);
            for action in &orders.actions {
                if let Some(signal) = action.deadly() {
                    self.note_killed(nspace, ranks, from, signal);
                }
                let control =
                    Down::Control { nspace: nspace.clone(), ranks: Some(ranks.clone()), action: *action };
                cx.cast(to.clone(), control);
            }
        }
        match orders.cleanup {
            Some(cleanup) => self.spread_cleanup(cx, request, members, cleanup),
            None => cx.answer(request.0, request.1, HostReply::Infos(Status::SUCCESS, Vec::new())),
        }
    }
}

//! Log requests of processes. What goes to a terminal reaches the user; channels that we do not have are refused.

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, ProcId};

use crate::daemon::{Cx, Daemon};
use crate::effect::Report;
use crate::event::as_text;

impl Daemon {
    /// Root only.
    pub(crate) fn log(
        &mut self,
        cx: &mut Cx<'_>,
        from: &ProcId,
        data: &[Info],
        directives: &[Info],
    ) -> Status {
        let is_channel = |info: &&Info| info.key == keys::LOG_STDERR || info.key == keys::LOG_STDOUT;
        let (mut done, mut refused) = (0, 0);
        for item in data {
            if is_channel(&item) {
                done += 1;
                let text = format!("{from}: {}", as_text(&item.value).trim_end());
                cx.report(Report::Note { nspace: Some(from.nspace.clone()), text });
                if directives.is_set(keys::LOG_ONCE) {
                    return Status::SUCCESS;
                }
            } else {
                refused += 1;
            }
        }
        match (done, refused) {
            (_, 0) => Status::SUCCESS,
            (0, _) => Status::ERR_NOT_SUPPORTED,
            (_, _) => Status::ERR_PARTIAL_SUCCESS,
        }
    }
}

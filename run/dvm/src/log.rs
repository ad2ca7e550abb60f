//! Log requests of processes. What goes to a terminal reaches the user; channels that we do not have are refused.

use phalanx_spec::{IofChannel, Status, keys};
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
        let channel = |info: &Info| match info.key.as_str() {
            keys::LOG_STDERR => Some(IofChannel::STDERR),
            keys::LOG_STDOUT => Some(IofChannel::STDOUT),
            _ => None,
        };
        let (mut done, mut refused) = (0, 0);
        for item in data {
            if let Some(channel) = channel(item) {
                done += 1;
                let mut text = as_text(&item.value).trim_end_matches(['\0', '\n']).to_owned().into_bytes();
                text.push(b'\n');
                cx.report(Report::Logged { proc: from.clone(), channel, text });
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

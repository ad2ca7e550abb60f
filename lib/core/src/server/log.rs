//! Log: hand data to one of the host's log channels.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::{Info, Value};

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{Asked, HostOp};

pub(super) fn on_log(cx: &mut Cx<'_>, from: Asker, mut log: Log) {
    if log.data.is_empty() {
        return cx.answer(from, Status::ERR_BAD_PARAM);
    }
    if log.timestamp > 0 {
        log.directives.push(Info::new(keys::LOG_TIMESTAMP, Value::Time(log.timestamp)));
    }
    log.directives.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::Log(Asked { from: proc.clone(), request: log });
    cx.ask(Some(&proc), op, Then::Answer(from));
}

//! Log: hand something to one of the host's log channels.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::{Info, Value};

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{HostOp, LogRequest};

pub(super) fn on_log(cx: &mut Cx<'_>, from: Asker, log: Log) {
    if log.data.is_empty() {
        return cx.answer(&from, Status::ERR_BAD_PARAM);
    }
    let mut directives = log.directives;
    if log.timestamp > 0 {
        directives.push(Info::new(keys::LOG_TIMESTAMP, Value::Time(log.timestamp)));
    }
    directives.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::Log(LogRequest { from: proc.clone(), data: log.data, directives });
    cx.ask(Some(&proc), op, Then::Answer(from));
}

//! Events that are passed on to the clients here.

use std::time::Duration;

use phalanx_core::Event;
use phalanx_core::server::ServerCall;
use phalanx_wire::Nspace;

use crate::local::calls::Call;
use crate::local::turn::Cx;

pub(super) fn pass_on(cx: &mut Cx<'_>, event: &Event) {
    cx.call(ServerCall::Notify(event.clone()), Call::Notice("passing on an event"));
}

pub(super) fn announce(
    cx: &mut Cx<'_>,
    event: &Event,
    number: u64,
    (concerned, ago): (Option<&[Nspace]>, Option<Duration>),
) {
    let (event, concerned) = (event.clone(), concerned.map(<[_]>::to_vec));
    let call = ServerCall::Announce { event, number, concerned, ago };
    cx.call(call, Call::Notice("passing on what happened to a job"));
}

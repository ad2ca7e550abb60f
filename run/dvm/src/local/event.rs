//! Events that are passed on to the clients here.

use std::time::Duration;

use phalanx_core::Event;
use phalanx_core::server::ServerCall;
use phalanx_wire::Nspace;

use crate::id::NodeId;
use crate::local::{Call, Cx, Local};

impl Local {
    pub(super) fn deliver_event(&mut self, cx: &mut Cx<'_>, event: &Event, except: Option<NodeId>) {
        if except != Some(self.me) {
            self.call(cx, ServerCall::Notify(event.clone()), Call::Told("passing on an event"));
        }
    }

    pub(super) fn announce(
        &mut self,
        cx: &mut Cx<'_>,
        event: &Event,
        concerned: Option<&[Nspace]>,
        ago: Option<Duration>,
    ) {
        let call =
            ServerCall::Announce { event: event.clone(), concerned: concerned.map(<[_]>::to_vec), ago };
        self.call(cx, call, Call::Told("passing on what happened to a job"));
    }
}

//! Allocate: asks the scheduler for more, for less, or for longer.

use phalanx_spec::AllocDirective;
use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::allocate::Allocate;

use super::pending::Awaited;
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_allocate(
        &mut self,
        now: Time,
        id: CallId,
        directive: AllocDirective,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Infos { operation: "allocation request", subject: directive.to_string() };
        let request = Request::Allocate(Allocate { directive, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }
}

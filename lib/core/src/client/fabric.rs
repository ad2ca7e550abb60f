//! Fabrics: their description, from the host.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::fabric::{Register, Update};

use super::pending::Awaited;
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_fabric_register(&mut self, now: Time, id: CallId, directives: Vec<Info>, out: &mut Out) {
        let awaited = Awaited::Infos { operation: "fabric registration", subject: String::new() };
        let request = Request::FabricRegister(Register { directives: directives.clone() });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }

    pub(super) fn on_fabric_update(&mut self, now: Time, id: CallId, index: u64, out: &mut Out) {
        let awaited = Awaited::Infos { operation: "fabric update", subject: index.to_string() };
        self.ask(now, Some(id), &Request::FabricUpdate(Update { index }), awaited, &[], out);
    }
}

//! The host's side of a PMIx server: every upcall that this runtime carries out, and where it goes.
//!
//! This is the one place that says what is supported; whatever is not named here is refused with
//! `PMIX_ERR_NOT_SUPPORTED`.

use phalanx_core::{HostCallId, HostOp, HostReply};
use phalanx_spec::Status;

use crate::daemon::{Cx, Daemon};
use crate::gather::{Kind, Part};
use crate::msg::{NodeId, Up};
use crate::procs::Pmix;

impl Daemon {
    /// An upcall of our own server.
    pub(crate) fn on_host_call(&mut self, cx: &mut Cx<'_>, id: HostCallId, op: HostOp) {
        let done = |cx: &mut Cx<'_>| cx.reply(id, HostReply::Done(Status::SUCCESS));
        match op {
            HostOp::ClientConnected { proc } => {
                self.on_client(cx, &proc, Pmix::Connected);
                done(cx);
            }
            HostOp::ClientFinalized { proc } => {
                self.on_client(cx, &proc, Pmix::Finalized);
                self.tell_of_tool(cx, &proc);
                done(cx);
            }
            HostOp::ClientLost { proc } => {
                self.on_client(cx, &proc, Pmix::Lost);
                self.tell_of_tool(cx, &proc);
                self.acknowledge_loss(cx, id, proc);
            }
            HostOp::Abort { from, status, message, procs } => {
                self.post(cx, Up::Abort { from, status, message, procs });
                done(cx);
            }
            HostOp::Fence { procs, data, info } => self.on_fence(cx, id, &procs, &info, data),
            HostOp::Connect { procs, info } => {
                self.join_collective(cx, id, Kind::Connect, &procs, &info, None, Part::Nothing);
            }
            HostOp::Disconnect { procs, info } => {
                self.join_collective(cx, id, Kind::Disconnect, &procs, &info, None, Part::Nothing);
            }
            HostOp::GroupConstruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(
                    cx,
                    id,
                    Kind::GroupConstruct,
                    &procs,
                    &info,
                    name,
                    Part::Infos(info.clone()),
                );
            }
            HostOp::GroupDestruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(cx, id, Kind::GroupDestruct, &procs, &info, name, Part::Nothing);
            }
            HostOp::DirectModex { proc, info } => self.on_direct_modex(cx, id, proc, &info),
            op @ (HostOp::Publish { .. }
            | HostOp::Lookup { .. }
            | HostOp::Unpublish { .. }
            | HostOp::Spawn { .. }
            | HostOp::RegisterEvents { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::Notify { .. }
            | HostOp::Query { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::Log { .. }) => self.ask_root(cx, id, op),
            HostOp::JobControl { from, targets, directives } => {
                self.on_job_control(cx, id, from, targets, directives);
            }
            HostOp::Allocate { .. }
            | HostOp::SessionControl { .. }
            | HostOp::Monitor { .. }
            | HostOp::GetCredential { .. }
            | HostOp::ValidateCredential { .. }
            | HostOp::IofPull { .. }
            | HostOp::IofStop { .. }
            | HostOp::PushStdin { .. }
            | HostOp::FabricRegister { .. }
            | HostOp::FabricUpdate { .. } => cx.reply(id, HostReply::Done(Status::ERR_NOT_SUPPORTED)),
        }
    }

    /// Root only: an upcall that only the root can answer.
    pub(crate) fn on_root_call(&mut self, cx: &mut Cx<'_>, origin: NodeId, request: u64, op: &HostOp) {
        match op {
            HostOp::Publish { from, uid, data, range, persistence, info } => {
                let status = self.publish(cx, from, *uid, data, *range, *persistence, info);
                self.refuse(cx, origin, request, status);
            }
            HostOp::Lookup { from, uid, keys, range, info } => {
                self.lookup(cx, origin, request, from, *uid, keys, *range, info);
            }
            HostOp::Unpublish { from, uid, keys, range, info: _ } => {
                let status = self.unpublish(from, *uid, keys, *range);
                self.refuse(cx, origin, request, status);
            }
            HostOp::Spawn { from, job, apps } => self.spawn(cx, origin, request, from, job, apps),
            HostOp::RegisterEvents { codes, info: _ } => {
                self.register_events(origin, codes);
                self.refuse(cx, origin, request, Status::SUCCESS);
            }
            HostOp::DeregisterEvents { codes } => {
                self.deregister_events(origin, codes);
                self.refuse(cx, origin, request, Status::SUCCESS);
            }
            HostOp::Notify { event } => {
                self.notify(cx, origin, event);
                self.refuse(cx, origin, request, Status::SUCCESS);
            }
            HostOp::Query { from, queries } => {
                let reply = self.query(from, queries);
                self.answer(cx, origin, request, reply);
            }
            HostOp::ToolConnected { claims, .. } => self.admit_tool(cx, origin, request, claims.as_ref()),
            HostOp::Log { from, data, directives } => {
                let status = self.log(cx, from, data, directives);
                self.refuse(cx, origin, request, status);
            }
            HostOp::JobControl { from, targets, directives } => {
                self.job_control(cx, (origin, request), from, targets, directives);
            }
            _ => self.refuse(cx, origin, request, Status::ERR_NOT_SUPPORTED),
        }
    }
}

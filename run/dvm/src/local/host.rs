//! The host's side of our PMIx server: every upcall that this runtime carries out, and where it goes.
//!
//! Whatever is not named here is refused with `PMIX_ERR_NOT_SUPPORTED`.

use phalanx_core::host::LOST_MEMBERS;
use phalanx_core::{HostCall, HostOp, HostReply};
use phalanx_spec::Status;
use phalanx_wire::InfoList;

use crate::local::procs::Pmix;
use crate::local::{Cx, Local};
use crate::msg::{GroupPart, Kind, Part, Up, procs as procs_in};

impl Local {
    pub(super) fn on_upcall(&mut self, cx: &mut Cx<'_>, call: HostCall, op: HostOp) {
        let done = |cx: &mut Cx<'_>, call| cx.reply(call, HostReply::Done(Status::SUCCESS));
        match op {
            HostOp::ClientConnected { proc } => {
                self.on_client(cx, &proc, Pmix::Connected);
                done(cx, call);
            }
            HostOp::ClientFinalized { proc, others: true } => {
                self.on_client(cx, &proc, Pmix::Leaving);
                done(cx, call);
            }
            HostOp::ClientFinalized { proc, others: false } => {
                self.on_client(cx, &proc, Pmix::Finalized);
                self.tell_of_tool(cx, &proc);
                done(cx, call);
            }
            HostOp::ClientLost { proc, cut_off } => {
                if let Some(why) = cut_off {
                    self.tell_cut_off(cx, &proc, &why);
                }
                self.on_client(cx, &proc, Pmix::Lost);
                self.tell_of_tool(cx, &proc);
                self.acknowledge_loss(cx, call, proc);
            }
            HostOp::Abort { from, status, message, procs } => {
                cx.post(Up::Abort { from, status, message, procs });
                done(cx, call);
            }
            HostOp::Fence { procs, data, info } => self.on_fence(cx, call, &procs, &info, data),
            HostOp::Connect { procs, info } => {
                self.join_collective(cx, call, Kind::Connect, &procs, &info, None, Part::Nothing);
            }
            HostOp::Disconnect { procs, info } => {
                self.join_collective(cx, call, Kind::Disconnect, &procs, &info, None, Part::Nothing);
            }
            HostOp::GroupConstruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(
                    cx,
                    call,
                    Kind::GroupConstruct,
                    &procs,
                    &info,
                    name,
                    Part::Group(GroupPart {
                        lost: procs_in(info.find(LOST_MEMBERS)).collect(),
                        silent: Vec::new(),
                        info: info.clone(),
                    }),
                );
            }
            HostOp::GroupDestruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(cx, call, Kind::GroupDestruct, &procs, &info, name, Part::Nothing);
            }
            HostOp::DirectModex { proc, info } => self.on_direct_modex(cx, call, proc, &info),
            op @ (HostOp::Publish { .. }
            | HostOp::Lookup { .. }
            | HostOp::Unpublish { .. }
            | HostOp::Spawn { .. }
            | HostOp::RegisterEvents { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::Notify { .. }
            | HostOp::Query { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::IofPull { .. }
            | HostOp::IofStop { .. }
            | HostOp::PushStdin { .. }
            | HostOp::GroupAssemble { .. }
            | HostOp::Log { .. }) => self.ask_root(cx, call, op),
            HostOp::JobControl { from, targets, directives } => {
                self.on_job_control(cx, call, from, targets, directives);
            }
            HostOp::Allocate { .. }
            | HostOp::ResourceBlock { .. }
            | HostOp::SessionControl { .. }
            | HostOp::Monitor { .. }
            | HostOp::GetCredential { .. }
            | HostOp::ValidateCredential { .. }
            | HostOp::FabricRegister { .. }
            | HostOp::FabricUpdate { .. } => cx.reply(call, HostReply::Done(Status::ERR_NOT_SUPPORTED)),
        }
    }
}

//! The host's side of our PMIx server: the upcalls that are handled here. The root answers all others.

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, ConnectRequest, DirectModexRequest, FenceRequest,
    GroupRequest, LOST_MEMBERS, OverdueCall,
};
use phalanx_core::{HostCall, HostOp, HostReply};
use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::{Info, InfoList, ProcId};

use crate::local::Tables;
use crate::local::procs::Pmix;
use crate::local::turn::Cx;
use crate::msg::{GroupPart, Kind, Part, Up, procs as procs_in};

impl Tables {
    pub(super) fn on_upcall(&mut self, cx: &mut Cx<'_>, call: HostCall, op: HostOp) {
        let done = |cx: &mut Cx<'_>, call| cx.reply(call, HostReply::Done(Status::SUCCESS));
        match op {
            HostOp::ClientConnected(proc) => {
                self.on_client(cx, &proc, Pmix::Connected);
                done(cx, call);
            }
            HostOp::ClientFinalized(ClientFinalized { proc, others: true }) => {
                self.on_client(cx, &proc, Pmix::Leaving);
                done(cx, call);
            }
            HostOp::ClientFinalized(ClientFinalized { proc, others: false }) => {
                self.on_client(cx, &proc, Pmix::Finalized);
                self.tell_of_tool(cx, &proc);
                done(cx, call);
            }
            HostOp::ClientLost(ClientLost { proc, cut_off }) => {
                if let Some(why) = cut_off {
                    self.tell_cut_off(cx, &proc, &why);
                }
                self.on_client(cx, &proc, Pmix::Lost);
                self.tell_of_tool(cx, &proc);
                self.acknowledge_loss(cx, call, proc);
            }
            HostOp::Abort(AbortRequest { from, status, message, procs }) => {
                cx.post(Up::Abort { from, status, message, procs });
                done(cx, call);
            }
            HostOp::Fence(FenceRequest { procs, data, info }) => self.on_fence(cx, call, &procs, &info, data),
            HostOp::Connect(ConnectRequest { procs, info }) => {
                self.join_collective(cx, call, Kind::Connect, &procs, &info, None, Part::Nothing);
            }
            HostOp::Disconnect(ConnectRequest { procs, info }) => {
                self.join_collective(cx, call, Kind::Disconnect, &procs, &info, None, Part::Nothing);
            }
            HostOp::GroupConstruct(GroupRequest { from: None, id: name, procs, info }) => {
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
            HostOp::GroupDestruct(GroupRequest { from: _, id: name, procs, info }) => {
                let name = Some(name.into());
                let watched = info.is_set(keys::GROUP_NOTIFY_TERMINATION);
                let watched = watched.then(|| Info::new(keys::GROUP_NOTIFY_TERMINATION, true));
                let part = Part::Group(GroupPart {
                    lost: procs_in(info.find(LOST_MEMBERS)).collect(),
                    silent: Vec::new(),
                    info: watched.into_iter().collect(),
                });
                self.join_collective(cx, call, Kind::GroupDestruct, &procs, &info, name, part);
            }
            HostOp::Overdue(OverdueCall { call: overdue }) => self.on_overdue(cx, call, overdue),
            HostOp::DirectModex(DirectModexRequest { proc, info }) => {
                self.on_direct_modex(cx, call, proc, &info)
            }
            HostOp::Asked(Asked { from, request: HostRequest::JobControl(request) }) => {
                self.on_job_control(cx, call, Asked { from, request });
            }
            op => self.requests.hand_up(cx, call, op),
        }
    }

    /// Our server has dropped a process. If it belongs to none of our jobs, it was a tool.
    fn tell_of_tool(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.jobs.contains_key(&proc.nspace) {
            cx.post(Up::ToolLeft { proc: proc.clone() });
        }
    }
}

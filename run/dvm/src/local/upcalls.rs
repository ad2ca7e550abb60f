//! The host's side of our PMIx server: the upcalls that are handled here. The root answers all others.

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, CollectiveKind, CommitRefused, ConnectRequest,
    FenceRequest, GroupRequest, LOST_MEMBERS, MemberMissing, OverdueCall,
};
use phalanx_core::{HostCall, HostOp, HostReply};
use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::{Info, InfoList, ProcId};

use crate::local::Tables;
use crate::local::client;
use crate::local::control;
use crate::local::fence;
use crate::local::proc::Pmix;
use crate::local::turn::Cx;
use crate::msg::{GroupPart, Part, Up, procs as procs_in};

impl Tables {
    pub(super) fn on_upcall(&mut self, cx: &mut Cx<'_>, call: HostCall, op: HostOp) {
        let done = |cx: &mut Cx<'_>, call| cx.reply(call, HostReply::Done(Status::SUCCESS));
        match op {
            HostOp::ClientConnected(proc) => {
                self.client_is(cx, &proc, Pmix::Connected);
                done(cx, call);
            }
            HostOp::ClientFinalized(ClientFinalized { proc, others: true }) => {
                self.client_is(cx, &proc, Pmix::Leaving);
                done(cx, call);
            }
            HostOp::ClientFinalized(ClientFinalized { proc, others: false }) => {
                self.client_is(cx, &proc, Pmix::Finalized);
                self.tell_of_tool(cx, &proc);
                done(cx, call);
            }
            HostOp::ClientLost(ClientLost { proc, cut_off }) => match self.jobs.get_mut(&proc.nspace) {
                Some(job) => {
                    client::lost(cx, job, proc.rank, (call, cut_off));
                    self.progress(cx, &proc.nspace);
                }
                None => {
                    self.tell_of_tool(cx, &proc);
                    done(cx, call);
                }
            },
            HostOp::ClientRefused(refused) => {
                if let Some(job) = self.jobs.get_mut(&refused.proc.nspace) {
                    client::refused(cx, job, &refused);
                }
                done(cx, call);
            }
            HostOp::CommitRefused(CommitRefused { proc, why }) => {
                if let Some(job) = self.jobs.get_mut(&proc.nspace) {
                    client::commit_refused(cx, job, proc.rank, &why);
                }
                done(cx, call);
            }
            HostOp::MemberMissing(MemberMissing { proc, kind }) => {
                fence::tell_missing(cx, &self.jobs, &proc, kind);
                done(cx, call);
            }
            HostOp::Abort(AbortRequest { from, status, message, procs }) => {
                cx.post(Up::Abort { from, status, message, procs });
                done(cx, call);
            }
            HostOp::Fence(FenceRequest { procs, data, info }) => {
                self.rounds.fence(cx, &self.jobs, call, &procs, &info, data);
            }
            HostOp::Connect(ConnectRequest { procs, info }) => {
                self.rounds.join(
                    cx,
                    &self.jobs,
                    call,
                    CollectiveKind::Connect,
                    &procs,
                    &info,
                    None,
                    Part::Nothing,
                );
            }
            HostOp::Disconnect(ConnectRequest { procs, info }) => {
                self.rounds.join(
                    cx,
                    &self.jobs,
                    call,
                    CollectiveKind::Disconnect,
                    &procs,
                    &info,
                    None,
                    Part::Nothing,
                );
            }
            HostOp::GroupConstruct(GroupRequest { from: None, id: name, procs, info }) => {
                let name = Some(name.into());
                self.rounds.join(
                    cx,
                    &self.jobs,
                    call,
                    CollectiveKind::GroupConstruct,
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
                self.rounds.join(
                    cx,
                    &self.jobs,
                    call,
                    CollectiveKind::GroupDestruct,
                    &procs,
                    &info,
                    name,
                    part,
                );
            }
            HostOp::Overdue(OverdueCall { call: overdue }) => self.rounds.on_overdue(cx, call, overdue),
            HostOp::DirectModex(request) => {
                let Tables { jobs, table, lost, modexes, .. } = self;
                modexes.on_request(cx, (jobs, table, lost), call, request);
            }
            HostOp::Asked(Asked { from, request: HostRequest::JobControl(request) }) => {
                let tables = (&mut self.jobs, &mut self.requests);
                control::on_request(cx, tables, call, Asked { from, request });
            }
            op => self.requests.hand_up(cx, call, op),
        }
    }

    fn client_is(&mut self, cx: &mut Cx<'_>, proc: &ProcId, pmix: Pmix) {
        self.in_job(cx, &proc.nspace, |cx, job| client::is_now(cx, job, proc.rank, pmix));
    }

    /// Our server has dropped a process. If it belongs to none of our jobs, it was a tool.
    fn tell_of_tool(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.jobs.contains_key(&proc.nspace) {
            cx.post(Up::ToolLeft { proc: proc.clone() });
        }
    }
}

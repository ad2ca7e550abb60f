//! Which verb a request is for, and what its outcome means for the others.
//!
//! A commit returns what it has changed, and the gets look again here; collectives that are [`Due`] go to fence, connect or group.

use phalanx_spec::{Status, keys};
use phalanx_wire::ProcId;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::cmd::event::Notify;
use phalanx_wire::cmd::get::Get;
use phalanx_wire::cmd::group::Construct;

use super::collective::Due;
use super::commit::Change;
use super::fence::Fences;
use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use super::{
    Tables, abort, commit, connect, event, fence, forward, group, job_data, log, publish, query, resolve,
    spawn,
};
use crate::host::{CollectiveKind as Kind, HostOp, MemberMissing, OverdueCall};

impl Tables {
    pub(super) fn on_request(&mut self, cx: &mut Cx<'_>, from: Asker, request: Request) {
        match request {
            Request::JobData | Request::JobDataFallback { .. } => {
                job_data::on_job_data(cx, &self.known.describer, from);
            }
            Request::Abort(r) => abort::on_abort(cx, from, r),
            Request::Commit(r) => {
                let proc = from.proc.clone();
                let change = commit::on_commit(cx, from, r);
                self.on_change(cx, &proc, change);
            }
            Request::Fence(r) => {
                fence::on_fence(cx, &mut self.collectives, from, r);
                self.do_what_is_due(cx);
            }
            Request::Get(r) => self.on_get(cx, from, r),
            Request::RefreshCache(r) => self.gets.on_refresh_cache(cx, &self.known, from, &r),
            Request::Publish(r) => publish::on_publish(cx, from, r),
            Request::Lookup(r) => publish::on_lookup(cx, from, r),
            Request::Unpublish(r) => publish::on_unpublish(cx, from, r),
            Request::Spawn(r) => spawn::on_spawn(cx, from, r),
            Request::Connect(r) => self.on_connect(cx, from, r),
            Request::Disconnect(r) => {
                connect::on_disconnect(cx, &mut self.collectives, from, r);
                self.do_what_is_due(cx);
            }
            Request::Notify(r) => self.on_notify(cx, from, r),
            Request::RegisterEvents(r) => self.events.on_register(cx, from, r),
            Request::Query(r) => {
                let sources = query::Sources {
                    describer: &self.known.describer,
                    psets: &self.psets,
                    groups: &self.groups,
                    host: &self.host_attributes,
                    outer: self.outer,
                };
                query::on_query(cx, sources, from, r);
            }
            Request::Log(r) => log::on_log(cx, from, r),
            Request::Monitor(r) => self.monitors.on_monitor(cx, from, r),
            Request::IofPull(r) => self.streams.on_pull(cx, from, r),
            Request::IofPush(r) => self.streams.on_push(cx, from, r),
            Request::IofDeregister(r) => self.streams.on_deregister(cx, from, &r),
            Request::GroupConstruct(r) => self.on_group_construct(cx, from, r),
            Request::GroupDestruct(r) => {
                self.groups.on_destruct(cx, &mut self.collectives, from, r);
                self.do_what_is_due(cx);
            }
            Request::GroupLeave(r) => self.groups.on_leave(cx, &mut self.events, from, &r),
            Request::Host(r) => forward::on_host_request(cx, from, r),
            Request::ResolvePeers(r) => resolve::on_resolve_peers(cx, from, &r),
            Request::ResolveNode(r) => resolve::on_resolve_node(cx, from, &r),
            // Distances need the topology, which only the host has.
            Request::DeviceDistances(_) => cx.answer(from, Status::ERR_NOT_SUPPORTED),
            // Handled earlier, since they are legal in states in which no other request is.
            Request::Finalize | Request::DeregisterEvents(_) => {}
        }
    }

    fn on_get(&mut self, cx: &mut Cx<'_>, from: Asker, get: Get) {
        if get.key.as_ref().is_some_and(|key| *key == keys::PSET_NAMES) {
            return self.psets.on_get(cx, from, get);
        }
        self.gets.on_get(cx, &self.known, from, get);
    }

    fn on_notify(&mut self, cx: &mut Cx<'_>, from: Asker, notify: Notify) {
        match event::checked(&from, notify) {
            Ok(event) => {
                self.groups.learn(&cx.peers.jobs, &event);
                self.events.on_notify(cx, from, &event);
            }
            Err(status) => cx.answer(from, status),
        }
    }

    fn on_connect(&mut self, cx: &mut Cx<'_>, from: Asker, connect: Connect) {
        let change = commit::store_endpoints(cx, &from, &connect.endpoints);
        self.on_change(cx, &from.proc, change);
        connect::on_connect(cx, &mut self.collectives, from, connect);
        self.do_what_is_due(cx);
    }

    fn on_group_construct(&mut self, cx: &mut Cx<'_>, from: Asker, construct: Construct) {
        let id = match self.groups.id_for(&from, &construct) {
            Ok(id) => id,
            Err(status) => return cx.answer(from, status),
        };
        let change = commit::store_endpoints(cx, &from, &construct.info);
        self.on_change(cx, &from.proc, change);
        group::on_construct(cx, &mut self.collectives, from, id, construct);
        self.do_what_is_due(cx);
    }

    /// A process has committed: retries the gets that wait for it.
    pub(super) fn on_change(&mut self, cx: &mut Cx<'_>, proc: &ProcId, change: Change) {
        if change == Change::Values {
            self.collections.outdate(&proc.nspace);
        }
        if change != Change::None {
            self.retry_gets_of(cx, proc);
        }
    }

    pub(super) fn retry_gets_of(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.gets.retry_of(cx, &self.known, proc);
    }

    /// Does what the table of collectives has for the verbs, in its order.
    pub(super) fn do_what_is_due(&mut self, cx: &mut Cx<'_>) {
        while let Some(due) = self.collectives.take_due() {
            match due {
                Due::Gathered { id, kind } => self.on_gathered(cx, id, kind),
                Due::Failed { signature, status } => match signature.kind {
                    Kind::Fence => fence::report_failure(cx, &signature, status),
                    Kind::Connect | Kind::Disconnect => {
                        connect::report_failure(cx, &signature, status);
                    }
                    Kind::GroupConstruct | Kind::GroupDestruct => {
                        group::report_failure(cx, &signature, status);
                    }
                },
                Due::Missing { proc, kind } => {
                    cx.ask(None, HostOp::MemberMissing(MemberMissing { proc, kind }), Then::Nothing);
                }
                Due::Overdue { id } => {
                    if let Some(call) = cx.upcalls.of_collective(id) {
                        cx.ask(None, HostOp::Overdue(OverdueCall { call }), Then::Overdue(id));
                    }
                }
                Due::LeftOut { group, proc, others } => {
                    group::announce_failure(cx, &mut self.events, &group, &proc, others);
                }
            }
        }
    }

    fn on_gathered(&mut self, cx: &mut Cx<'_>, id: u64, kind: Kind) {
        match kind {
            Kind::Fence => fence::on_gathered(cx, self.fences(), id),
            Kind::Connect | Kind::Disconnect => connect::on_gathered(cx, &self.collectives, id),
            Kind::GroupConstruct | Kind::GroupDestruct => group::on_gathered(cx, &self.collectives, id),
        }
    }

    pub(super) fn fences(&mut self) -> Fences<'_> {
        Fences {
            collectives: &mut self.collectives,
            modex: &self.known.modex,
            collections: &mut self.collections,
        }
    }
}

//! Dispatches the program's calls to the verbs.

use super::call::ClientCall;
use super::link::Cx;
use super::{
    Tables, abort, commit, connect, fence, finalize, forward, get, group, log, monitor, publish, query,
    resolve, spawn,
};
use crate::machine::CallId;

impl Tables {
    pub(super) fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, call: ClientCall) {
        match call {
            ClientCall::Init => self.on_init(cx, id),
            ClientCall::Handled { delivery, verdict } => self.handlers().on_handled(cx, delivery, verdict),
            ClientCall::Taken { delivery, held } => self.streams.on_taken(cx, delivery, held),
            ClientCall::DeregisterEvents { handler } => self.handlers().on_deregister_events(cx, id, handler),
            ClientCall::RegisterEvents { handler, codes, info } => {
                self.handlers().on_register_events(cx, id, handler, codes, info);
            }
            ClientCall::Notify { code, range, info } => self.handlers().on_notify(cx, id, code, range, info),
            ClientCall::Finalize { info } => finalize::on_finalize(cx, id, &info),
            ClientCall::Commit(buckets) => commit::on_commit(cx, id, buckets),
            ClientCall::Fence(request) => fence::on_fence(cx, &self.groups, id, request),
            ClientCall::Get { request, info } => {
                get::on_get(cx, &mut self.shared, &self.groups, id, request, info)
            }
            ClientCall::Publish(request) => publish::on_publish(cx, id, request),
            ClientCall::Lookup(request) => publish::on_lookup(cx, id, request),
            ClientCall::Unpublish(request) => publish::on_unpublish(cx, id, request),
            ClientCall::Abort { status, message, procs } => abort::on_abort(cx, id, status, message, procs),
            ClientCall::Query(request) => query::on_query(cx, self.outer, id, request),
            ClientCall::Log(request) => log::on_log(cx, id, request),
            ClientCall::ResolvePeers { node, nspace } => resolve::on_resolve_peers(cx, id, node, nspace),
            ClientCall::ResolveNodes { nspace } => resolve::on_resolve_nodes(cx, id, nspace),
            ClientCall::Spawn(request) => spawn::on_spawn(cx, id, request),
            ClientCall::Connect(request) => connect::on_connect(cx, &self.groups, id, request),
            ClientCall::Disconnect(request) => connect::on_disconnect(cx, &self.groups, id, request),
            ClientCall::GroupConstruct(request) => {
                group::on_group_construct(cx, &mut self.groups, id, request);
            }
            ClientCall::GroupDestruct { id: name, info } => {
                group::on_group_destruct(cx, &mut self.groups, id, name, info)
            }
            ClientCall::GroupInvite { id: name, procs, info } => {
                self.inviting().on_group_invite(cx, id, name, &procs, &info);
            }
            ClientCall::GroupJoin { id: name, leader, accept, info } => {
                self.inviting().on_group_join(cx, id, name, leader, accept, &info);
            }
            ClientCall::GroupLeave(request) => group::on_group_leave(cx, &mut self.groups, id, request),
            ClientCall::IofPull { handler, pull } => self.streams.on_iof_pull(cx, id, handler, pull),
            ClientCall::IofDeregister { handler, directives } => {
                self.streams.on_iof_deregister(cx, id, handler, directives);
            }
            ClientCall::IofPush(request) => self.streams.on_iof_push(cx, id, request),
            ClientCall::Monitor(request) => monitor::on_monitor(cx, id, request),
            ClientCall::Heartbeat => monitor::on_heartbeat(cx, id),
            ClientCall::Host(request) => forward::on_host_request(cx, id, request),
        }
    }
}

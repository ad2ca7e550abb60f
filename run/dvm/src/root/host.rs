//! The upcalls that only the root can answer: where each goes.

use phalanx_core::HostOp;
use phalanx_spec::Status;

use crate::id::NodeId;
use crate::root::{Cx, Root};

impl Root {
    /// An upcall that only the root can answer.
    pub(super) fn on_root_call(&mut self, cx: &mut Cx<'_>, origin: NodeId, request: u64, op: &HostOp) {
        match op {
            HostOp::Publish { from, uid, data, range, persistence, info } => {
                let status = self.publish(cx, from, *uid, data, *range, *persistence, info);
                cx.refuse(origin, request, status);
            }
            HostOp::Lookup { from, uid, keys, range, info } => {
                self.lookup(cx, origin, request, from, *uid, keys, *range, info);
            }
            HostOp::Unpublish { from, uid, keys, range, info: _ } => {
                let status = self.unpublish(from, *uid, keys, *range);
                cx.refuse(origin, request, status);
            }
            HostOp::Spawn { from, job, apps } => self.spawn(cx, origin, request, from, job, apps),
            HostOp::RegisterEvents { codes, info: _ } => {
                self.register_events(origin, codes);
                cx.refuse(origin, request, Status::SUCCESS);
            }
            HostOp::DeregisterEvents { codes } => {
                self.deregister_events(origin, codes);
                cx.refuse(origin, request, Status::SUCCESS);
            }
            HostOp::Notify { event } => {
                self.notify(cx, origin, event);
                cx.refuse(origin, request, Status::SUCCESS);
            }
            HostOp::GroupAssemble { from, id, procs, info } => {
                self.assemble(cx, (origin, request), from, id, procs, info);
            }
            HostOp::Query { from, queries } => {
                self.query(cx, origin, request, from, queries);
            }
            HostOp::ToolConnected { claims, .. } => self.admit_tool(cx, origin, request, claims.as_ref()),
            HostOp::Log { from, data, directives } => {
                let status = self.log(cx, from, data, directives);
                cx.refuse(origin, request, status);
            }
            HostOp::IofPull { from, sources, channels, directives, handle } => {
                self.pull_output(cx, (origin, request), from, (sources, *channels), (directives, *handle));
            }
            HostOp::PushStdin { from, targets, directives, data } => {
                self.push_stdin(cx, (origin, request), from, targets, (directives, data));
            }
            HostOp::IofStop { from: _, handle, directives: _, died } => {
                self.stop_output(cx, origin, request, (*handle, *died));
            }
            HostOp::JobControl { from, targets, directives } => {
                self.job_control(cx, (origin, request), from, targets, directives);
            }
            _ => cx.refuse(origin, request, Status::ERR_NOT_SUPPORTED),
        }
    }
}

//! The upcalls that only the root can answer: where each goes.

use phalanx_core::HostOp;
use phalanx_spec::Status;

use crate::root::answer::Answer;
use crate::root::{Cx, Root};

impl Root {
    /// An upcall that only the root can answer.
    pub(super) fn on_root_call(&mut self, cx: &mut Cx<'_>, answer: Answer, op: &HostOp) {
        match op {
            HostOp::Publish { from, uid, data, range, persistence, info } => {
                let status = self.publish(cx, from, *uid, data, *range, *persistence, info);
                answer.done(cx, status);
            }
            HostOp::Lookup { from, uid, keys, range, info } => {
                self.lookup(cx, answer, from, *uid, keys, *range, info);
            }
            HostOp::Unpublish { from, uid, keys, range, info: _ } => {
                let status = self.unpublish(from, *uid, keys, *range);
                answer.done(cx, status);
            }
            HostOp::Spawn { from, job, apps } => self.spawn(cx, answer, from, job, apps),
            HostOp::RegisterEvents { codes, info } => {
                let node = answer.origin();
                // The answer first: what happened before is told behind it.
                answer.done(cx, Status::SUCCESS);
                self.register_events(cx, node, codes, info);
            }
            HostOp::DeregisterEvents { codes } => {
                self.deregister_events(answer.origin(), codes);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::Notify { event } => {
                self.notify(cx, answer.origin(), event);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::GroupAssemble { from, id, procs, info } => {
                self.assemble(cx, answer, from, id, procs, info);
            }
            HostOp::Query { from, queries } => {
                self.query(cx, answer, from, queries);
            }
            HostOp::ToolConnected { claims, .. } => self.admit_tool(cx, answer, claims.as_ref()),
            HostOp::Log { from, data, directives } => {
                let status = self.log(cx, from, data, directives);
                answer.done(cx, status);
            }
            HostOp::IofPull { from, sources, channels, directives, handle } => {
                self.pull_output(cx, answer, from, (sources, *channels), (directives, *handle));
            }
            HostOp::PushStdin { from, targets, directives, data } => {
                self.push_stdin(cx, answer, from, targets, (directives, data));
            }
            HostOp::IofStop { from: _, handle, directives: _, died } => {
                self.stop_output(cx, answer, (*handle, *died));
            }
            HostOp::JobControl { from, targets, directives } => {
                self.job_control(cx, answer, from, targets, directives);
            }
            _ => answer.done(cx, Status::ERR_NOT_SUPPORTED),
        }
    }
}

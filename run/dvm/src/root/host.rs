//! The upcalls that only the root can answer: where each goes, and what this runtime honours of each function.

use phalanx_core::HostOp;
use phalanx_core::host::{
    Asked, EventsRequest, GroupRequest, LogRequest, PullEnded, PullRequest, StdinRequest,
};
use phalanx_core::output::{BUFFER_ATTRIBUTES, FILE_ATTRIBUTES, FORM_ATTRIBUTES};
use phalanx_core::support::Honoured;
use phalanx_spec::{Status, functions};
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::cmd::control::JobControl;

use crate::msg::{cleanup, control, environment};
use crate::root::answer::Answer;
use crate::root::{Cx, Root, debug, event, group, iof, log, publish, query, session, stdin};
use crate::spawn;

/// What each function honours. Which data collectives collect, and how long is waited, the servers see to.
pub(crate) const FUNCTIONS: &[Honoured] = &[
    (functions::CONNECT, &[]),
    (functions::DISCONNECT, &[]),
    (functions::FENCE, &[]),
    (functions::GROUP_CONSTRUCT, &[group::ATTRIBUTES]),
    (functions::GROUP_DESTRUCT, &[group::DESTRUCT_ATTRIBUTES]),
    (functions::IOF_DEREGISTER, &[]),
    (functions::IOF_PULL, &[iof::PULL_ATTRIBUTES]),
    (functions::IOF_PUSH, &[stdin::PUSH_ATTRIBUTES]),
    (functions::JOB_CONTROL, &[control::ATTRIBUTES, cleanup::ATTRIBUTES]),
    (functions::LOG, &[log::ATTRIBUTES]),
    (functions::LOOKUP, &[publish::LOOKUP_ATTRIBUTES]),
    (functions::NOTIFY_EVENT, &[event::ATTRIBUTES]),
    (functions::PUBLISH, &[publish::PUBLISH_ATTRIBUTES]),
    (functions::QUERY_INFO, &[query::KEYS, query::QUALIFIERS]),
    (functions::REGISTER_EVENT_HANDLER, &[]),
    (functions::SESSION_CONTROL, &[session::ATTRIBUTES]),
    (
        functions::SPAWN,
        &[
            spawn::JOB,
            spawn::PLACEMENT,
            spawn::APP,
            spawn::KEPT,
            environment::ATTRIBUTES,
            debug::ATTRIBUTES,
            FORM_ATTRIBUTES,
            FILE_ATTRIBUTES,
            BUFFER_ATTRIBUTES,
        ],
    ),
    (functions::UNPUBLISH, &[publish::UNPUBLISH_ATTRIBUTES]),
];

impl Root {
    /// An upcall that only the root can answer.
    pub(super) fn on_root_call(&mut self, cx: &mut Cx<'_>, answer: Answer, op: &HostOp) {
        match op {
            HostOp::Publish(request) => {
                let status = self.publish(cx, request);
                answer.done(cx, status);
            }
            HostOp::Lookup(request) => self.lookup(cx, answer, request),
            HostOp::Unpublish(request) => {
                self.store.unpublish(request);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::Spawn(asked) => self.spawn(cx, answer, &asked.from, &asked.job, &asked.apps),
            HostOp::RegisterEvents(EventsRequest { codes, info }) => {
                let node = answer.origin();
                // What happened before goes first, and its server tells it behind the answer, together with what that has kept.
                self.register_events(cx, node, codes, info);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::DeregisterEvents(request) => {
                self.deregister_events(cx, answer.origin(), &request.codes);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::Notify(event) => {
                self.notify(cx, answer.origin(), event);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::GroupConstruct(GroupRequest { from: Some(from), id, procs, info }) => {
                self.assemble(cx, answer, from, id, procs, info);
            }
            HostOp::Query(asked) => self.query(cx, answer, &asked.from, &asked.queries),
            HostOp::ToolConnected(request) => self.admit_tool(cx, answer, request.claims.as_ref()),
            HostOp::Log(LogRequest { from, data, directives }) => {
                let kinds = self.jobs.get_mut(&from.nspace).map(|job| &mut job.logged);
                let status = log::log(cx, kinds, from, data, directives);
                answer.done(cx, status);
            }
            HostOp::IofPull(PullRequest { from, sources, channels, directives, handle }) => {
                self.pull_output(cx, answer, from, (sources, *channels), (directives, *handle));
            }
            HostOp::PushStdin(StdinRequest { from, targets, directives, data }) => {
                self.push_stdin(cx, answer, from, targets, (directives, data));
            }
            HostOp::IofStop(PullEnded { from: _, handle, directives: _, died }) => {
                self.stop_output(cx, answer, (*handle, *died));
            }
            HostOp::Asked(asked) => self.on_request(cx, answer, asked),
            _ => answer.done(cx, Status::ERR_NOT_SUPPORTED),
        }
    }

    /// What a client has said to the host in these words.
    fn on_request(&mut self, cx: &mut Cx<'_>, answer: Answer, asked: &Asked<HostRequest>) {
        let from = &asked.from;
        match &asked.request {
            HostRequest::JobControl(JobControl { targets, directives }) => {
                self.job_control(cx, answer, from, targets, directives);
            }
            HostRequest::SessionControl(request) => self.session_control(cx, answer, from, request),
            _ => answer.done(cx, Status::ERR_NOT_SUPPORTED),
        }
    }
}

//! Requests of daemons' servers that only the root can answer: each goes to its verb, which is handed the tables that it needs.

use phalanx_core::Event;
use phalanx_core::host::{Asked, EventsRequest, GroupRequest, HostOp, PullEnded};
use phalanx_spec::Status;
use phalanx_wire::cmd::HostRequest;

use crate::id::NodeId;
use crate::root::Root;
use crate::root::answer::Answer;
use crate::root::checkpoint;
use crate::root::control;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::event;
use crate::root::group;
use crate::root::invite;
use crate::root::iof;
use crate::root::log;
use crate::root::publish;
use crate::root::session;
use crate::root::survey;
use crate::root::turn::Cx;

impl Root {
    /// An upcall that only the root can answer.
    pub(super) fn on_root_call(&mut self, cx: &mut Cx<'_>, answer: Answer, op: &HostOp) {
        match op {
            HostOp::Publish(request) => {
                let status = publish::publish(cx, &self.dvm, &mut self.store, &mut self.operations, request);
                answer.done(cx, status);
            }
            HostOp::Lookup(request) => {
                publish::lookup(cx, &self.dvm, &mut self.store, &mut self.operations, answer, request)
            }
            HostOp::Unpublish(request) => {
                self.store.unpublish(request);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::Spawn(asked) => self.spawn(cx, answer, &asked.from, &asked.job, &asked.apps),
            HostOp::RegisterEvents(EventsRequest { codes, info }) => {
                let node = answer.origin();
                // Past events are cast before the answer; the server delivers them after the answer, together with those that
                // it has kept.
                event::register(cx, &mut self.dvm, node, codes, info);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::DeregisterEvents(request) => {
                let node = answer.origin();
                event::deregister(&mut self.dvm, node, &request.codes);
                if request.codes.contains(&Status::DEBUGGER_RELEASE) {
                    let then = debug::released_on(cx, &mut self.dvm, &mut self.operations, node);
                    self.carry_out(cx, then);
                }
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::Notify(event) => {
                self.notify(cx, answer.origin(), event);
                answer.done(cx, Status::SUCCESS);
            }
            HostOp::GroupConstruct(request @ GroupRequest { from: Some(from), .. }) => {
                group::assemble(cx, &mut self.dvm, &mut self.operations, answer, from, request);
            }
            HostOp::Query(asked) => {
                let (from, queries) = (&asked.from, &asked.queries);
                let then = survey::ask(cx, &self.dvm, &mut self.operations, answer, from, queries);
                self.carry_out(cx, then);
            }
            HostOp::ToolConnected(request) => {
                let Dvm { tools, jobs, config, .. } = &mut self.dvm;
                tools.admit(cx, answer, request, (jobs, &config.dvm));
            }
            HostOp::Log(asked) => {
                let then = log::log(cx, &mut self.means(), answer, asked);
                self.carry_out(cx, then);
            }
            HostOp::IofPull(asked) => iof::pull(cx, &self.dvm, &mut self.readers, answer, asked),
            HostOp::PushStdin(asked) => self.inputs.push(cx, &self.dvm, answer, asked),
            HostOp::IofStop(PullEnded { from: _, handle, directives: _, died }) => {
                iof::stop(cx, &mut self.readers, answer, (*handle, *died));
            }
            HostOp::Asked(asked) => self.on_request(cx, answer, asked),
            _ => answer.done(cx, Status::ERR_NOT_SUPPORTED),
        }
    }

    /// A client's request that its server passed on unchanged.
    fn on_request(&mut self, cx: &mut Cx<'_>, answer: Answer, asked: &Asked<HostRequest>) {
        let from = &asked.from;
        match &asked.request {
            HostRequest::JobControl(request) => {
                let Root { dvm, operations, cleanups, .. } = self;
                let then = control::job_control(cx, dvm, operations, cleanups, answer, from, request);
                self.carry_out(cx, then);
            }
            HostRequest::SessionControl(request) => {
                let then = session::control(cx, &self.dvm, answer, from, request);
                self.carry_out(cx, then);
            }
            _ => answer.done(cx, Status::ERR_NOT_SUPPORTED),
        }
    }

    /// A process on `origin` has raised an event. Some events mean something for the root itself.
    fn notify(&mut self, cx: &mut Cx<'_>, origin: NodeId, event: &Event) {
        let Root { dvm, operations, invitations, .. } = self;
        let mut then = Vec::new();
        match event.code {
            Status::READY_FOR_DEBUG => then = debug::ready_for_debug(cx, dvm, operations, event),
            Status::DEBUGGER_RELEASE => then = debug::released(cx, dvm, operations, event),
            Status::JCTRL_CHECKPOINT_COMPLETE => {
                then = checkpoint::checkpoint_complete(cx, operations, event)
            }
            Status::GROUP_LEFT => dvm.relations.hear_of_group(&dvm.jobs, event),
            Status::GROUP_CONSTRUCT_COMPLETE => {
                dvm.relations.hear_of_group(&dvm.jobs, event);
                invite::hear(cx, dvm, invitations, event);
            }
            Status::GROUP_INVITE_ACCEPTED | Status::GROUP_CONSTRUCT_ABORT => {
                invite::hear(cx, dvm, invitations, event);
            }
            _ => {}
        }
        self.carry_out(cx, then);
        event::pass_on(cx, &self.dvm, origin, event);
    }
}

//! Handles the host's answers and expired timers.

use phalanx_spec::Status;
use phalanx_wire::{Key, ProcId};
use tracing::{debug, warn};

use super::host::{Then, as_failure};
use super::timers::Timer;
use super::turn::Cx;
use super::{Tables, connect, credential, fence, publish, query, spawn};
use crate::host::{CollectiveKind as Kind, HostReply};
use crate::machine::HostCall;

impl Tables {
    pub(super) fn on_host(&mut self, cx: &mut Cx<'_>, call: HostCall, reply: HostReply) {
        let number = call.number();
        match cx.upcalls.close(call) {
            Some(then) => self.on_answer(cx, then, reply),
            None => debug!(number, "no request waits for this answer of the host, or it came twice: ignored"),
        }
    }

    /// Refuses requests to which the host has dropped the right to answer.
    pub(super) fn refuse_dropped(&mut self, cx: &mut Cx<'_>) {
        while let Some(then) = cx.upcalls.next_dropped() {
            self.on_answer(cx, then, HostReply::Done(Status::ERROR));
        }
    }

    pub(super) fn on_answer(&mut self, cx: &mut Cx<'_>, then: Then, reply: HostReply) {
        let status = reply.status();
        match then {
            Then::Nothing => {}
            Then::Answer(to) | Then::Finalize(to) => cx.answer(to, status),
            Then::AnswerCancel { to, unless_known } if status == Status::ERR_NOT_SUPPORTED => {
                cx.answer_infos(to, unless_known, Vec::new());
            }
            Then::AnswerInfos(to) | Then::AnswerCancel { to, .. } => match reply {
                HostReply::Infos(status, info) => cx.answer_infos(to, status, info),
                _ => cx.answer(to, status),
            },
            Then::AnswerCredential(to) => credential::on_credential(cx, to, reply),
            Then::AnswerLookup(to) => publish::on_looked_up(cx, to, reply),
            Then::AnswerPull { to, handle, wishes } => {
                self.streams.on_pull_answered(cx, to, handle, &wishes, reply);
            }
            Then::AnswerPush { to, bytes } => {
                let conn = to.conn;
                self.streams.on_push_answered(cx, to, bytes, status);
                self.read_frames(cx, conn);
            }
            Then::AnswerStop { to, handle } => self.streams.on_stop_answered(cx, to, handle, status),
            Then::AnswerQuery { to, order, known, spare } => {
                query::on_query_answered(cx, to, &order, (known, spare), reply);
            }
            Then::AnswerSpawn { to, dressed } => {
                spawn::on_spawned(cx, &mut self.streams, &self.known.describer, (to, dressed), reply);
            }
            Then::AdmitClients(proc) => self.on_clients_admitted(cx, &proc, status),
            Then::AdmitTool(conn) => {
                if let Some(admitted) = self.strangers.on_tool_admitted(cx, conn, reply) {
                    self.on_admitted(cx, admitted);
                }
            }
            Then::Assembled { to, id, is_watched } => {
                self.groups.on_assembled(cx, &self.known.describer, to, (id, is_watched), reply);
            }
            Then::Collective(id) => self.on_collective_answered(cx, id, reply),
            Then::Overdue(id) if !status.is_success() => self.collectives.fail_overdue(cx, id),
            Then::Overdue(_) => {}
            Then::DirectModex(proc, key) => self.on_direct_modex_answered(cx, &(proc, key), reply),
            Then::Lost(proc) => self.on_loss_acknowledged(cx, &proc),
            Then::RegisterEvents(to) => self.events.on_registration_answered(cx, to, status),
        }
    }

    fn on_clients_admitted(&mut self, cx: &mut Cx<'_>, proc: &ProcId, status: Status) {
        for conn in self.strangers.clients_awaiting(proc) {
            if let Some(admitted) = self.strangers.on_client_admitted(cx, conn, proc, status) {
                self.on_admitted(cx, admitted);
            }
        }
    }

    fn on_collective_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: HostReply) {
        let Some(signature) = self.collectives.get(id).map(|c| c.signature.clone()) else { return };
        match signature.kind {
            Kind::Fence => {
                let status = self.store_collected(cx, &signature.procs, reply);
                fence::end(cx, self.fences(), id, status);
            }
            Kind::Connect | Kind::Disconnect => {
                connect::on_answered(cx, &mut self.collectives, &self.known.describer, id, &reply);
                self.collectives.advance_next(cx, &signature);
            }
            Kind::GroupConstruct | Kind::GroupDestruct => {
                self.groups.on_answered(cx, &mut self.collectives, &self.known.describer, id, reply);
                self.collectives.advance_next(cx, &signature);
            }
        }
        self.do_what_is_due(cx);
    }

    /// Stores what the servers of a fence contributed and retries the gets that wait for it.
    fn store_collected(&mut self, cx: &mut Cx<'_>, participants: &[ProcId], reply: HostReply) -> Status {
        let blob = match reply {
            HostReply::Modex(Ok(blob)) => blob,
            other => return as_failure(other.status()),
        };
        let stored = self.known.modex.store(&cx.peers.jobs, participants, &blob);
        for proc in stored.iter().flatten() {
            self.collections.outdate(&proc.nspace);
        }
        match stored {
            Ok(procs) => {
                for proc in procs {
                    self.retry_gets_of(cx, &proc);
                }
                Status::SUCCESS
            }
            Err(error) => {
                warn!(%error, bytes = blob.len(), "what the servers of a fence contributed cannot be read");
                Status::ERR_UNPACK_FAILURE
            }
        }
    }

    fn on_direct_modex_answered(
        &mut self,
        cx: &mut Cx<'_>,
        sought: &(ProcId, Option<Key>),
        reply: HostReply,
    ) {
        if !self.gets.end_search(sought) {
            return;
        }
        let target = &sought.0;
        let outcome = match reply {
            HostReply::Modex(Ok(blob)) => {
                self.collections.outdate(&target.nspace);
                self.known.modex.store_one(target, &blob).map_err(|error| {
                    warn!(%target, %error, "the answer of another server cannot be read");
                    Status::ERR_UNPACK_FAILURE
                })
            }
            other => Err(as_failure(other.status())),
        };
        self.gets.on_searched(cx, &self.known, sought, outcome);
    }

    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Hello(conn) => self.strangers.on_hello_overdue(cx, conn),
            Timer::Get(id) => self.gets.on_overdue(cx, &self.known, id),
            Timer::Collective(id) => {
                self.collectives.on_overdue(cx, id);
                self.do_what_is_due(cx);
            }
            Timer::Window(id) => self.monitors.on_window_over(cx, &mut self.events, id),
            Timer::Format(pull) => self.streams.on_format_due(cx, pull),
        }
    }
}

//! State and decisions that exist once for the whole DVM: jobs and their placement, recipients of events, readers of output,
//! published data and groups.
//!
//! A [`Root`] exists at node 0 only. It knows daemons by number and processes by name, but neither the tree nor links nor
//! descriptors. Its input is [`ToRoot`], its output [`FromRoot`].

mod abilities;
mod about;
mod answer;
mod boot;
mod checkpoint;
mod collective;
mod consequence;
mod control;
mod debug;
mod descent;
mod dvm;
mod end;
mod event;
mod fate;
mod group;
mod interests;
mod invite;
mod iof;
mod jobs;
mod journal;
mod kind;
mod last_look;
mod launch;
mod lifecycle;
mod log;
mod nodes;
mod operations;
mod pauses;
mod permission;
mod placing;
mod plan;
mod premises;
mod provision;
mod publish;
pub(crate) mod query;
mod record;
mod relations;
mod requests;
mod rest;
mod restart;
mod session;
mod settle;
mod slots;
pub(crate) mod spawn;
mod stdin;
mod survey;
mod targets;
mod timer;
mod tool;
mod turn;
mod upcalls;

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::output::{BUFFER_ATTRIBUTES, FILE_ATTRIBUTES, FORM_ATTRIBUTES};
use phalanx_core::support::Honoured;
use phalanx_core::{Time, Waiting};
use phalanx_spec::{Status, functions};
use phalanx_wire::Nspace;

use crate::config::NodeConfig;
use crate::id::{Landing, NodeId};
use crate::job::JobRequest;
use crate::msg::{self, Agreed, Control, Down, NodeReport, OpId, OutputPiece, Part, Up};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::timers::Timers;

use answer::{Answers, Asker};
use collective::Collectives;
use control::Cleanups;
use dvm::Dvm;
use fate::Fact;
use group::Completed;
use invite::Invitations;
use iof::Readers;
use kind::Kind;
use operations::Operations;
use publish::Store;
use requests::Answered;
use spawn::Unsupported;
use stdin::Inputs;
use timer::Timer;
use turn::Cx;

pub(crate) use turn::FromRoot;

/// The attributes that each function honours. The servers handle data collection of collectives and their timeouts.
pub(crate) const FUNCTIONS: &[Honoured] = &[
    (functions::CONNECT, &[]),
    (functions::DISCONNECT, &[]),
    (functions::FENCE, &[]),
    (functions::GROUP_CONSTRUCT, &[group::ATTRIBUTES]),
    (functions::GROUP_DESTRUCT, &[group::DESTRUCT_ATTRIBUTES]),
    (functions::IOF_DEREGISTER, &[]),
    (functions::IOF_PULL, &[iof::PULL_ATTRIBUTES]),
    (functions::IOF_PUSH, &[stdin::PUSH_ATTRIBUTES]),
    (
        functions::JOB_CONTROL,
        &[msg::control::ATTRIBUTES, msg::checkpoint::ATTRIBUTES, msg::cleanup::ATTRIBUTES],
    ),
    (functions::LOG, &[log::CHANNELS, log::ATTRIBUTES]),
    (functions::LOOKUP, &[publish::LOOKUP_ATTRIBUTES]),
    (functions::NOTIFY_EVENT, &[event::ATTRIBUTES]),
    (functions::PUBLISH, &[publish::PUBLISH_ATTRIBUTES]),
    (functions::QUERY_INFO, &[query::KEYS, query::QUALIFIERS]),
    (functions::REGISTER_EVENT_HANDLER, &[]),
    (functions::SESSION_CONTROL, &[session::ATTRIBUTES]),
    (
        functions::SPAWN,
        &[
            crate::spawn::JOB,
            crate::spawn::PLACEMENT,
            crate::spawn::APP,
            crate::spawn::KEPT,
            msg::environment::ATTRIBUTES,
            debug::ATTRIBUTES,
            lifecycle::ATTRIBUTES,
            FORM_ATTRIBUTES,
            FILE_ATTRIBUTES,
            BUFFER_ATTRIBUTES,
        ],
    ),
    (functions::UNPUBLISH, &[publish::UNPUBLISH_ATTRIBUTES]),
];

#[derive(Debug)]
pub(crate) struct Root {
    dvm: Dvm,
    next_job: u32,
    store: Store,
    collectives: Collectives,
    invitations: Invitations,
    answers: Answers,
    operations: Operations,
    cleanups: Cleanups,
    /// Named requests of job control.
    answered: Answered,
    readers: Readers,
    inputs: Inputs,
    timers: Timers<Timer>,
    unsupported: Unsupported,
    /// Jobs that have ended everywhere. Handled after everything that arrived before.
    ended: VecDeque<(Nspace, Part)>,
    /// Slots have come back, or are about to. The spawns that wait for some are looked at after everything that arrived before.
    slots_changed: bool,
    shutting_down: bool,
    reported_session_end: bool,
}

/// An event or a request.
#[derive(Debug)]
pub(crate) enum ToRoot {
    /// Always the first input.
    Begin,
    /// These daemons have come up.
    Reports(Vec<(NodeId, NodeReport)>),
    /// The start has got further, so it may take longer.
    BootGoesOn,
    /// The DVM cannot come up as requested.
    BootHopeless,
    /// The same, with the reason.
    BootFailed {
        error: String,
    },
    Submit {
        request: u64,
        job: Box<JobRequest>,
    },
    /// Refuse the jobs that wait for the DVM to come up.
    Withdraw {
        why: String,
    },
    Control {
        nspace: Nspace,
        action: Control,
    },
    /// This process is about to be stopped.
    StandStill,
    /// It goes on, or was not stopped after all.
    StandNoLonger,
    Shutdown,
    /// The batch system has ended the allocation of the hosts.
    AllocationEnded {
        why: String,
    },
    /// The user has taken `bytes` more of the output.
    OutputTaken {
        bytes: usize,
    },
    Stdin {
        nspace: Nspace,
        data: Arc<[u8]>,
    },
    StdinEnd {
        nspace: Nspace,
    },
    /// A message from a daemon.
    Post {
        origin: NodeId,
        up: Arc<Up>,
    },
    /// More parts of an operation have arrived, but not all; `arrived` are the daemons that have sent theirs.
    Advanced {
        op: Arc<OpId>,
        arrived: Ranges,
    },
    /// All parts are here, except those of daemons that were lost before they sent theirs.
    Gathered {
        op: Arc<OpId>,
        among: Ranges,
        missing: Ranges,
        part: Part,
    },
    /// Output of a process. Answered by [`FromRoot::Taken`] when the root has finished with it.
    Output {
        landing: Landing,
        piece: OutputPiece,
    },
    /// The tree goes on without this daemon.
    Without(NodeId),
    /// The other daemons are being notified that this one is lost.
    Lost {
        node: NodeId,
        why: String,
    },
    /// Nothing of the job is left at this node.
    Forgotten(Nspace),
    Tick,
}

impl Root {
    pub(crate) fn new(config: NodeConfig, functions: &'static [Honoured]) -> Root {
        Root {
            next_job: config.first_job,
            dvm: Dvm::new(config, functions),
            store: Store::default(),
            collectives: Collectives::default(),
            invitations: Invitations::default(),
            answers: Answers::default(),
            operations: Operations::default(),
            cleanups: Cleanups::default(),
            answered: Answered::default(),
            readers: Readers::default(),
            inputs: Inputs::default(),
            timers: Timers::default(),
            unsupported: Unsupported::new(),
            ended: VecDeque::new(),
            slots_changed: false,
            shutting_down: false,
            reported_session_end: false,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        let next = self.timers.next().into_iter().chain(self.operations.deadline()).min();
        next.filter(|_| !self.dvm.nodes.stands())
    }

    pub(crate) fn handle(&mut self, now: Time, input: ToRoot, out: &mut VecDeque<FromRoot>) {
        let cx = &mut Cx { now, out };
        match input {
            ToRoot::Begin => self.begin(cx),
            ToRoot::Reports(reports) => self.on_reports(cx, reports),
            ToRoot::BootGoesOn => self.on_boot_goes_on(cx),
            ToRoot::BootHopeless => self.dvm.nodes.give_up(),
            ToRoot::BootFailed { error } => self.on_boot_failed(cx, error),
            ToRoot::Submit { request, job } => self.on_submit(cx, request, job),
            ToRoot::Withdraw { why } => self.refuse_waiting(cx, &why),
            ToRoot::Control { nspace, action } => self.learn(cx, &nspace, Fact::Controlled(action)),
            ToRoot::StandStill => self.dvm.nodes.stand_still(cx.now),
            ToRoot::StandNoLonger => self.stand_no_longer(cx),
            ToRoot::Shutdown => self.on_shutdown(cx, None),
            ToRoot::AllocationEnded { why } => self.on_allocation_ended(cx, why),
            ToRoot::OutputTaken { bytes } => self.readers.on_output_taken(cx, bytes),
            ToRoot::Stdin { nspace, data } => self.inputs.user_has(cx, &nspace, data),
            ToRoot::StdinEnd { nspace } => self.inputs.user_ends(cx, &self.dvm, &nspace),
            ToRoot::Post { origin, up } => self.on_up(cx, origin, &up),
            ToRoot::Advanced { op, arrived } => self.gather_advanced(cx, &op, &arrived),
            ToRoot::Gathered { op, among, missing, part } => self.gathered(cx, op, among, missing, part),
            ToRoot::Output { landing, piece } => self.readers.show(cx, &self.dvm, landing, piece),
            ToRoot::Without(node) => self.boot_without(cx, node),
            ToRoot::Lost { node, why } => {
                self.readers.forget_readers_on(cx, node);
                self.on_tools_lost(cx, node);
                let is_there = |asker: &Asker| asker.answer.origin() == node;
                self.dismiss(cx, Kind::is_of_askers, is_there, Status::ERR_LOST_CONNECTION);
                self.lose_processes(cx, node, &why);
                self.stop_without_hosts(cx);
                self.slots_changed = true;
            }
            ToRoot::Forgotten(nspace) => self.on_forgotten(cx, &nspace),
            ToRoot::Tick => {
                // One at a time: the consequences of each timer come before the next timer.
                let timer = self.timers.next();
                if self.operations.deadline().is_some_and(|at| timer.is_none_or(|timer| at < timer)) {
                    let due = self.operations.pop_due(now);
                    due.into_iter().for_each(|number| self.on_operation_due(cx, number));
                } else if let Some(timer) = self.timers.pop_due(now) {
                    self.on_timer(cx, timer);
                }
            }
        }
        self.answers.give_dropped(cx);
    }

    /// Handles one thing that was put off until everything else had arrived. `false`: there is none.
    pub(crate) fn go_on(&mut self, now: Time, out: &mut VecDeque<FromRoot>) -> bool {
        let cx = &mut Cx { now, out };
        if let Some((nspace, part)) = self.ended.pop_front() {
            let ends = match part {
                Part::Ends(ends) => ends,
                _ => Box::default(),
            };
            self.learn(cx, &nspace, Fact::Exited(ends));
            return true;
        }
        let has_slots = std::mem::take(&mut self.slots_changed);
        if has_slots {
            self.launch_cramped(cx);
        }
        has_slots
    }

    /// A message from a daemon.
    fn on_up(&mut self, cx: &mut Cx<'_>, origin: NodeId, body: &Up) {
        match body {
            Up::Topology { signature, encoded } => self.on_topology(cx, origin, signature, encoded),
            Up::StartFailed { proc, failure } => self.on_start_failed(cx, origin, proc, failure),
            Up::Began { nspace } => self.job_began(cx, nspace),
            Up::Failed(end) => self.learn(cx, &end.proc.nspace, Fact::Failed(end)),
            Up::Left(end) => self.learn(cx, &end.proc.nspace, Fact::Left(end)),
            Up::Abort { from, status, message, procs } => self.on_abort(cx, from, *status, message, procs),
            Up::LoadedMpi { proc: by, library } => {
                tracing::debug!(%by, file = library.file, has_pmix = library.has_pmix, "a rank has loaded MPI");
                self.learn(cx, &by.nspace, Fact::LoadedMpi { by, library });
            }
            Up::Connected { nspace, reached } => self.on_connected(cx, origin, nspace, *reached),
            Up::Freed { nspace, ended, leaving } => {
                slots::freed(&mut self.dvm, nspace, ended, leaving);
                self.slots_changed = true;
            }
            Up::Exited { nspace } => self.on_node_exited(cx, origin, nspace),
            Up::Waits(op) => collective::on_waits(cx, &self.dvm, &mut self.collectives, op),
            Up::Fails { op, status } => {
                collective::on_fails(cx, &self.dvm, &mut self.operations, &mut self.collectives, op, *status)
            }
            Up::Over { nspace, ranks } => {
                group::assemblies_without(cx, &mut self.operations, nspace, ranks);
                invite::leaders_over(cx, &self.dvm, &mut self.invitations, nspace, ranks);
                let then = debug::stop_without(cx, &mut self.dvm, &mut self.operations, nspace, ranks);
                self.carry_out(cx, then);
            }
            Up::Host { request, op } => self.on_root_call(cx, self.answers.of(origin, *request), op),
            Up::ToolLeft { proc } => {
                self.on_tool_left(cx, proc);
                self.inputs.end_pushes_of(cx, &self.dvm, proc);
            }
            Up::StdinTaken { nspace, rank, bytes } => self.inputs.taken(cx, &self.dvm, nspace, *rank, *bytes),
            Up::StdinRefused { nspace, rank } => self.inputs.lost(cx, &self.dvm, nspace, *rank),
            Up::OutputLeft { to, pieces, gone } => self.readers.on_output_left(cx, origin, to, pieces, *gone),
            Up::Note { about: None, text } => cx.report(Report::Note { nspace: None, text: text.clone() }),
            Up::Note { about: Some(proc), text } => self.dvm.tell_user_of(cx, proc, text),
        }
    }

    /// All parts of an operation are here, except those of daemons that were lost.
    fn gathered(&mut self, cx: &mut Cx<'_>, op: Arc<OpId>, among: Ranges, missing: Ranges, part: Part) {
        let done = |cx: &mut Cx<'_>, op: &Arc<OpId>, among| {
            cx.cast(among, Down::Done { op: op.clone(), outcome: Ok(Agreed::Nothing) });
        };
        match &*op {
            OpId::Started(nspace) => {
                done(cx, &op, among);
                self.job_started(cx, nspace, part);
            }
            OpId::Ended(nspace) => {
                done(cx, &op, among);
                self.ended.push_back((nspace.clone(), part));
            }
            OpId::Task(task) => {
                done(cx, &op, among);
                let then = self.operations.task_done(cx, &self.dvm.jobs, task, &missing, part);
                self.carry_out(cx, then);
            }
            OpId::Collective(_) => {
                let Root { dvm, operations, collectives, .. } = self;
                let meeting = Completed { op, to: among };
                collective::gathered(cx, dvm, operations, collectives, meeting, &missing, part);
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Boot => self.on_boot_over(cx),
            Timer::Readers(nspace) => self.readers.on_due(cx, &self.dvm, &mut self.timers, &nspace),
            Timer::Limit(nspace) => self.learn(cx, &nspace, Fact::LimitPassed),
        }
    }

    /// What is waiting here.
    pub(crate) fn explain(&self) -> Vec<Waiting> {
        let mut waiting = self.operations.explain(&self.dvm.jobs);
        waiting.extend(iof::explain(&self.readers));
        waiting.extend(self.dvm.nodes.explain());
        waiting.extend(self.dvm.jobs.iter().flat_map(|(nspace, job)| job.pauses.explain(nspace)));
        waiting
    }

    /// The tables that still hold something of this job; none must once the job is over.
    ///
    /// Not counted: journals, which are bounded; publications that outlive their job; pulls of a server (which stops those of a
    /// process that leaves); output of the job that its spawner has not read.
    fn traces_of(&self, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.dvm.jobs.contains_key(nspace)),
            ("timers", self.timers.holds(|timer| timer.concerns(nspace))),
            ("operations", self.operations.know(nspace)),
            ("readers of output", self.readers.know(nspace)),
            ("pushes of input", self.inputs.has_pushes_by(nspace)),
            ("relations", self.dvm.relations.know(nspace)),
            ("invitations", self.invitations.know(nspace)),
            ("collectives", self.collectives.know(nspace)),
            ("cleanups", self.cleanups.know(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}

#[cfg(test)]
mod tests;

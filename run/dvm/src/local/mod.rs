//! What one daemon does for the processes of its node: it starts them, carries their streams, answers the upcalls of their PMIx
//! server, and cleans up after them.
//!
//! A [`Local`] knows the description of every job, which contains the location of all ranks, but neither the tree nor the
//! root's decisions. Its input is [`ToLocal`], its output [`FromLocal`].

mod calls;
mod cleanup;
mod commands;
mod control;
mod dmodex;
mod event;
pub(crate) mod fence;
mod host;
mod inspect;
mod iof;
mod launch;
mod procs;
mod requests;
mod restart;
mod stdin;
mod survey;
mod timer;
mod tool;
mod turn;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_core::server::ServerReturn;
use phalanx_core::{CallId, Time, Waiting};
use phalanx_wire::{Nspace, ProcId};

use crate::config::NodeConfig;
use crate::effect::Effect;
use crate::id::NodeId;
use crate::msg::{Down, NodeReport, NodeTable, OpId, Survey, Task, Up};
use crate::ranges::Ranges;
use crate::signals::SIGKILL;
use crate::timers::Timers;

use calls::{Call, Calls};
use commands::Commands;
use dmodex::Modexes;
use fence::Rounds;
use iof::Delivering;
use procs::LocalJob;
use requests::Requests;
use timer::Timer;
use turn::Cx;

pub(crate) use turn::{FromLocal, ToLocal};

#[derive(Debug)]
pub(crate) struct Local {
    config: NodeConfig,
    timers: Timers<Timer>,
    calls: Calls,
    ended: VecDeque<ProcId>,
    tables: Tables,
}

/// The tables of the verbs.
#[derive(Debug, Default)]
struct Tables {
    table: Arc<NodeTable>,
    lost: BTreeSet<NodeId>,
    jobs: BTreeMap<Nspace, LocalJob>,
    rounds: Rounds,
    modexes: Modexes,
    /// Output for readers here, on its way through our server.
    delivering: Delivering,
    requests: Requests,
    commands: Commands,
}

impl Local {
    pub(crate) fn new(config: NodeConfig) -> Local {
        Local {
            config,
            timers: Timers::default(),
            calls: Calls::default(),
            ended: VecDeque::new(),
            tables: Tables::default(),
        }
    }

    /// This node's introduction to the root.
    pub(crate) fn report(&self) -> NodeReport {
        NodeReport {
            hostname: self.config.hostname.clone(),
            slots: self.config.slots,
            max_slots: self.config.max_slots,
            signature: self.config.topology.signature().into(),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(crate) fn handle(&mut self, now: Time, input: ToLocal, out: &mut VecDeque<FromLocal>) {
        let Local { config, timers, calls, ended, tables } = self;
        tables.handle(&mut Cx { now, config, timers, calls, ended, out }, input);
    }

    /// Gives up one process, which was put off until everything else had arrived. `false`: there is none.
    pub(crate) fn go_on(&mut self, now: Time, out: &mut VecDeque<FromLocal>) -> bool {
        let Some(proc) = self.ended.pop_front() else { return false };
        let Local { config, timers, calls, ended, tables } = self;
        tables.give_up(&mut Cx { now, config, timers, calls, ended, out }, &proc);
        true
    }

    /// What is waiting here. Our server explains its own waits.
    pub(crate) fn explain(&self) -> Vec<Waiting> {
        self.tables.modexes.explain(&self.tables.table)
    }

    /// The daemons that contribute to an operation. `None`: it concerns a forgotten job, or processes that have failed.
    pub(crate) fn daemons_of(&self, op: &OpId) -> Option<Ranges> {
        fence::daemons_of(&self.tables.jobs, op)
    }

    /// The members of an operation on `nodes`; no more than a person reads.
    pub(crate) fn members_on(&self, op: &OpId, nodes: &Ranges) -> Vec<ProcId> {
        fence::members_on(&self.tables.jobs, op, nodes)
    }
}

impl Tables {
    fn handle(&mut self, cx: &mut Cx<'_>, input: ToLocal) {
        let Some(input) = self.not_of_commands(cx, input) else { return };
        match input {
            ToLocal::Down(body) => self.on_down(cx, &body),
            ToLocal::Side { from, side } => self.on_side(cx, from, side),
            ToLocal::Taken(pieces) => self.on_taken(cx, pieces),
            ToLocal::GivenUp(op) => self.fail_collective(cx, &op),
            ToLocal::Without(node) => {
                self.lost.insert(node);
                self.modexes.without(cx, node);
            }
            ToLocal::Waits { survey, waiting } => survey::tell_waits(cx, survey, waiting),
            ToLocal::Upcall { call, op } => self.on_upcall(cx, call, op),
            ToLocal::Returned { id, result } => self.on_returned(cx, id, result),
            ToLocal::Spawned { proc, pid, program } => self.on_spawned(cx, &proc, pid, program),
            ToLocal::SpawnFailed { proc, failure } => self.on_spawn_failed(cx, proc, failure),
            ToLocal::Exited { proc, status } => self.on_exited(cx, &proc, status),
            ToLocal::Output { proc, channel, data } => self.on_output(cx, proc, channel, data),
            ToLocal::OutputClosed { proc, channel } => self.on_output_closed(cx, &proc, channel),
            ToLocal::StdinTaken { proc, bytes } => stdin::taken(cx, &proc, bytes),
            ToLocal::StdinRefused { proc } => stdin::refused(cx, &proc),
            ToLocal::Inspected { proc, library } => {
                let job = self.jobs.get_mut(&proc.nspace);
                job.into_iter().for_each(|job| inspect::found(cx, job, &proc, &library));
            }
            ToLocal::Measured { survey, measured } => {
                survey::tell_measured(cx, &self.jobs, survey, *measured);
            }
            ToLocal::Stop => self.stop(cx),
            ToLocal::Tick => {
                // One at a time: the consequences of each timer come before the next timer.
                if let Some(timer) = cx.timers.pop_due(cx.now) {
                    self.on_timer(cx, timer);
                }
            }
        }
    }

    fn on_down(&mut self, cx: &mut Cx<'_>, body: &Down) {
        match body {
            Down::Done { op, outcome } => self.answer_collective(cx, op, outcome),
            Down::Table(table) => self.table = table.clone(),
            Down::SendTopology => {
                let topology = &cx.config.topology;
                let (signature, encoded) = (topology.signature(), topology.encode());
                cx.post(Up::Topology { signature, encoded });
            }
            Down::Start(desc) => self.on_start(cx, desc),
            Down::Control { nspace, ranks, action, pauser } => {
                self.act_on(cx, nspace, ranks.as_ref(), *action, (None, pauser));
            }
            Down::Task { id, task } => match &**task {
                Task::Control { targets, request } => self.on_control_task(cx, id, targets, request),
                Task::Checkpoint { targets, name, limit } => {
                    self.on_checkpoint_task(cx, id, targets, (name, *limit));
                }
                Task::Provision { nodes, image, limit } => {
                    self.on_provision_task(cx, id, nodes, image.as_ref(), *limit);
                }
                Task::Clear { targets } => self.on_clear_task(cx, id, targets),
                Task::Renew { targets } => self.on_renew_task(cx, id, targets),
                Task::Survey(of) => {
                    let survey = Survey { task: id.clone(), of: of.clone() };
                    survey::carry_out(cx, &self.jobs, survey);
                }
            },
            Down::Dead { nspace, ranks } => self.on_dead(nspace, ranks),
            Down::Renewed { nspace, ranks, from } => self.on_renewed(cx, nspace, ranks, from.as_ref()),
            Down::Watch { nspace, ranks } => self.watch(cx, nspace, ranks),
            Down::Expect(op) => self.on_expect(cx, op),
            Down::Forget { nspace } => self.on_forget(cx, nspace),
            Down::Reply { request, reply } => self.requests.answer(cx, *request, reply),
            Down::Say { to, text } => tool::say(cx, to, text),
            Down::Output(output) => self.give_output(cx, output),
            Down::Stdin { nspace, ranks, data } => {
                self.jobs.get(nspace).into_iter().for_each(|job| stdin::give(cx, job, ranks, data));
            }
            Down::StdinEnd { nspace, ranks } => {
                self.jobs.get(nspace).into_iter().for_each(|job| stdin::end(cx, job, ranks));
            }
            // Its own server has notified the clients there.
            Down::Event { except, .. } if *except == Some(cx.config.id) => {}
            Down::Event { event, .. } => event::pass_on(cx, event),
            Down::Announce { event, number, concerned, ago } => {
                event::announce(cx, event, *number, (concerned.as_deref(), *ago));
            }
            // The order to stop comes as [`ToLocal::Stop`].
            Down::Stop => {}
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Connected(nspace) => self.tell_connected(cx, &nspace),
            Timer::Settle(nspace) => self.settle_all(cx, &nspace),
            Timer::Over(proc) => self.give_up(cx, &proc),
            Timer::Inspect(nspace) => {
                let job = self.jobs.get_mut(&nspace);
                job.into_iter().for_each(|job| inspect::on_due(cx, job));
            }
            Timer::Kill(nspace) => self.on_kill_due(cx, &nspace),
            Timer::Reap(nspace) => self.on_reap_due(cx, &nspace),
            Timer::Exited(nspace) => self.tell_exited(cx, &nspace),
            Timer::Drain(nspace) => self.on_drain_over(cx, &nspace),
            Timer::Command(proc) => self.on_command_due(cx, &proc),
            Timer::Retry => self.modexes.ask_again(cx),
            Timer::Waits => self.on_patience_over(cx),
        }
    }

    fn on_returned(&mut self, cx: &mut Cx<'_>, id: CallId, result: ServerReturn) {
        match (cx.calls.take(id), result) {
            (Some(Call::Register(nspace)), ServerReturn::Done(status)) => {
                self.on_registered(cx, &nspace, status);
            }
            (Some(Call::SetupFork(proc)), ServerReturn::Environment(env)) => self.start_proc(cx, &proc, env),
            (Some(Call::Modex { asker, id }), ServerReturn::Modex(result)) => {
                self.modexes.answer(cx, asker, id, result);
            }
            (Some(Call::Modex { asker, id }), ServerReturn::Done(status)) => {
                self.modexes.answer(cx, asker, id, Err(status));
            }
            (Some(Call::Explain(survey)), ServerReturn::Waiting(waiting)) => {
                cx.out.push_back(FromLocal::Explained { survey, waiting });
            }
            // A server that cannot explain itself reports nothing.
            (Some(Call::Explain(survey)), _) => {
                cx.out.push_back(FromLocal::Explained { survey, waiting: Vec::new() });
            }
            (Some(Call::Output { to, piece, bytes }), result) => {
                self.output_left(cx, to, piece, bytes, &result);
            }
            (Some(Call::Told(what)), ServerReturn::Done(status)) if !status.is_success() => {
                tracing::warn!(what, %status, "the server refused");
            }
            (Some(Call::Told(_)), _) => {}
            (Some(call), result) => {
                tracing::error!(?call, ?result, "the server gave an answer of another kind")
            }
            (None, result) => tracing::error!(?result, "the server answered what was not asked"),
        }
    }

    /// Ends everything that this daemon has started.
    fn stop(&mut self, cx: &mut Cx<'_>) {
        for (nspace, job) in std::mem::take(&mut self.jobs) {
            for (rank, _) in job.procs.iter().filter(|(_, proc)| proc.is_alive()) {
                cx.effect(Effect::Signal { proc: ProcId::new(&nspace, *rank), signal: SIGKILL });
            }
            if !job.procs.is_empty() {
                cx.effect(Effect::Forget { nspace, scratch: job.desc.directory(&cx.config.scratch) });
            }
        }
        cx.effect(Effect::Stop);
    }

    /// The tables that still hold something of this job; none must once the job is over.
    ///
    /// Not counted: what is on its way to the root, which acknowledges it within a second.
    fn traces_of(&self, cx: &Cx<'_>, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("calls of the server", cx.calls.know(nspace)),
            ("requests to the root", self.requests.know(nspace)),
            ("output given to the server", self.delivering.know(nspace)),
            ("timers", cx.timers.holds(|timer| timer.concerns(nspace))),
            ("commands", self.commands.know(nspace)),
            ("rounds of collectives", self.rounds.know(nspace)),
            ("values asked for", self.modexes.know(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}

#[cfg(test)]
mod tests;

//! What one daemon does for the processes of its node: it starts them, carries their streams, answers the upcalls of their PMIx
//! server, and cleans up after them.
//!
//! A [`Local`] knows the description of every job, which contains the location of all ranks, but neither the tree nor the
//! root's decisions. Its input is [`ToLocal`], its output [`FromLocal`].

mod calls;
mod cleanup;
mod client;
mod commands;
mod control;
mod dmodex;
mod drain;
mod end;
mod event;
pub(crate) mod fence;
mod freed;
mod inspect;
mod iof;
mod job;
mod launch;
mod log;
mod orders;
mod proc;
mod progress;
mod renewal;
mod requests;
mod restart;
mod stacks;
mod stdin;
mod survey;
mod timer;
mod tool;
mod turn;
mod upcalls;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_core::server::ServerReturn;
use phalanx_core::{CallId, Time, Waiting};
use phalanx_wire::ProcId;

use crate::config::NodeConfig;
use crate::effect::Effect;
use crate::id::NodeId;
use crate::msg::{Down, NodeReport, NodeTable, OpId, Survey, Task, Up};
use crate::ranges::Ranges;
use crate::timers::Timers;

use calls::{Call, Calls};
use commands::Commands;
use dmodex::Modexes;
use fence::Rounds;
use freed::Freed;
use iof::Delivering;
use job::Jobs;
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
    jobs: Jobs,
    rounds: Rounds,
    modexes: Modexes,
    /// Output for readers here, on its way through our server.
    delivering: Delivering,
    requests: Requests,
    commands: Commands,
    freed: Freed,
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
        tables.release(&mut Cx { now, config, timers, calls, ended, out }, &proc);
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
        let Some(input) = self.commands.not_of_these(cx, input) else { return };
        match input {
            ToLocal::Down(body) => self.on_down(cx, &body),
            ToLocal::Side { from, side } => self.modexes.on_side(cx, &self.jobs, from, side),
            ToLocal::Taken(pieces) => {
                let done = iof::taken(cx, &mut self.jobs, pieces);
                done.iter().for_each(|nspace| self.progress(cx, nspace));
            }
            ToLocal::GivenUp(op) => self.rounds.give_up(cx, (&mut self.jobs, &self.table), &op),
            ToLocal::Without(node) => {
                self.lost.insert(node);
                self.modexes.without(cx, node);
            }
            ToLocal::Waits { survey, waiting } => survey::tell_waits(cx, survey, waiting),
            ToLocal::Upcall { call, op } => self.on_upcall(cx, call, op),
            ToLocal::Returned { id, result } => self.on_returned(cx, id, result),
            ToLocal::Spawned { proc, pid, program } => {
                self.in_job(cx, &proc.nspace, |cx, job| launch::spawned(cx, job, proc.rank, (pid, program)));
            }
            ToLocal::SpawnFailed { proc, failure } => {
                self.in_job(cx, &proc.nspace, |cx, job| launch::spawn_failed(cx, job, proc.rank, failure));
            }
            ToLocal::Exited { proc, status } => {
                self.in_job(cx, &proc.nspace, |cx, job| end::exited(cx, job, proc.rank, status));
            }
            ToLocal::Output { proc, channel, data } => {
                let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
                iof::wrote(cx, job, proc.rank, (channel, data));
            }
            ToLocal::OutputClosed { proc, channel } => {
                self.in_job(cx, &proc.nspace, |cx, job| iof::closed(cx, job, proc.rank, channel));
            }
            ToLocal::StdinTaken { proc, bytes } => stdin::taken(cx, &proc, bytes),
            ToLocal::StdinRefused { proc } => stdin::refused(cx, &proc),
            ToLocal::TreeStopped { proc, escaped } => {
                let job = self.jobs.get_mut(&proc.nspace);
                job.into_iter().for_each(|job| control::tree_stopped(cx, job, proc.rank, escaped));
            }
            ToLocal::Inspected { proc, library } => {
                let job = self.jobs.get_mut(&proc.nspace);
                job.into_iter().for_each(|job| inspect::found(cx, job, &proc, &library));
            }
            ToLocal::Measured { survey, measured } => {
                survey::tell_measured(cx, &self.jobs, survey, *measured);
            }
            ToLocal::Logged { task, result } => log::written(cx, task, result),
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
            Down::Done { op, outcome } => {
                self.rounds.answer(cx, (&mut self.jobs, &self.table), op, outcome);
            }
            Down::Table(table) => self.table = table.clone(),
            Down::SendTopology => {
                let topology = &cx.config.topology;
                let (signature, encoded) = (topology.signature(), topology.encode());
                cx.post(Up::Topology { signature, encoded });
            }
            Down::Start(desc) => launch::begin(cx, &mut self.jobs, &self.table, desc),
            Down::Control { nspace, ranks, action, pauser } => {
                let (ranks, why) = (ranks.as_ref(), (None, pauser));
                self.in_job(cx, nspace, |cx, job| drop(control::act_on(cx, job, ranks, *action, why)));
            }
            Down::Task { id, task } => match &**task {
                Task::Control { targets, request } => {
                    control::on_task(cx, &mut self.jobs, id, targets, request);
                    self.progress(cx, &targets.nspace);
                }
                Task::Checkpoint { targets, name, limit } => {
                    self.commands.take_checkpoints(cx, &self.jobs, id, targets, (name, *limit));
                }
                Task::Provision { nodes, image, limit } => {
                    self.commands.provision(cx, id, nodes, image.as_ref(), *limit);
                }
                Task::Log { line, .. } => {
                    cx.effect(Effect::Log { task: id.clone(), line: line.clone() });
                }
                Task::Mail { mail, limit, .. } => self.commands.send_mail(cx, id, mail, *limit),
                Task::Clear { targets } => {
                    restart::clear(cx, &mut self.jobs, id, targets);
                    self.progress(cx, &targets.nspace);
                }
                Task::Renew { targets } => {
                    restart::renew(cx, &mut self.jobs, id, targets);
                    self.progress(cx, &targets.nspace);
                }
                Task::TellFreed { limit } => self.freed.begin_wait(cx, &self.jobs, id, *limit),
                Task::Survey(of) => {
                    let survey = Survey { task: id.clone(), of: of.clone() };
                    survey::carry_out(cx, &self.jobs, &mut self.commands, survey);
                }
            },
            Down::Dead { nspace, ranks } => {
                self.jobs.get_mut(nspace).into_iter().for_each(|job| fence::without(cx, job, ranks));
            }
            Down::Renewed { nspace, ranks, ran, from } => {
                let Some(job) = self.jobs.get_mut(nspace) else { return };
                restart::renewed(cx, job, &self.table, (ranks, ran), from.as_ref());
                self.freed.take_back(nspace, ranks);
                self.modexes.ask_anew(cx, nspace, ranks);
            }
            Down::Watch { nspace, ranks } => self.in_job(cx, nspace, |_, job| end::watch(job, ranks)),
            Down::Expect(op) => self.rounds.expect(cx, &self.jobs, op),
            Down::Forget { nspace } => self.forget(cx, nspace),
            Down::Reply { request, reply } => self.requests.answer(cx, *request, reply),
            Down::Say { to, text } => tool::say(cx, to, text),
            Down::Output(output) => self.delivering.give(cx, &self.jobs, &self.table, output),
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
            Timer::Connected(nspace) => self.in_job(cx, &nspace, |cx, job| client::tell_connected(cx, job)),
            Timer::Freed(nspace) => {
                self.jobs.get(&nspace).into_iter().for_each(|job| self.freed.tell(cx, job));
            }
            Timer::Settle(nspace) => self.in_job(cx, &nspace, end::settle_all),
            Timer::Over(proc) => self.release(cx, &proc),
            Timer::Inspect(nspace) => self.in_job(cx, &nspace, inspect::on_due),
            Timer::Kill(nspace) => self.in_job(cx, &nspace, control::kill_due),
            Timer::Reap(nspace) => self.in_job(cx, &nspace, control::reap_due),
            Timer::Exited(nspace) => self.in_job(cx, &nspace, |cx, job| drain::tell_exited(cx, job)),
            Timer::Drain(nspace) => self.in_job(cx, &nspace, drain::on_due),
            Timer::Command(proc) => self.commands.on_due(cx, &proc),
            Timer::Retry => self.modexes.ask_again(cx),
            Timer::Waits => self.rounds.on_patience_over(cx),
        }
    }

    fn on_returned(&mut self, cx: &mut Cx<'_>, id: CallId, result: ServerReturn) {
        match (cx.calls.take(id), result) {
            (Some(Call::Register(nspace)), ServerReturn::Done(status)) => {
                self.in_job(cx, &nspace, |cx, job| launch::registered(cx, job, status));
            }
            (Some(Call::SetupFork(proc)), ServerReturn::Environment(env)) => {
                self.in_job(cx, &proc.nspace, |cx, job| launch::start(cx, job, proc.rank, env));
            }
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
                self.delivering.left(cx, to, piece, bytes, &result);
            }
            (Some(Call::Notice(what)), ServerReturn::Done(status)) if !status.is_success() => {
                tracing::warn!(what, %status, "the server refused");
            }
            (Some(Call::Notice(_)), _) => {}
            (Some(call), result) => {
                tracing::error!(?call, ?result, "the server gave an answer of another kind")
            }
            (None, result) => tracing::error!(?result, "the server answered what was not asked"),
        }
    }

    /// Releases everything that waits for a process.
    fn release(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.in_job(cx, &proc.nspace, |cx, job| job.release(cx, proc.rank));
    }
}

#[cfg(test)]
mod tests;

//! How the daemons of other hosts are started, from the command until all are up, and how those commands end.
//!
//! A `Starter` exists at the root of a DVM that has a [`crate::Fleet`]. It runs commands (agents), reads what daemons say over
//! them, and tells each who it is and where the others are; from then on daemons speak over links, and the command only
//! shows that its daemons live: its standard input ends with the root, its end is theirs. What happens comes in by calls,
//! what is to be done goes out as `FromStarter`.
//!
//! A host that does not come up makes the boot hopeless. The others get a moment to fail as well, so that all are named; with
//! `--skip-bad-hosts` the tree goes on without it. Each phase has a name and a deadline, which `px why` shows. Spawns that come meanwhile
//! wait in the root's table of operations (`Postponed`).

mod agent;
mod apart;
mod birth;
mod doubt;
mod explain;
mod phase;
mod srun;
mod still;
mod twins;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use phalanx_core::Time;
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::config::{Limits, NodeConfig};
use crate::effect::{Effect, ProcStart, StdinPlan};
use crate::fleet::{Agent, Fleet};
use crate::id::NodeId;
use crate::msg::{ExitStatus, SpawnFailure, charge};
use crate::signals::{SIGKILL, SIGTERM};
use crate::timers::Timers;

use agent::{AgentState, Running};
use birth::Line;
pub use birth::{
    ALIVE, ALIVE_EARLY, Birth, Cradle, LONGEST, Others, STANDS, STANDS_EARLY, failed, greeting, reached_at,
};
use doubt::Doubt;
use phase::{HostState, Phase};
use srun::Remark;
use still::Still;
use twins::Twins;

/// All that a root needs to start the daemons of its fleet.
#[derive(Clone)]
pub struct StartPlan {
    pub fleet: Fleet,
    /// The agents are processes of this namespace, by number. No job has this name.
    pub nspace: Nspace,
    /// The line from which a daemon reads the secret of the DVM.
    pub secret: Arc<str>,
    /// In the syntax of `--network`.
    pub networks: Vec<Text>,
    /// Each daemon is the system server of its host.
    pub is_system: bool,
}

#[derive(Debug)]
pub(crate) struct Starter {
    plan: StartPlan,
    dvm: Arc<str>,
    /// This host.
    hostname: Arc<str>,
    lasts: bool,
    limits: Limits,
    radix: u32,
    agents: Vec<Running>,
    /// The next agent to start; earlier ones were started.
    next: usize,
    hosts: Vec<HostState>,
    /// The addresses of the first daemons, which have others below them.
    inner: Vec<Option<Arc<str>>>,
    /// Until all are up.
    twins: Twins,
    /// How daemons have ended, by the messages of their `srun`.
    ends: BTreeMap<usize, String>,
    /// The last message of Slurm about each host.
    words: BTreeMap<usize, String>,
    /// Why the batch system has ended all of them.
    cancelled: Option<String>,
    /// Since something happened that also happens at the end of the allocation, until it is known.
    doubt: Option<Doubt>,
    /// How often the batch system was asked, and when it last said that the allocation goes on.
    asked: u32,
    believed: Option<Time>,
    /// While the DVM ends: hosts with daemons that have gone.
    gone: BTreeSet<usize>,
    timers: Timers<Timer>,
    /// This process is about to be stopped.
    still: Option<Still>,
    booted: bool,
    /// A daemon could not link to the others.
    unlinked: bool,
    /// The start has failed, and the reason is reported soon.
    failing: bool,
    stopping: bool,
    /// Agents that had not ended by themselves were killed.
    killed: bool,
    reported_over: bool,
}

/// An action to take; actions are carried out in order.
#[derive(Debug)]
pub(crate) enum FromStarter {
    Effect(Effect),
    /// The daemon will not come up, or is gone.
    Lost {
        node: NodeId,
        why: String,
    },
    /// The batch system has ended the allocation of the hosts.
    AllocationEnded {
        why: String,
    },
    /// Daemons have been told what they waited for, or are started again without those that had not come: the limit for the whole start
    /// counts from now.
    GoesOn,
    /// The DVM cannot come up as requested. The reason follows.
    Failing,
    Failed {
        error: String,
    },
    Note(String),
    /// How many hosts are up, or given up.
    Progress {
        done: u32,
        of: u32,
    },
    /// After [`Starter::stand_still`]: this process may be stopped.
    Still,
    /// After [`Starter::stop`]: nothing runs any more.
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The phase of this host has taken too long.
    Phase(usize),
    /// What an agent wrote before its end has arrived by now.
    Exited(usize),
    /// The same for a daemon.
    Ended(usize),
    /// The daemons of an agent have gone, and it has had time to notice.
    Alone(usize),
    /// It was asked to end then, and has had time to.
    Deaf(usize),
    /// Other hosts have had time to fail as well.
    Failing,
    /// Agents have had time to end.
    Stopping,
    /// Daemons without complete instructions get a sign of life.
    Alive,
    /// The batch system is asked again, or has not answered.
    Doubt,
}

type Out = VecDeque<FromStarter>;

impl Starter {
    /// `inner`: the number of daemons, including the root, that have others below them.
    pub(crate) fn new(plan: StartPlan, config: &NodeConfig, inner: u32) -> Starter {
        let state = |_: &_| HostState { phase: Phase::Waiting, since: Time::default() };
        let mut known = vec![None; inner.max(1) as usize];
        known[0] = Some(config.address.clone());
        Starter {
            agents: plan.fleet.agents.iter().map(|_| Running::default()).collect(),
            next: 0,
            hosts: plan.fleet.hosts.iter().map(state).collect(),
            inner: known,
            twins: Twins::default(),
            ends: BTreeMap::new(),
            words: BTreeMap::new(),
            cancelled: None,
            doubt: None,
            asked: 0,
            believed: None,
            gone: BTreeSet::new(),
            timers: Timers::default(),
            still: None,
            booted: false,
            unlinked: false,
            failing: false,
            stopping: false,
            killed: false,
            reported_over: false,
            dvm: config.dvm.clone(),
            hostname: config.hostname.clone(),
            lasts: config.lasts,
            limits: config.limits.clone(),
            radix: config.radix,
            plan,
        }
    }

    /// Whether a process is one of the agents.
    pub(crate) fn has(&self, proc: &ProcId) -> bool {
        proc.nspace == self.plan.nspace
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.still.as_ref().map_or_else(|| self.timers.next(), Still::deadline)
    }

    /// Nothing runs, and nothing is to be started.
    pub(crate) fn is_over(&self) -> bool {
        self.agents.iter().all(|agent| matches!(agent.state, AgentState::Waiting | AgentState::Over))
    }

    /// Handles the very first turn.
    pub(crate) fn begin(&mut self, now: Time, out: &mut Out) {
        self.tell_progress(out);
        self.go_on(now, out);
        if !self.hosts.is_empty() {
            self.timers.set(now.after(EACH_ALIVE), Timer::Alive);
        }
    }

    /// Starts as many agents as may be starting at a time.
    fn go_on(&mut self, now: Time, out: &mut Out) {
        let is_early = |host: &usize| matches!(self.hosts[*host].phase, Phase::Starting | Phase::Settling);
        let mut early = (0..self.hosts.len()).filter(is_early).count();
        while early < MOST_AT_ONCE
            && !self.stopping
            && self.still.is_none()
            && let Some(agent) = self.plan.fleet.agents.get(self.next)
        {
            let proc = ProcId::new(&self.plan.nspace, Rank(self.next as u32));
            let hosts = agent.hosts.clone();
            early += hosts.len();
            out.push_back(FromStarter::Effect(Effect::Spawn(Box::new(ProcStart {
                proc: proc.clone(),
                argv: self.words(agent).into(),
                env: self.plan.fleet.env.clone(),
                cwd: None,
                cpus: None,
                stdin: StdinPlan::Pipe,
                diag: false,
                // An `srun` that is killed while it launches leaves its step on the hosts.
                asked_first: true,
                may_leave: true,
            }))));
            for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
                let credit = Effect::Credit { proc: proc.clone(), channel, bytes: AHEAD };
                out.push_back(FromStarter::Effect(credit));
            }
            self.agents[self.next].state = AgentState::Running;
            self.next += 1;
            hosts.into_iter().for_each(|host| self.enter(now, host, Phase::Starting));
        }
    }

    pub(crate) fn on_spawn_failed(
        &mut self,
        now: Time,
        proc: &ProcId,
        failure: &SpawnFailure,
        out: &mut Out,
    ) {
        let Some(agent) = self.agent(proc) else { return self.on_no_answer(now, proc) };
        self.agents[agent].state = AgentState::Over;
        for host in self.plan.fleet.agents[agent].hosts.clone() {
            self.lose(now, host, failure.to_string(), out);
        }
        self.go_on(now, out);
        self.try_over(out);
    }

    pub(crate) fn on_output(
        &mut self,
        now: Time,
        proc: &ProcId,
        channel: IofChannel,
        data: &[u8],
        out: &mut Out,
    ) {
        let Some(agent) = self.agent(proc) else { return self.on_answer(proc, data, channel, out) };
        let credit = Effect::Credit { proc: proc.clone(), channel, bytes: charge(data.len()) };
        out.push_back(FromStarter::Effect(credit));
        if channel == IofChannel::STDERR {
            for line in self.agents[agent].errors(data) {
                tracing::debug!(agent, line, "an agent says");
                self.on_remark(now, agent, &line);
            }
            return;
        }
        for line in self.agents[agent].lines(data) {
            self.on_line(now, agent, &line, out);
        }
    }

    pub(crate) fn on_output_closed(&mut self, now: Time, proc: &ProcId, channel: IofChannel, out: &mut Out) {
        let Some(agent) = self.agent(proc) else { return self.on_answer_end(now, proc, false, out) };
        let running = &mut self.agents[agent];
        match channel {
            IofChannel::STDERR => running.err_closed = true,
            _ => running.out_closed = true,
        }
        if running.out_closed && running.err_closed {
            self.on_over(now, agent, out);
        }
    }

    pub(crate) fn on_exited(&mut self, now: Time, proc: &ProcId, status: ExitStatus, out: &mut Out) {
        let Some(agent) = self.agent(proc) else { return self.on_answer_end(now, proc, true, out) };
        let running = &mut self.agents[agent];
        running.state = AgentState::Exited(status);
        if running.out_closed && running.err_closed {
            self.on_over(now, agent, out);
        } else {
            self.timers.set(now.after(LAST_WORDS), Timer::Exited(agent));
        }
    }

    /// The daemon is linked to the others, and has reported its host name and topology. `false`: it is not accepted.
    pub(crate) fn on_card(&mut self, now: Time, node: NodeId, hostname: &Arc<str>, out: &mut Out) -> bool {
        let Some(host) = self.host_of(node) else { return true };
        if self.is_lost(host) {
            return false;
        }
        if !self.booted
            && let Some(twin) = self.twins.twin_of(host, hostname)
            && !self.is_lost(twin)
        {
            let twin = &self.plan.fleet.hosts[twin].name;
            let why = format!("it is the same host as {twin}: call it by one name");
            self.enter(now, host, Phase::Up);
            self.lose(now, host, why, out);
            return false;
        }
        self.enter(now, host, Phase::Up);
        self.tell_progress(out);
        self.try_still(now, out);
        true
    }

    /// A link to a daemon has ended. When the DVM ends, its agent only has to notice that.
    pub(crate) fn on_unlinked(&mut self, now: Time, node: NodeId) {
        let Some(host) = self.host_of(node).filter(|_| self.stopping) else { return };
        self.gone.insert(host);
        let agents = &self.plan.fleet.agents;
        if let Some(agent) = agents.iter().position(|agent| agent.hosts.contains(&host))
            && agents[agent].hosts.iter().all(|host| self.gone.contains(host) || self.is_lost(*host))
        {
            self.timers.set(now.after(AGENT_GRACE), Timer::Alone(agent));
        }
    }

    fn tell_progress(&self, out: &mut Out) {
        let done = self.hosts.iter().filter(|host| matches!(host.phase, Phase::Up | Phase::Lost(_))).count();
        out.push_back(FromStarter::Progress { done: done as u32, of: self.hosts.len() as u32 });
    }

    /// The others have given the daemon up.
    pub(crate) fn on_lost(&mut self, now: Time, node: NodeId, why: &str, out: &mut Out) {
        if let Some(host) = self.host_of(node)
            && !self.is_lost(host)
        {
            self.enter(now, host, Phase::Lost(why.to_owned()));
            self.after_loss(now, host, out);
            self.try_meet(now, out);
        }
    }

    /// Whether the DVM cannot come up as requested.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing
    }

    /// Whether there is no DVM without this daemon.
    pub(crate) fn needs(&self, node: NodeId) -> bool {
        self.host_of(node).is_some() && !self.booted && !self.stopping && !self.plan.fleet.skip_bad
    }

    /// All daemons that are not lost know each other.
    pub(crate) fn on_booted(&mut self) {
        self.booted = true;
        self.twins = Twins::default();
        self.timers.cancel(|timer| matches!(timer, Timer::Phase(_) | Timer::Failing));
    }

    /// The DVM ends: the agents end by themselves, or are ended.
    pub(crate) fn stop(&mut self, now: Time, out: &mut Out) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        if let Some(unfinished) = self.unfinished(now).filter(|_| !self.failing) {
            out.push_back(FromStarter::Note(format!("the start was given up; {unfinished}")));
        }
        self.timers.set(now.after(STOP_GRACE), Timer::Stopping);
        for (number, agent) in self.agents.iter().enumerate() {
            let is_up = |host: &usize| self.hosts[*host].phase == Phase::Up;
            if agent.state != AgentState::Running {
                continue;
            }
            // Without an accepted daemon behind it, an agent has nothing to wind up.
            match self.plan.fleet.agents[number].hosts.iter().any(is_up) {
                true => {
                    let proc = ProcId::new(&self.plan.nspace, Rank(number as u32));
                    out.push_back(FromStarter::Effect(Effect::StdinEnd { proc }));
                }
                false => self.signal(number, SIGTERM, out),
            }
        }
        self.try_over(out);
    }

    /// Handles due timers.
    pub(crate) fn tick(&mut self, now: Time, out: &mut Out) {
        self.try_still(now, out);
        while self.still.is_none()
            && let Some(timer) = self.timers.pop_due(now)
        {
            match timer {
                Timer::Phase(host) => self.on_phase_due(now, host, out),
                Timer::Exited(agent) => self.on_over(now, agent, out),
                Timer::Ended(host) => self.on_ended(now, host, out),
                Timer::Alone(agent) => {
                    self.signal(agent, SIGTERM, out);
                    self.timers.set(now.after(DEAF_GRACE), Timer::Deaf(agent));
                }
                Timer::Deaf(agent) => self.signal(agent, SIGKILL, out),
                Timer::Failing => out.push_back(FromStarter::Failed { error: self.failure() }),
                Timer::Stopping if self.killed => self.give_agents_up(out),
                Timer::Stopping => self.kill_agents(now, out),
                Timer::Alive => self.say_alive(now, out),
                Timer::Doubt => self.on_doubt_due(now, out),
            }
        }
    }

    fn agent(&self, proc: &ProcId) -> Option<usize> {
        Some(proc.rank.0 as usize).filter(|agent| *agent < self.agents.len())
    }

    fn host_of(&self, node: NodeId) -> Option<usize> {
        Some(node.0.checked_sub(1)? as usize).filter(|host| *host < self.hosts.len())
    }

    fn enter(&mut self, now: Time, host: usize, phase: Phase) {
        if !matches!(phase, Phase::Up | Phase::Lost(_)) {
            self.timers.set(now.after(self.limits.agent), Timer::Phase(host));
        }
        self.hosts[host] = HostState { phase, since: now };
    }

    fn on_line(&mut self, now: Time, agent: usize, line: &str, out: &mut Out) {
        let Agent { hosts, labels, .. } = &self.plan.fleet.agents[agent];
        let labelled = || {
            let (at, line) = line.split_once(": ")?;
            Some((at.trim().parse::<usize>().ok()?, line))
        };
        let Some((at, line)) = (if *labels { labelled() } else { Some((0, line)) }) else { return };
        let Some(&host) = hosts.get(at) else { return };
        match Line::of(line) {
            Line::Greeting if self.hosts[host].phase == Phase::Starting => {
                self.enter(now, host, Phase::Settling);
                self.try_give_birth(now, agent, out);
            }
            Line::Reached(addresses) if self.hosts[host].phase == Phase::Settling => {
                self.enter(now, host, Phase::Joining);
                self.twins.reached(host, addresses);
                if let Some(place) = self.inner.get_mut(host + 1) {
                    *place = Some(addresses.into());
                }
                self.try_meet(now, out);
                self.go_on(now, out);
            }
            Line::Failed(_) if self.waits_for_others(host) && self.lose_absent(now, agent, out) => {}
            Line::Failed(why) if self.hosts[host].phase == Phase::Up => {
                self.lose(now, host, format!("its daemon has ended: {why}"), out);
            }
            Line::Failed(why) if !self.is_lost(host) => {
                self.unlinked |= self.hosts[host].phase == Phase::Joining;
                self.lose(now, host, why.to_owned(), out);
            }
            Line::Stranger(why) if !self.is_lost(host) => self.lose(now, host, why, out),
            Line::Other if self.hosts[host].phase == Phase::Starting => {
                let goes_on = self.agents[agent].hear_other(line);
                if !goes_on {
                    self.lose(now, host, "what runs there is not px, but writes without end".to_owned(), out);
                }
            }
            _ => {}
        }
    }

    /// A line of an agent's standard error.
    fn on_remark(&mut self, now: Time, agent: usize, line: &str) {
        let Agent { hosts, labels, .. } = &self.plan.fleet.agents[agent];
        let host_of = |task: usize| hosts.get(task).copied();
        let text = match if *labels { Remark::of(line) } else { Remark::Other(None, line) } {
            Remark::Ended(tasks, how) => {
                for host in tasks.into_iter().filter_map(host_of) {
                    self.ends.insert(host, how.to_owned());
                    self.timers.set(now.after(LAST_WORDS), Timer::Ended(host));
                }
                return;
            }
            Remark::Cancelled(what) => {
                self.cancelled.get_or_insert_with(|| what.to_owned());
                return;
            }
            Remark::Echo => return,
            Remark::Other(Some(task), text) => {
                if let Some(host) = host_of(task).filter(|_| text.starts_with("slurmstepd")) {
                    self.words.insert(host, text.to_owned());
                }
                text
            }
            Remark::Other(None, text) => text,
        };
        self.agents[agent].keep_error(text);
    }

    /// Sends the secret only when all daemons behind the agent have sent their greeting: before that, another program could
    /// read it.
    fn try_give_birth(&mut self, now: Time, agent: usize, out: &mut Out) {
        let hosts = &self.plan.fleet.agents[agent].hosts;
        let any_in = |phase: Phase| hosts.iter().any(|host| self.hosts[*host].phase == phase);
        if self.still.is_some()
            || self.agents[agent].born
            || any_in(Phase::Starting)
            || !any_in(Phase::Settling)
        {
            return;
        }
        self.agents[agent].born = true;
        self.enter_again(now, agent, &Phase::Settling, out);
        let hosts = &self.plan.fleet.agents[agent].hosts;
        let cradle = |host: &usize| {
            let far = &self.plan.fleet.hosts[*host];
            Cradle { node: NodeId(*host as u32 + 1), slots: far.slots, max_slots: far.max_slots }
        };
        let birth = Birth {
            dvm: self.dvm.clone(),
            root: self.hostname.clone(),
            size: self.hosts.len() as u32 + 1,
            radix: self.radix,
            networks: self.plan.networks.clone(),
            lasts: self.lasts,
            is_system: self.plan.is_system,
            limits: self.limits.clone(),
            cradles: hosts.iter().map(cradle).collect(),
        };
        let mut bytes = self.plan.secret.as_bytes().to_vec();
        bytes.extend(birth.to_bytes());
        self.say(agent, bytes.into(), out);
    }

    /// Sends the addresses of inner daemons once they are known, so that the daemons can connect to each other.
    fn try_meet(&mut self, now: Time, out: &mut Out) {
        let is_known = |(node, address): (usize, &Option<Arc<str>>)| {
            address.is_some() || node.checked_sub(1).is_some_and(|host| self.is_lost(host))
        };
        if self.still.is_some() || !self.inner.iter().enumerate().all(is_known) {
            return;
        }
        let known = self.inner.iter().enumerate();
        let addresses = known.filter_map(|(node, at)| Some((NodeId(node as u32), at.clone()?))).collect();
        let others: Arc<[u8]> = Others { addresses }.to_bytes().into();
        for agent in 0..self.next {
            let joins = |host: &usize| self.hosts[*host].phase == Phase::Joining;
            if !self.agents[agent].met && self.plan.fleet.agents[agent].hosts.iter().any(joins) {
                self.agents[agent].met = true;
                self.enter_again(now, agent, &Phase::Joining, out);
                self.say(agent, others.clone(), out);
            }
        }
        self.go_on(now, out);
    }

    fn say(&self, agent: usize, data: Arc<[u8]>, out: &mut Out) {
        let proc = ProcId::new(&self.plan.nspace, Rank(agent as u32));
        out.push_back(FromStarter::Effect(Effect::Stdin { proc, data }));
    }

    /// Sends a sign of life: a daemon whose root is gone may never see the end of its input, if the process that relays it is
    /// gone, too.
    fn say_alive(&mut self, now: Time, out: &mut Out) {
        if self.booted || self.stopping {
            return;
        }
        self.say_to_waiting(ALIVE_EARLY, ALIVE, out);
        self.timers.set(now.after(EACH_ALIVE), Timer::Alive);
    }

    /// To daemons that have not been told all yet, before the secret the one, after it the other.
    fn say_to_waiting(&self, early: u8, word: [u8; 4], out: &mut Out) {
        for (number, agent) in self.agents.iter().enumerate() {
            match agent {
                Running { state: AgentState::Running, met: false, born: false, .. } => {
                    self.say(number, [early].as_slice().into(), out);
                }
                Running { state: AgentState::Running, met: false, born: true, .. } => {
                    self.say(number, word.as_slice().into(), out);
                }
                _ => {}
            }
        }
    }

    fn is_lost(&self, host: usize) -> bool {
        self.hosts[host].is_lost()
    }

    fn on_phase_due(&mut self, now: Time, host: usize, out: &mut Out) {
        let HostState { phase, since } = &self.hosts[host];
        if now.since(*since) < self.limits.agent
            || matches!(phase, Phase::Waiting | Phase::Up | Phase::Lost(_))
            || self.waits_for_others(host)
        {
            return;
        }
        let why = format!("nothing has come of it for {} s", now.since(*since).as_secs());
        if *phase == Phase::Starting
            && let Some(agent) = self.agent_of(host)
        {
            self.set_apart(now, agent, out);
        }
        self.lose(now, host, why, out);
        self.go_on(now, out);
    }

    /// An agent has ended, and with it its daemons.
    fn on_over(&mut self, now: Time, agent: usize, out: &mut Out) {
        let AgentState::Exited(status) = self.agents[agent].state else { return };
        self.agents[agent].state = AgentState::Over;
        if !self.stopping {
            self.set_apart(now, agent, out);
            let reason = self.agents[agent].reason(status);
            for host in self.to_blame(agent) {
                let of_all = || match (&self.hosts[host].phase, self.plan.fleet.agents[agent].labels) {
                    (Phase::Up, true) => format!("the srun that runs it has ended: {reason}"),
                    _ => reason.clone(),
                };
                let reason = self.end_of(host).unwrap_or_else(of_all);
                self.lose_ended(now, host, reason, out);
            }
        }
        self.go_on(now, out);
        self.try_over(out);
    }

    /// A daemon has ended, but its agent has not.
    fn on_ended(&mut self, now: Time, host: usize, out: &mut Out) {
        if let Some(reason) = self.end_of(host).filter(|_| !self.stopping) {
            self.lose_ended(now, host, reason, out);
        }
    }

    fn lose_ended(&mut self, now: Time, host: usize, reason: String, out: &mut Out) {
        let why = match self.hosts[host].phase {
            Phase::Lost(_) => return,
            Phase::Up => format!("its daemon has ended: {reason}"),
            _ => reason,
        };
        self.lose(now, host, why, out);
    }

    /// The messages of `srun` about the end of a daemon.
    fn end_of(&self, host: usize) -> Option<String> {
        let how = self.ends.get(&host);
        let text =
            self.cancelled.as_ref().or_else(|| self.words.get(&host).filter(|_| how.is_some())).or(how)?;
        let hint = if text.contains("execve") {
            "; if px is at another place there, '--px-path' names it"
        } else {
            ""
        };
        Some(format!("{text}{hint}"))
    }

    fn lose(&mut self, now: Time, host: usize, why: String, out: &mut Out) {
        let phase = std::mem::replace(&mut self.hosts[host].phase, Phase::Lost(why.clone()));
        let told = match phase {
            Phase::Up => why,
            phase => format!("{phase}: {why}"),
        };
        self.hosts[host] = HostState { phase: Phase::Lost(told.clone()), since: now };
        out.push_back(FromStarter::Lost { node: NodeId(host as u32 + 1), why: told });
        self.after_loss(now, host, out);
        self.try_meet(now, out);
    }

    /// Handles the consequences of a host's loss for its agent, and for the start.
    fn after_loss(&mut self, now: Time, host: usize, out: &mut Out) {
        if let Some(agent) = self.agent_of(host) {
            match self.plan.fleet.agents[agent].hosts.iter().all(|host| self.is_lost(*host)) {
                true => self.signal(agent, SIGKILL, out),
                false => self.try_give_birth(now, agent, out),
            }
        }
        if self.booted || self.stopping {
            return;
        }
        if self.plan.fleet.skip_bad {
            let name = &self.plan.fleet.hosts[host].name;
            if let Phase::Lost(why) = &self.hosts[host].phase {
                out.push_back(FromStarter::Note(format!("{name} is left out: {why}")));
            }
        } else if !std::mem::replace(&mut self.failing, true) {
            self.timers.set(now.after(OTHERS), Timer::Failing);
            // Before the loss itself.
            out.push_front(FromStarter::Failing);
        }
    }

    fn try_over(&mut self, out: &mut Out) {
        if self.stopping && self.is_over() && !std::mem::replace(&mut self.reported_over, true) {
            out.push_back(FromStarter::Over);
        }
    }

    fn kill_agents(&mut self, now: Time, out: &mut Out) {
        self.killed = true;
        self.timers.set(now.after(STOP_GRACE), Timer::Stopping);
        (0..self.agents.len()).for_each(|agent| self.signal(agent, SIGKILL, out));
    }

    /// Not even a kill has ended them: stop waiting for them.
    fn give_agents_up(&mut self, out: &mut Out) {
        self.agents.iter_mut().for_each(|agent| agent.state = AgentState::Over);
        self.try_over(out);
    }

    /// SIGTERM first: an `srun` that is killed while it launches leaves its step on the hosts.
    fn signal(&self, agent: usize, signal: i32, out: &mut Out) {
        if self.agents[agent].state == AgentState::Running {
            let proc = ProcId::new(&self.plan.nspace, Rank(agent as u32));
            out.push_back(FromStarter::Effect(Effect::Signal { proc, signal }));
        }
    }
}

fn few<T: AsRef<str>>(names: &[T], separator: &str) -> String {
    let shown = names.iter().take(MOST_NAMED).map(T::as_ref).collect::<Vec<_>>().join(separator);
    match names.len().checked_sub(MOST_NAMED) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

/// Keeps the secret out of logs.
impl fmt::Debug for StartPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartPlan").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

/// How often daemons that wait for instructions get a sign of life; without one they wait for [`HEARD_OF`] at most.
const EACH_ALIVE: std::time::Duration = std::time::Duration::from_secs(1);
/// A daemon without a link ends if it has received nothing for so long.
pub const HEARD_OF: std::time::Duration = std::time::Duration::from_secs(10);
/// The most hosts that are being started at the same time.
const MOST_AT_ONCE: usize = 64;
/// What an agent may write ahead of us.
const AHEAD: usize = 64 << 10;
/// How long output written before an agent's end may take to arrive.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(500);
/// The delay after the first failing host, so that the report includes others.
const OTHERS: std::time::Duration = std::time::Duration::from_millis(300);
/// How long agents may take to end by themselves.
const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(5);
/// How long an agent may take after its daemons have gone.
const AGENT_GRACE: std::time::Duration = std::time::Duration::from_millis(500);
/// How long it may take when it was asked to end then: an `srun` waits for a `slurmstepd` that was killed.
const DEAF_GRACE: std::time::Duration = std::time::Duration::from_secs(1);
const MOST_NAMED: usize = 10;

#[cfg(test)]
mod tests;

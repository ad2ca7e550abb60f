//! The world: delivers events to the nodes in the order of time, and carries out the nodes' effects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::{
    Cleanup, Control, Effect, ExitStatus, Input, JobRequest, Limits, LogLine, Measured, MpiLibrary, Node,
    NodeConfig, NodeId, NodeUsage, ProcStart, Report, Rules, SpawnFailure, SpawnStep, Tree, Usage,
};
use phalanx_spec::IofChannel;
use phalanx_topo::Topology;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::agents::{Agents, Commands, Deed};
use crate::net::Net;
use crate::process::{Fate, Next, Pipes};
use crate::random::Random;
use crate::script::{RankServer, Script};
use crate::user::User;

/// The parameters of a world.
pub struct Setup<S> {
    pub seed: u64,
    pub nodes: u32,
    pub radix: u32,
    /// Cores of each node.
    pub cores: u32,
    pub limits: Limits,
    /// The longest latency of a message between two daemons.
    pub latency: Duration,
    pub server: Box<dyn FnMut(NodeId) -> S>,
}

pub struct World<S: RankServer> {
    pub now: Time,
    pub random: Random,
    pub user: User,
    /// Every process that was ever started.
    pub procs: BTreeMap<ProcId, Fate>,
    /// The paths that daemons have to remove, and those that they have removed, in order.
    pub registered: BTreeMap<(NodeId, Nspace, Text), Cleanup>,
    pub removed: Vec<(NodeId, Text)>,
    /// The lines that daemons have written for processes that log.
    pub logged: Vec<(NodeId, LogLine)>,
    /// The MPI libraries that processes will be found to have loaded.
    pub loaded: BTreeMap<ProcId, MpiLibrary>,
    /// The directories that were created for processes.
    pub made: Vec<Text>,
    pub(crate) commands: Commands,
    /// The configuration of daemons that commands start.
    pub(crate) config: Option<Box<dyn Fn(NodeId) -> NodeConfig>>,
    pub(crate) server: Box<dyn FnMut(NodeId) -> S>,
    nodes: Vec<Option<Node<S>>>,
    net: Net,
    events: BTreeMap<(Time, u64), Event>,
    numbered: u64,
    /// How many processes were started so far.
    pids: u32,
    scripts: Box<dyn FnMut(&ProcId) -> Script>,
    pipes: BTreeMap<ProcId, Pipes>,
    ticks: Vec<Option<Time>>,
    requests: u64,
    steps: u64,
}

pub(crate) enum Event {
    LinkUp(NodeId, NodeId),
    LinkDown {
        to: NodeId,
        peer: NodeId,
    },
    Bytes {
        to: NodeId,
        from: NodeId,
        link: u64,
    },
    Tick(NodeId),
    Start(NodeId, Box<ProcStart>),
    Proc(ProcId),
    Wake(ProcId),
    /// For the process that had this pid; another may have replaced it.
    Signal(ProcId, u32, i32),
    TreeStopped(NodeId, ProcId),
    Reaped(ProcId, u32, ExitStatus),
    StreamsClosed(ProcId),
    Taken(usize),
    Stdin(Nspace, usize),
    Crash(NodeId),
    Cut(NodeId, NodeId),
    Stall(NodeId, NodeId, Duration),
    Agent(ProcId, Deed),
}

impl<S: RankServer> World<S> {
    /// A world in which all daemons exist and begin to link up.
    pub fn new(setup: Setup<S>) -> World<S> {
        let (nodes, radix) = (setup.nodes, setup.radix);
        let mut world = World::empty(setup);
        let Some(config) = world.config.take() else { return world };
        for id in 0..nodes {
            let server = (world.server)(NodeId(id));
            world.put(NodeId(id), Node::new(config(NodeId(id)), server));
        }
        for id in 0..nodes {
            let at = world.soon(100_000_000);
            world.at(at, Event::Tick(NodeId(id)));
            if let Some(parent) = (id > 0).then(|| NodeId((id - 1) / radix.max(1))) {
                let at = world.soon(100_000_000);
                world.at(at, Event::LinkUp(parent, NodeId(id)));
            }
        }
        world
    }

    /// A world in which only the root exists, and starts the others.
    pub fn starting(setup: Setup<S>, mut agents: Agents) -> World<S> {
        let hosts: usize = agents.hosts.iter().sum();
        let mut world = World::empty(Setup { nodes: hosts as u32 + 1, ..setup });
        let Some(config) = &world.config else { return world };
        let plan = agents.plan();
        let called = plan.fleet.hosts.iter().map(|host| host.name.clone()).collect();
        let config = NodeConfig { called, ..config(NodeId::ROOT) };
        world.commands = Commands::new(&mut agents, &plan);
        let server = (world.server)(NodeId::ROOT);
        world.put(NodeId::ROOT, Node::new(config, server).starting(plan));
        world.at(Time(1), Event::Tick(NodeId::ROOT));
        world
    }

    fn empty(setup: Setup<S>) -> World<S> {
        let topology = Arc::new(Topology::synthetic(1, 1, 1, setup.cores.max(1), 1));
        let tree = Tree::new(setup.nodes, setup.radix);
        let Setup { seed, nodes, radix, limits, latency, server, .. } = setup;
        let config = move |NodeId(id): NodeId| NodeConfig {
            env: Vec::new(),
            id: NodeId(id),
            size: nodes,
            radix,
            dvm: "world".into(),
            first_job: 1,
            hostname: format!("n{id}").into(),
            topology: topology.clone(),
            slots: Default::default(),
            max_slots: None,
            address: format!("sim:{id}").into(),
            lineage: tree.ancestors(NodeId(id)).map(|a| (a, format!("sim:{}", a.0).into())).collect(),
            uid: 1000,
            gid: 1000,
            addresses: Vec::new(),
            called: Vec::new(),
            takes_ranks: true,
            scratch: "/scratch".into(),
            lasts: false,
            rules: Rules::default(),
            clock: Duration::ZERO,
            limits: limits.clone(),
        };
        World {
            now: Time(0),
            random: Random::new(seed),
            user: User::default(),
            procs: BTreeMap::new(),
            registered: BTreeMap::new(),
            loaded: BTreeMap::new(),
            made: Vec::new(),
            removed: Vec::new(),
            logged: Vec::new(),
            commands: Commands::default(),
            config: Some(Box::new(config)),
            server,
            nodes: (0..nodes).map(|_| None).collect(),
            net: Net::new(latency),
            events: BTreeMap::new(),
            numbered: 0,
            pids: 0,
            scripts: Box::new(|_| Script::default()),
            pipes: BTreeMap::new(),
            ticks: vec![None; nodes as usize],
            requests: 0,
            steps: 0,
        }
    }

    pub(crate) fn put(&mut self, id: NodeId, node: Node<S>) {
        if let Some(place) = self.nodes.get_mut(id.0 as usize) {
            *place = Some(node);
        }
    }

    /// Sets the script that each process follows.
    pub fn script(&mut self, scripts: impl FnMut(&ProcId) -> Script + 'static) {
        self.scripts = Box::new(scripts);
    }

    /// Submits a job for the user. Returns the request's number.
    pub fn submit(&mut self, job: JobRequest) -> u64 {
        self.requests += 1;
        let request = self.requests;
        self.input(NodeId(0), Input::Submit { request, job: Box::new(job) });
        request
    }

    pub fn control(&mut self, nspace: &Nspace, action: Control) {
        self.input(NodeId(0), Input::Control { nspace: nspace.clone(), action });
    }

    /// The data of the launcher's standard input.
    pub fn feed_stdin(&mut self, nspace: &Nspace, bytes: &[u8]) {
        self.user.stdin.insert(nspace.clone(), bytes.iter().copied().collect());
    }

    /// The daemon and its processes vanish at `at`.
    pub fn crash_at(&mut self, at: Time, node: NodeId) {
        self.at(at, Event::Crash(node));
    }

    /// The link between two daemons breaks at `at`, if there is one.
    pub fn cut_at(&mut self, at: Time, a: NodeId, b: NodeId) {
        self.at(at, Event::Cut(a, b));
    }

    /// From `at` on nothing passes between two daemons for a while, in either direction; then all of it arrives.
    pub fn stall_at(&mut self, at: Time, a: NodeId, b: NodeId, span: Duration) {
        self.at(at, Event::Stall(a, b, span));
    }

    /// Ends the DVM for the user.
    pub fn shut_down(&mut self) {
        self.input(NodeId::ROOT, Input::Shutdown);
    }

    /// Separates these daemons from all others, without closing any link.
    pub fn cut_off(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        self.net.cut_off(nodes);
    }

    pub fn signal(&mut self, proc: &ProcId, signal: i32) {
        if let Some(pid) = self.procs.get(proc).map(|fate| fate.pid) {
            self.at(self.now, Event::Signal(proc.clone(), pid, signal));
        }
    }

    pub fn node(&self, id: NodeId) -> Option<&Node<S>> {
        self.nodes.get(id.0 as usize)?.as_ref()
    }

    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Node<S>> {
        self.nodes.get_mut(id.0 as usize)?.as_mut()
    }

    pub fn is_alive(&self, id: NodeId) -> bool {
        self.node(id).is_some()
    }

    /// How many messages have crossed links so far.
    pub fn messages(&self) -> u64 {
        self.net.messages
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Lets time pass until `done`; panics with all waiting operations if that takes longer than `limit`.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&World<S>) -> bool) {
        let end = self.now.after(limit);
        while !done(self) {
            assert!(
                self.step_before(end),
                "not done within {limit:?} of simulated time:\n{}",
                self.explain()
            );
        }
    }

    /// Lets this much time pass.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.step_before(end) {}
        self.now = end;
    }

    /// All waiting operations, one a line.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for node in self.nodes.iter().flatten() {
            for waiting in node.explain().into_iter().take(20) {
                text.push_str(&format!("{waiting:?}\n"));
            }
        }
        for (proc, fate) in self.procs.iter().filter(|(_, fate)| fate.ended.is_none()).take(20) {
            text.push_str(&format!(
                "{proc} on {:?}: {:?} then {:?}\n",
                fate.node,
                fate.asking,
                fate.steps.front()
            ));
        }
        text
    }

    fn step_before(&mut self, end: Time) -> bool {
        let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) else {
            return false;
        };
        let ((at, _), event) = entry.remove_entry();
        self.now = at;
        self.steps += 1;
        self.on_event(event);
        true
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::LinkUp(a, b) if self.is_alive(a) && self.is_alive(b) && self.net.reach(a, b) => {
                self.net.link(a, b);
                self.input(a, Input::LinkUp { peer: b });
                self.input(b, Input::LinkUp { peer: a });
            }
            // It listens before it knows the addresses of the others.
            Event::LinkUp(a, b) if !self.is_alive(a) && self.is_alive(b) && self.commands.listens(a) => {
                let at = self.soon(5_000_000);
                self.at(at, Event::LinkUp(a, b));
            }
            Event::LinkUp(a, b) => {
                let at = self.soon(1_000_000);
                self.at(at, Event::LinkDown { to: b, peer: a });
            }
            Event::LinkDown { to, peer } => self.input(to, Input::LinkDown { peer, why: "cut".into() }),
            Event::Bytes { to, from, link } => {
                if self.net.number(from, to) == Some(link)
                    && let Some(bytes) = self.net.arrived(self.now, from, to)
                    && self.net.reach(from, to)
                {
                    self.input(to, Input::LinkBytes { peer: from, bytes: &bytes });
                }
            }
            Event::Tick(node) => {
                if let Some(tick) = self.ticks.get_mut(node.0 as usize) {
                    *tick = None;
                }
                self.input(node, Input::Tick);
            }
            Event::Start(node, start) => self.start(node, *start),
            Event::Proc(proc) => self.advance(&proc),
            Event::Wake(proc) => {
                if let Some(fate) = self.procs.get_mut(&proc) {
                    fate.sleeping = false;
                }
                self.advance(&proc);
            }
            Event::Signal(proc, pid, signal) if self.is_running(&proc, pid) => self.on_signal(&proc, signal),
            Event::Reaped(proc, pid, status) if self.is_running(&proc, pid) => self.reap(&proc, status),
            Event::Signal(..) | Event::Reaped(..) => {}
            Event::TreeStopped(node, proc) => self.input(node, Input::TreeStopped { proc, escaped: false }),
            Event::StreamsClosed(proc) => {
                let Some(node) = self.procs.get(&proc).map(|fate| fate.node) else { return };
                for channel in [IofChannel::STDOUT, IofChannel::STDERR, IofChannel::STDDIAG] {
                    self.input(node, Input::OutputClosed { proc: proc.clone(), channel });
                }
            }
            Event::Taken(bytes) => {
                self.user.holding -= bytes;
                self.input(NodeId(0), Input::OutputTaken { bytes });
                self.take_output();
            }
            Event::Stdin(nspace, bytes) => self.read_stdin(&nspace, bytes),
            Event::Crash(node) => self.crash(node),
            Event::Cut(a, b) => {
                if self.net.unlink(a, b) {
                    self.input(a, Input::LinkDown { peer: b, why: "cut".into() });
                    self.input(b, Input::LinkDown { peer: a, why: "cut".into() });
                }
            }
            Event::Stall(a, b, span) => self.net.stall(a, b, self.now.after(span)),
            Event::Agent(proc, deed) => self.on_deed(&proc, deed),
        }
    }

    pub(crate) fn input(&mut self, id: NodeId, input: Input<'_>) {
        let Some(node) = self.nodes.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let mut effects = VecDeque::new();
        node.handle(self.now, input, &mut effects);
        let answers = node.server_mut().answers();
        let deadline = node.deadline();
        self.plan_tick(id, deadline);
        for effect in effects {
            self.on_effect(id, effect);
        }
        for (proc, answer) in answers {
            if let Some(fate) = self.procs.get_mut(&proc)
                && let Some(op) = fate.asking.take()
            {
                fate.connected |= matches!(op, crate::script::Op::Init);
                fate.connected &= !matches!(op, crate::script::Op::Finalize);
                fate.answers.push((op, answer));
                let at = self.soon(20_000);
                self.at(at, Event::Proc(proc));
            }
        }
    }

    fn plan_tick(&mut self, id: NodeId, deadline: Option<Time>) {
        let (Some(at), Some(planned)) = (deadline, self.ticks.get_mut(id.0 as usize)) else { return };
        let at = at.max(self.now);
        // A tick too early does no harm; one too late would.
        if planned.is_none_or(|planned| at < planned) {
            *planned = Some(at);
            self.at(at, Event::Tick(id));
        }
    }

    fn on_effect(&mut self, id: NodeId, effect: Effect) {
        let agent = match &effect {
            Effect::Spawn(start) => Some(&start.proc),
            Effect::Stdin { proc, .. }
            | Effect::StdinEnd { proc }
            | Effect::Signal { proc, .. }
            | Effect::Credit { proc, .. } => Some(proc),
            _ => None,
        };
        if agent.is_some_and(|proc| self.commands.has(proc)) {
            return self.on_agent_effect(effect);
        }
        match effect {
            Effect::Link { to, bytes } => {
                if let Some(link) = self.net.number(id, to) {
                    for at in self.net.send(self.now, (id, to), bytes, &mut self.random) {
                        self.at(at, Event::Bytes { to, from: id, link });
                    }
                }
            }
            Effect::Connect { to, address } => {
                assert_eq!(address, format!("sim:{}", to.0));
                let at = self.soon(1_000_000);
                let possible = self.is_alive(to) && self.net.reach(id, to);
                self.at(
                    at,
                    if possible { Event::LinkUp(to, id) } else { Event::LinkDown { to: id, peer: to } },
                );
            }
            Effect::Unlink { to } => {
                if self.net.unlink(id, to) {
                    let at = self.soon(1_000_000);
                    self.at(at, Event::LinkDown { to, peer: id });
                }
            }
            Effect::Spawn(start) => {
                let at = self.soon(500_000);
                self.at(at, Event::Start(id, start));
            }
            Effect::MakeScratch { path } => self.made.push(path),
            Effect::Signal { proc, signal } => self.send_signal(&proc, signal),
            Effect::SignalTree { proc, signal } => {
                self.send_signal(&proc, signal);
                if signal == STOP {
                    self.at(self.now.after(SIGNAL_DELAY), Event::TreeStopped(id, proc));
                }
            }
            Effect::Credit { proc, channel, bytes } => {
                let pipes = self.pipes.entry(proc.clone()).or_default();
                *pipes.credit.entry(channel).or_default() += bytes;
                self.at(self.now, Event::Proc(proc));
            }
            Effect::Stdin { proc, data } => {
                self.pipes.entry(proc.clone()).or_default().unread += data.len();
                if let Some(fate) = self.procs.get_mut(&proc) {
                    assert!(!fate.stdin_ended, "standard input of {proc} after its end");
                    fate.read.extend_from_slice(&data);
                }
                let at = self.soon(10_000);
                self.at(at, Event::Proc(proc));
            }
            Effect::StdinEnd { proc } => {
                if let Some(fate) = self.procs.get_mut(&proc) {
                    assert!(!fate.stdin_ended, "standard input of {proc} ended twice");
                    fate.stdin_ended = true;
                    self.at(self.now, Event::Proc(proc));
                }
            }
            // Nothing else reads this world's input.
            Effect::StdinRead { .. } => {}
            Effect::StdinCredit { nspace, bytes } => {
                let at = self.soon(100_000);
                self.at(at, Event::Stdin(nspace, bytes));
            }
            // Another daemon may have lost the others; only its own log records that.
            Effect::Report(Report::NotReady { .. }) if id != NodeId::ROOT => {}
            Effect::Report(report) => self.on_report(report),
            Effect::Stop => self.crash(id),
            // Processes of this world are never stopped.
            Effect::MayBeStopped => {}
            Effect::RegisterCleanup { nspace, path, what } => {
                self.registered.insert((id, nspace, path), what);
            }
            Effect::Cleanup { nspace, paths } => {
                for path in paths {
                    let what = self.registered.remove(&(id, nspace.clone(), path.clone()));
                    assert!(what.is_some_and(|what| what != Cleanup::Ignored), "{path} is not to go");
                    self.removed.push((id, path));
                }
            }
            Effect::Forget { nspace, .. } => {
                for ((_, _, path), what) in
                    self.registered.extract_if(.., |(node, of, _), _| *node == id && *of == nspace)
                {
                    if what != Cleanup::Ignored {
                        self.removed.push((id, path));
                    }
                }
            }
            Effect::Inspect { proc, .. } => {
                if let Some(library) = self.loaded.get(&proc) {
                    let library = library.clone();
                    self.input(id, Input::Inspected { proc, library });
                }
            }
            Effect::Measure { survey, pids } => {
                let usage = |rank: u32| Usage {
                    resident: u64::from(rank + 1) << 20,
                    time: Duration::from_secs(rank.into()),
                    age: Duration::from_secs(4),
                    ..Usage::default()
                };
                let procs = pids.into_iter().map(|(rank, _)| (rank, usage(rank))).collect();
                let node = Some(NodeUsage { load: [id.0 as f32; 3], ..NodeUsage::default() });
                let measured = Box::new(Measured { daemon: Some(1 << 24), node, procs });
                self.input(id, Input::Measured { survey, measured });
            }
            Effect::Log { task, line } => {
                self.logged.push((id, line));
                self.input(id, Input::Logged { task, result: Ok(()) });
            }
            Effect::Send { .. }
            | Effect::Close { .. }
            | Effect::WriteFile { .. }
            | Effect::RemoveFile { .. }
            | Effect::LookAt { .. } => {}
        }
    }

    fn on_report(&mut self, report: Report) {
        let output = matches!(report, Report::Output { .. });
        self.user.see(report);
        if output && self.user.untaken.len() == 1 {
            self.take_output();
        }
    }

    fn take_output(&mut self) {
        if let Some(bytes) = self.user.untaken.pop_front() {
            let at = self.now.after(self.user.pace.max(Duration::from_nanos(1)));
            self.at(at, Event::Taken(bytes));
        }
    }

    fn read_stdin(&mut self, nspace: &Nspace, bytes: usize) {
        let Some(rest) = self.user.stdin.get_mut(nspace) else { return };
        let data: Vec<u8> = rest.drain(..bytes.min(rest.len())).collect();
        let over = rest.is_empty();
        if !data.is_empty() {
            self.input(NodeId(0), Input::Stdin { nspace: nspace.clone(), data: data.into() });
        }
        if over && self.user.stdin_over.insert(nspace.clone(), true).is_none() {
            self.input(NodeId(0), Input::StdinEnd { nspace: nspace.clone() });
        }
    }

    fn start(&mut self, id: NodeId, start: ProcStart) {
        if !self.is_alive(id) {
            return;
        }
        let proc = start.proc;
        if start.argv.first().is_some_and(|program| *program == "missing") {
            let failure = SpawnFailure { step: SpawnStep::Find, subject: "missing".to_owned(), errno: 2 };
            return self.input(id, Input::SpawnFailed { proc, failure });
        }
        self.pids += 1;
        let pid = 1000 + self.pids;
        let name = start.argv.first().map(Text::to_string_lossy).unwrap_or_default();
        let program = Text::from(format!("/kind{}/{name}", id.0 % 2));
        let script = (self.scripts)(&proc);
        let mut fate = Fate::new(id, pid, script);
        for entry in &start.env {
            let mut halves = entry.as_bytes().splitn(2, |b| *b == b'=');
            if let (Some(name), Some(value)) = (halves.next(), halves.next()) {
                assert!(fate.env.insert(name.to_vec(), value.to_vec()).is_none(), "{entry} is set twice");
            }
        }
        if let Some(node) = self.nodes.get_mut(id.0 as usize).and_then(Option::as_mut) {
            node.server_mut().started(&proc, &fate.env);
        }
        self.procs.insert(proc.clone(), fate);
        self.input(id, Input::Spawned { proc: proc.clone(), pid, program });
        self.at(self.now, Event::Proc(proc));
    }

    /// Lets a process act as far as it can.
    fn advance(&mut self, proc: &ProcId) {
        loop {
            let Some(fate) = self.procs.get_mut(proc) else { return };
            let node = fate.node;
            match fate.next(self.pipes.entry(proc.clone()).or_default()) {
                Next::Nothing => return,
                Next::Wake(span) => {
                    let at = self.now.after(span);
                    return self.at(at, Event::Wake(proc.clone()));
                }
                Next::Ask(op) => {
                    let Some(host) = self.nodes.get_mut(node.0 as usize).and_then(Option::as_mut) else {
                        return;
                    };
                    host.server_mut().ask(proc, op);
                    return self.input(node, Input::Tick);
                }
                Next::Write(channel, bytes) => {
                    fate.written.entry(channel).or_default().extend_from_slice(&bytes);
                    self.input(node, Input::Output { proc: proc.clone(), channel, data: bytes.into() });
                }
                Next::TakeStdin(bytes) => {
                    self.input(node, Input::StdinTaken { proc: proc.clone(), bytes });
                }
                Next::End(status) => return self.reap(proc, status),
            }
        }
    }

    fn is_running(&self, proc: &ProcId, pid: u32) -> bool {
        self.procs.get(proc).is_some_and(|fate| fate.pid == pid && fate.ended.is_none())
    }

    fn send_signal(&mut self, proc: &ProcId, signal: i32) {
        // Signals arrive in the order in which they were sent.
        let at = self.now.after(SIGNAL_DELAY);
        if let Some(pid) = self.procs.get(proc).map(|fate| fate.pid) {
            self.at(at, Event::Signal(proc.clone(), pid, signal));
        }
    }

    fn on_signal(&mut self, proc: &ProcId, signal: i32) {
        let Some(fate) = self.procs.get_mut(proc) else { return };
        let (pid, status) = (fate.pid, ExitStatus::Signal { number: signal, core_dumped: false });
        match signal {
            15 if fate.ignores_term => {}
            15 if fate.stopped => fate.term_pends = true,
            18 if fate.term_pends => {
                let status = ExitStatus::Signal { number: 15, core_dumped: false };
                self.reap(proc, status);
            }
            18 => {
                fate.stopped = false;
                self.advance(proc);
            }
            STOP => fate.stopped = true,
            9 | 15 => {
                let at = self.soon(300_000);
                self.at(at, Event::Reaped(proc.clone(), pid, status));
            }
            _ => self.reap(proc, status),
        }
    }

    fn reap(&mut self, proc: &ProcId, status: ExitStatus) {
        let Some(fate) = self.procs.get_mut(proc).filter(|fate| fate.ended.is_none()) else { return };
        fate.ended = Some(status);
        fate.asking = None;
        let (node, connected, lingers) = (fate.node, fate.connected, fate.lingers);
        if !self.is_alive(node) {
            return;
        }
        self.input(node, Input::Exited { proc: proc.clone(), status });
        if connected && let Some(host) = self.nodes.get_mut(node.0 as usize).and_then(Option::as_mut) {
            host.server_mut().leave(proc);
            self.input(node, Input::Tick);
        }
        let at = self.now.after(lingers + Duration::from_nanos(self.random.between(1, 100_000)));
        self.at(at, Event::StreamsClosed(proc.clone()));
    }

    /// Removes the node with everything on it; its neighbours see their links break.
    fn crash(&mut self, id: NodeId) {
        if !self.is_alive(id) {
            return;
        }
        if let Some(slot) = self.nodes.get_mut(id.0 as usize) {
            *slot = None;
        }
        match id {
            NodeId::ROOT => self.on_root_gone(),
            _ => self.on_daemon_gone(id),
        }
        for fate in self.procs.values_mut().filter(|fate| fate.node == id) {
            fate.ended.get_or_insert(ExitStatus::Signal { number: 9, core_dumped: false });
        }
        for peer in self.net.unlink_all(id) {
            let at = self.soon(2_000_000);
            self.at(at, Event::LinkDown { to: peer, peer: id });
        }
    }

    pub(crate) fn soon(&mut self, within: u64) -> Time {
        Time(self.now.0 + self.random.between(1, within))
    }

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.numbered += 1;
        self.events.insert((at, self.numbered), event);
    }
}

/// From a signal to its arrival.
const SIGNAL_DELAY: Duration = Duration::from_micros(20);
/// The number of SIGSTOP.
const STOP: i32 = 19;

//! The commands that start daemons, simulated: their output, their input, their failures, and the daemons that they start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::Time;
use phalanx_dvm::hosts::{Host, Slots, parse_slurm};
use phalanx_dvm::start::{Birth, Cradle, Others, StartPlan, failed, greeting, reached_at};
use phalanx_dvm::{
    Agent, Effect, ExitStatus, FarHost, Fleet, HOSTS, Input, Node, NodeId, ProcStart, SpawnFailure,
    SpawnStep, Tree,
};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId};

use crate::script::RankServer;
use crate::world::{Event, World};

/// How the start of a daemon on one host goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// The command cannot be run.
    NoCommand,
    /// The command ends before there is a daemon.
    Refused,
    /// No output ever comes.
    Silent,
    /// The host has a px of another release.
    Stranger,
    /// The daemon sends its greeting, and then reports that it cannot continue.
    Fails,
    /// The daemon sends its greeting, and then nothing.
    Stuck,
    /// The daemon learns the addresses of the others, but does not connect to them.
    Lonely,
    /// The command ends when the daemon has connected to the others, or is about to.
    Short,
}

/// The hosts other than the root's, and what goes wrong on them.
pub struct Agents {
    /// The number of hosts of each command.
    pub hosts: Vec<usize>,
    pub skip_bad: bool,
    pub mishap: Box<dyn FnMut(NodeId) -> Mishap>,
}

/// The command for a single host.
const ONE: &str = "one";

fn number(host: &Host) -> NodeId {
    let Host::Name(name) = host else { panic!("{host:?} has no name") };
    let Ok(number) = name.trim_start_matches('n').parse() else { panic!("{name} has no number") };
    NodeId(number)
}

/// All commands of a world.
#[derive(Default)]
pub(crate) struct Commands {
    nspace: Option<Nspace>,
    running: BTreeMap<ProcId, Command>,
    mishaps: BTreeMap<NodeId, Mishap>,
    /// Daemons that have begun, even if they have ended since.
    begun: BTreeSet<NodeId>,
}

#[derive(Debug)]
struct Command {
    hosts: Vec<NodeId>,
    /// Output has the place of its host before it.
    labels: bool,
    /// Input that has not been decoded yet.
    read: Vec<u8>,
    secret: bool,
    birth: Option<Birth>,
    input_ended: bool,
    ended: bool,
}

/// The next action of a command, or of a daemon behind it.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Begin,
    Say(IofChannel, String),
    /// Begins a daemon that has learned the addresses of the others.
    Live(NodeId, Others),
    End(ExitStatus),
    Close(IofChannel),
}

impl Agents {
    /// The root's plan for them.
    pub(crate) fn plan(&self) -> StartPlan {
        let hosts: usize = self.hosts.iter().sum();
        let host = |n: usize| {
            let name = format!("n{}", n + 1).into();
            FarHost { name, slots: Slots::Unstated, max_slots: None }
        };
        let mut first = 0;
        let agent = |count: &usize| {
            first += count;
            let hosts = first - count..first;
            let argv = match *count {
                1 => vec![ONE.into(), format!("n{first}").into()],
                _ => vec!["several".into(), HOSTS.into()],
            };
            Agent { argv, hosts: hosts.collect(), labels: *count > 1 }
        };
        let fleet = Fleet {
            agents: self.hosts.iter().map(agent).collect(),
            hosts: (0..hosts).map(host).collect(),
            skip_bad: self.skip_bad,
            ..Fleet::default()
        };
        let nspace = Nspace::new("world-agents").unwrap_or(Nspace::none());
        StartPlan { fleet, nspace, secret: "secret\n".into(), networks: Vec::new(), is_system: false }
    }
}

impl Commands {
    pub(crate) fn new(agents: &mut Agents, plan: &StartPlan) -> Commands {
        let nodes = (1..=plan.fleet.hosts.len() as u32).map(NodeId);
        let mishaps = nodes.map(|node| (node, (agents.mishap)(node))).collect();
        let nspace = Some(plan.nspace.clone());
        Commands { nspace, mishaps, ..Commands::default() }
    }

    pub(crate) fn has(&self, proc: &ProcId) -> bool {
        self.nspace.as_ref() == Some(&proc.nspace)
    }

    /// How many have not ended.
    pub(crate) fn living(&self) -> usize {
        self.running.values().filter(|command| !command.ended).count()
    }

    /// Whether this host has a daemon that will connect later.
    pub(crate) fn listens(&self, node: NodeId) -> bool {
        let command = self.of_daemon(node).and_then(|proc| self.running.get(&proc));
        let lives = command.is_some_and(|command| !command.ended && !command.input_ended);
        lives && !self.begun.contains(&node) && matches!(self.mishap(node), Mishap::None | Mishap::Short)
    }

    fn mishap(&self, node: NodeId) -> Mishap {
        self.mishaps.get(&node).copied().unwrap_or(Mishap::None)
    }

    fn of_daemon(&self, node: NodeId) -> Option<ProcId> {
        // The last one: daemons that have come may be started again by a command of their own.
        let found = self.running.iter().rfind(|(_, command)| command.hosts.contains(&node));
        found.map(|(proc, _)| proc.clone())
    }
}

impl<S: RankServer> World<S> {
    /// Carries out an effect of the root that concerns a command.
    pub(crate) fn on_agent_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn(start) => {
                let ProcStart { proc, argv, .. } = *start;
                let names = String::from_utf8_lossy(argv[1].as_bytes());
                let Ok(hosts) = parse_slurm(&names, None) else { panic!("{names} are no hosts") };
                let command = Command {
                    hosts: hosts.iter().map(|entry| number(&entry.host)).collect(),
                    labels: argv[0].as_bytes() != ONE.as_bytes(),
                    read: Vec::new(),
                    secret: false,
                    birth: None,
                    input_ended: false,
                    ended: false,
                };
                let before = self.commands.running.insert(proc.clone(), command);
                assert!(before.is_none(), "{proc} is started twice");
                self.does_soon(&proc, 5_000_000, Deed::Begin);
            }
            Effect::Stdin { proc, data } => self.hear(&proc, &data),
            Effect::StdinEnd { proc } => {
                let Some(command) = self.commands.running.get_mut(&proc) else { return };
                assert!(!command.input_ended, "the input of {proc} ended twice");
                command.input_ended = true;
                let hosts = command.hosts.clone();
                hosts.into_iter().for_each(|node| self.end_daemon(node));
                self.does_soon(&proc, 100_000_000, Deed::End(ExitStatus::Code(0)));
            }
            Effect::Signal { proc, signal } => {
                let status = ExitStatus::Signal { number: signal, core_dumped: false };
                self.does_soon(&proc, 1_000_000, Deed::End(status));
            }
            _ => {}
        }
    }

    /// A daemon is gone. Its command ends when all its daemons are.
    pub(crate) fn on_daemon_gone(&mut self, node: NodeId) {
        let Some(proc) = self.commands.of_daemon(node) else { return };
        let Some(command) = self.commands.running.get(&proc) else { return };
        if command.hosts.iter().all(|host| !self.is_alive(*host)) {
            self.does_soon(&proc, 50_000_000, Deed::End(ExitStatus::Code(137)));
        }
    }

    /// The root is gone, which ends the input of all commands.
    pub(crate) fn on_root_gone(&mut self) {
        let living = self.commands.running.iter().filter(|(_, command)| !command.ended);
        let living: Vec<ProcId> = living.map(|(proc, _)| proc.clone()).collect();
        for proc in living {
            self.does_soon(&proc, 100_000_000, Deed::End(ExitStatus::Code(0)));
        }
    }

    pub(crate) fn on_deed(&mut self, proc: &ProcId, deed: Deed) {
        let Some(command) = self.commands.running.get_mut(proc) else { return };
        let (ended, hosts) = (command.ended, command.hosts.clone());
        match deed {
            Deed::Begin if ended => {}
            Deed::Begin => self.begin_command(proc, &hosts),
            Deed::Say(channel, line) if !ended => {
                let data = format!("{line}\n").into_bytes().into();
                self.input(NodeId::ROOT, Input::Output { proc: proc.clone(), channel, data });
            }
            Deed::Live(node, others) if !ended => self.live(node, &others),
            Deed::Say(..) | Deed::Live(..) => {}
            Deed::End(_) if ended => {}
            Deed::End(status) => {
                command.ended = true;
                hosts.iter().for_each(|node| self.end_daemon(*node));
                self.input(NodeId::ROOT, Input::Exited { proc: proc.clone(), status });
                // Sometimes another process holds the streams open.
                let longest = if self.random.one_in(10) { 5_000_000_000 } else { 50_000_000 };
                for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
                    self.does_soon(proc, longest, Deed::Close(channel));
                }
            }
            Deed::Close(channel) => {
                self.input(NodeId::ROOT, Input::OutputClosed { proc: proc.clone(), channel });
            }
        }
    }

    fn begin_command(&mut self, proc: &ProcId, hosts: &[NodeId]) {
        if hosts.iter().any(|node| self.commands.mishap(*node) == Mishap::NoCommand) {
            if let Some(command) = self.commands.running.get_mut(proc) {
                command.ended = true;
            }
            let failure = SpawnFailure { step: SpawnStep::Exec, subject: "agent".to_owned(), errno: 2 };
            return self.input(NodeId::ROOT, Input::SpawnFailed { proc: proc.clone(), failure });
        }
        self.input(NodeId::ROOT, Input::Spawned { proc: proc.clone(), pid: 1, program: "/agent".into() });
        for (at, node) in hosts.iter().enumerate() {
            match self.commands.mishap(*node) {
                Mishap::Silent => {}
                Mishap::Refused => {
                    let line = format!("connect to host n{}: Connection refused", node.0);
                    self.does_soon(proc, 100_000_000, Deed::Say(IofChannel::STDERR, line));
                    self.does_soon(proc, 200_000_000, Deed::End(ExitStatus::Code(255)));
                }
                Mishap::Stranger => self.says(proc, at, 300_000_000, "px-daemon 1 0.0.0"),
                _ => {
                    if self.random.one_in(4) {
                        self.says(proc, at, 1_000_000, "Welcome to this host");
                    }
                    self.says(proc, at, 300_000_000, &greeting());
                }
            }
        }
    }

    /// All daemons behind a command get its input.
    fn hear(&mut self, proc: &ProcId, data: &[u8]) {
        let Some(command) = self.commands.running.get_mut(proc) else { return };
        assert!(!command.input_ended, "input of {proc} after its end");
        command.read.extend_from_slice(data);
        while !command.secret && command.read.first() == Some(&b'\n') {
            command.read.remove(0);
        }
        if !command.secret && command.read.starts_with(b"secret\n") {
            command.secret = true;
            command.read.drain(.."secret\n".len());
        }
        while let Some(command) = self.commands.running.get_mut(proc)
            && let Some(message) = message(&mut command.read)
        {
            assert!(command.secret, "{proc} is told things before the secret");
            if message.is_empty() {
                continue;
            }
            let hosts = command.hosts.clone();
            if command.birth.is_none() {
                let Ok(birth) = Birth::from_bytes(&message) else { panic!("{proc} is told nonsense") };
                let born: Vec<NodeId> = birth.cradles.iter().map(|Cradle { node, .. }| *node).collect();
                assert_eq!(born, hosts, "{proc} is told of others");
                command.birth = Some(birth);
                self.settle(proc, &hosts);
            } else {
                let Ok(others) = Others::from_bytes(&message) else { panic!("{proc} is told nonsense") };
                for node in hosts {
                    match self.commands.mishap(node) {
                        Mishap::None => self.does_soon(proc, 50_000_000, Deed::Live(node, others.clone())),
                        Mishap::Short => {
                            self.does_soon(proc, 50_000_000, Deed::Live(node, others.clone()));
                            self.does_soon(proc, 100_000_000, Deed::End(ExitStatus::Code(1)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn settle(&mut self, proc: &ProcId, hosts: &[NodeId]) {
        for (at, node) in hosts.iter().enumerate() {
            match self.commands.mishap(*node) {
                Mishap::None | Mishap::Lonely | Mishap::Short => {
                    self.says(proc, at, 100_000_000, &reached_at(&format!("sim:{}", node.0)));
                }
                Mishap::Fails => self.says(proc, at, 100_000_000, &failed("no room")),
                _ => {}
            }
        }
    }

    /// The daemon connects to its parent, at the address it has learned.
    fn live(&mut self, node: NodeId, others: &Others) {
        let Some(config) = self.config.as_ref().map(|config| config(node)) else { return };
        let tree = Tree::new(config.size, config.radix);
        let known = |wanted: NodeId| others.addresses.iter().find(|(node, _)| *node == wanted).cloned();
        let lineage: Vec<(NodeId, Arc<str>)> = tree.ancestors(node).filter_map(known).collect();
        let Some(parent) = lineage.first().map(|(parent, _)| *parent) else {
            panic!("nobody is above {node:?}")
        };
        assert!(self.commands.begun.insert(node), "daemon {} begins twice", node.0);
        let server = (self.server)(node);
        self.put(node, Node::new(phalanx_dvm::NodeConfig { lineage, ..config }, server));
        let at = self.soon(10_000_000);
        self.at(at, Event::Tick(node));
        let at = self.soon(100_000_000);
        self.at(at, Event::LinkUp(parent, node));
    }

    fn end_daemon(&mut self, node: NodeId) {
        let at = self.soon(30_000_000);
        self.at(at, Event::Crash(node));
    }

    fn says(&mut self, proc: &ProcId, at: usize, within: u64, line: &str) {
        let labels = self.commands.running.get(proc).is_some_and(|command| command.labels);
        let line = if labels { format!("{at}: {line}") } else { line.to_owned() };
        self.does_soon(proc, within, Deed::Say(IofChannel::STDOUT, line));
    }

    fn does_soon(&mut self, proc: &ProcId, within: u64, deed: Deed) {
        let at = self.soon(within);
        self.at(at, Event::Agent(proc.clone(), deed));
    }

    /// Kills the command that starts this daemon, as an administrator might.
    pub fn kill_agent(&mut self, at: Time, number: u32) {
        let Some(nspace) = &self.commands.nspace else { return };
        let proc = ProcId::new(nspace, Rank(number));
        let status = ExitStatus::Signal { number: 9, core_dumped: false };
        self.at(at, Event::Agent(proc, Deed::End(status)));
    }

    /// How many commands have not ended.
    pub fn living_agents(&self) -> usize {
        self.commands.living()
    }
}

/// A complete message, preceded by its length.
fn message(read: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = u32::from_be_bytes(read.first_chunk::<4>().copied()?) as usize;
    if read.len() < 4 + length {
        return None;
    }
    let message = read.drain(..4 + length).skip(4).collect();
    Some(message)
}

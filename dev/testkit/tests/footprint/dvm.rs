//! Daemons alone: links carry bytes at once, and a process is only a pid.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::{
    AppSpec, Effect, Input, JobRequest, Limits, Node, NodeConfig, NodeId, Report, Rules, Tree,
};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_topo::Topology;

const RADIX: u32 = 32;
const STEP: Duration = Duration::from_millis(100);
/// Steps within which daemons do everything that they postpone.
const CALM: u32 = 15;
const PATIENCE: u32 = 600;

pub(crate) struct Dvm {
    now: Time,
    nodes: Vec<Option<Node<ScriptedServer>>>,
    under_way: VecDeque<(NodeId, NodeId, Arc<[u8]>)>,
    effects: VecDeque<Effect>,
    /// How many processes run as far as the root knows.
    running: u32,
    last_pid: u32,
}

impl Dvm {
    pub(crate) fn boot(hosts: u32, cores: u32) -> Dvm {
        let topology = Arc::new(Topology::synthetic(1, 1, 1, cores, 1));
        let tree = Tree::new(hosts, RADIX);
        let at = |node: NodeId| -> Arc<str> { format!("10.1.{}.{}:7000", node.0 / 250, node.0 % 250).into() };
        let config = |id: NodeId| NodeConfig {
            addresses: Vec::new(),
            called: Vec::new(),
            takes_ranks: true,
            env: Vec::new(),
            id,
            size: hosts,
            radix: RADIX,
            dvm: "dvm".into(),
            first_job: 1,
            hostname: format!("node{:05}", id.0).into(),
            topology: topology.clone(),
            slots: Default::default(),
            max_slots: None,
            address: at(id),
            lineage: tree.ancestors(id).map(|above| (above, at(above))).collect(),
            uid: 1000,
            gid: 1000,
            scratch: "/scratch".into(),
            lasts: true,
            rules: Rules::default(),
            clock: Duration::ZERO,
            limits: Limits::default(),
        };
        let node = |id| Some(Node::new(config(NodeId(id)), ScriptedServer::default()));
        let mut dvm = Dvm {
            now: Time(0),
            nodes: (0..hosts).map(node).collect(),
            under_way: VecDeque::new(),
            effects: VecDeque::new(),
            running: 0,
            last_pid: 0,
        };
        for child in (1..hosts).map(NodeId) {
            let parent = tree.parent(child).unwrap();
            dvm.input(parent, Input::LinkUp { peer: child });
            dvm.input(child, Input::LinkUp { peer: parent });
        }
        dvm.pass(CALM);
        dvm
    }

    /// Starts a job and waits until the root knows that all of it runs.
    pub(crate) fn start(&mut self, ranks: u32) {
        let app = AppSpec { argv: vec!["prog".into()], procs: Some(ranks), ..AppSpec::default() };
        let job = Box::new(JobRequest { apps: vec![app], ..JobRequest::default() });
        self.input(NodeId(0), Input::Submit { request: 1, job });
        for _ in 0..PATIENCE {
            self.pass(1);
            if self.running == ranks {
                return self.pass(CALM);
            }
        }
        panic!("{} of {ranks} processes run", self.running);
    }

    pub(crate) fn take(&mut self, node: u32) -> Node<ScriptedServer> {
        self.nodes[node as usize].take().unwrap()
    }

    fn pass(&mut self, steps: u32) {
        for _ in 0..steps {
            self.now = self.now.after(STEP);
            for node in (0..self.nodes.len() as u32).map(NodeId) {
                self.input(node, Input::Tick);
            }
            while let Some((to, peer, bytes)) = self.under_way.pop_front() {
                self.input(to, Input::LinkBytes { peer, bytes: &bytes });
            }
        }
    }

    fn input(&mut self, id: NodeId, input: Input<'_>) {
        let mut effects = std::mem::take(&mut self.effects);
        let Some(node) = &mut self.nodes[id.0 as usize] else { return };
        node.handle(self.now, input, &mut effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Link { to, bytes } => self.under_way.push_back((to, id, bytes)),
                Effect::Spawn(start) => {
                    self.last_pid += 1;
                    let program = start.argv[0].clone();
                    let spawned = Input::Spawned { proc: start.proc, pid: self.last_pid, program };
                    node.handle(self.now, spawned, &mut effects);
                }
                Effect::Report(Report::Progress { phase: "starting", done, .. }) => self.running = done,
                Effect::Report(Report::Refused { error, .. }) => panic!("{error}"),
                _ => {}
            }
        }
        self.effects = effects;
    }
}

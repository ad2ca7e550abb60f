//! Messages to a daemon from its neighbours in the tree, over established links.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_dvm::{
    AppSpec, Effect, ExitStatus, Input, JobRequest, Limits, Node, NodeConfig, NodeId, Rules, Tree,
};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_topo::Topology;

use crate::script::{MOST_STEPS, Script};

/// One of a few daemons: links come and go and carry anything, time passes, processes that it starts end.
pub(crate) fn neighbours(input: &[u8]) {
    let mut script = Script::new(input);
    let me = NodeId(script.below(DAEMONS as usize) as u32);
    let mut node = Node::new(config(me), ScriptedServer::default());
    let (mut effects, mut started, mut now) = (VecDeque::new(), VecDeque::new(), Time(0));
    for _ in 0..MOST_STEPS {
        let Some(what) = script.byte() else { break };
        let peer = NodeId(script.below(DAEMONS as usize) as u32);
        let input = match what % 8 {
            0 => Input::LinkUp { peer },
            1 => Input::LinkDown { peer, why: String::new() },
            2 => {
                now = now.after(Duration::from_millis(500));
                Input::Tick
            }
            3 => match started.pop_front() {
                Some(proc) => Input::Exited { proc, status: ExitStatus::Code(0) },
                None if me == NodeId::ROOT => submit(),
                None => continue,
            },
            _ => Input::LinkBytes { peer, bytes: script.piece() },
        };
        node.handle(now, input, &mut effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Spawn(start) => {
                    let proc = start.proc.clone();
                    started.push_back(proc.clone());
                    let program = start.argv.first().cloned().unwrap_or_else(|| "".into());
                    node.handle(now, Input::Spawned { proc, pid: 1000, program }, &mut effects);
                }
                Effect::Stop => return,
                _ => {}
            }
        }
    }
}

fn submit() -> Input<'static> {
    let app = AppSpec { argv: vec!["a".into()], procs: Some(2 * DAEMONS), ..AppSpec::default() };
    Input::Submit { request: 1, job: Box::new(JobRequest { apps: vec![app], ..JobRequest::default() }) }
}

fn config(id: NodeId) -> NodeConfig {
    let tree = Tree::new(DAEMONS, RADIX);
    let address = |id: NodeId| -> Arc<str> { format!("n{}", id.0).into() };
    NodeConfig {
        addresses: Vec::new(),
        called: Vec::new(),
        takes_ranks: true,
        id,
        size: DAEMONS,
        radix: RADIX,
        dvm: "dvm".into(),
        first_job: 1,
        hostname: address(id),
        topology: Arc::new(Topology::synthetic(1, 1, 1, 2, 1)),
        slots: Default::default(),
        max_slots: None,
        address: address(id),
        lineage: tree.ancestors(id).map(|above| (above, address(above))).collect(),
        uid: 1000,
        gid: 1000,
        env: Vec::new(),
        scratch: "/scratch".into(),
        lasts: true,
        rules: Rules::default(),
        clock: std::time::Duration::ZERO,
        limits: Limits::default(),
    }
}

const DAEMONS: u32 = 5;
const RADIX: u32 = 2;

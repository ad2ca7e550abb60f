//! Random interleavings of clients that commit, get, meet, leave and die, and of a host that answers at any time: each
//! request is answered once, none waits for ever, no state is left over.

use std::time::Duration;

use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::event::{Notify, RegisterEvents};
use phalanx_wire::cmd::group::Construct;
use phalanx_wire::{Blob, Info, ProcId};
use proptest::prelude::*;

use super::world::{World, fence, get, global, ns, proc};
use crate::host::{GroupFormed, HostOp, HostReply};
use crate::machine::{ConnId, HostCall};
use crate::server::{ServerCall, ServerReturn};

const LOCAL: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Connect(u32),
    Close(u32),
    Finalize(u32),
    Commit(u32, u8),
    Get(u32, u32, u8, Option<u32>),
    Fence(u32, bool, Option<u32>),
    Pair(u32, u32),
    Group(u32),
    Register(u32, Option<i32>),
    Notify(u32, u8),
    Garbage(u32, Vec<u8>),
    Ended(u32),
    Modex(u32, u8),
    Answer(usize, bool),
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let rank = 0..LOCAL;
    let any_rank = prop_oneof![8 => 0..2 * LOCAL, 1 => Just(Rank::WILDCARD.0), 1 => Just(Rank::UNDEF.0)];
    let time = proptest::option::weighted(0.3, 1u32..4);
    prop_oneof![
        6 => rank.clone().prop_map(Step::Connect),
        2 => rank.clone().prop_map(Step::Close),
        1 => rank.clone().prop_map(Step::Finalize),
        4 => (rank.clone(), 0u8..3).prop_map(|(r, k)| Step::Commit(r, k)),
        6 => (rank.clone(), any_rank, 0u8..4, time.clone()).prop_map(|(r, t, k, s)| Step::Get(r, t, k, s)),
        8 => (rank.clone(), any::<bool>(), time).prop_map(|(r, d, s)| Step::Fence(r, d, s)),
        2 => (rank.clone(), rank.clone()).prop_map(|(a, b)| Step::Pair(a, b)),
        2 => rank.clone().prop_map(Step::Group),
        2 => (rank.clone(), proptest::option::of(-3..0i32)).prop_map(|(r, c)| Step::Register(r, c)),
        2 => (rank.clone(), 0u8..8).prop_map(|(r, range)| Step::Notify(r, range)),
        1 => (rank.clone(), proptest::collection::vec(any::<u8>(), 0..20)).prop_map(|(r, b)| Step::Garbage(r, b)),
        1 => rank.clone().prop_map(Step::Ended),
        2 => (rank, 0u8..3).prop_map(|(r, k)| Step::Modex(r, k)),
        8 => (any::<usize>(), any::<bool>()).prop_map(|(which, well)| Step::Answer(which, well)),
        2 => (0u8..3).prop_map(Step::Wait),
    ]
}

struct Chaos {
    world: World,
    conns: [Option<ConnId>; LOCAL as usize],
    /// Requests that must be answered eventually, if their connection lives.
    asked: Vec<(ConnId, u32)>,
    calls: Vec<crate::machine::CallId>,
}

impl Chaos {
    fn new(nodes: u32) -> Chaos {
        let mut world = World::with_job(nodes, LOCAL);
        world.obliging = false;
        Chaos { world, conns: [None; LOCAL as usize], asked: Vec::new(), calls: Vec::new() }
    }

    fn send(&mut self, rank: u32, request: &Request) {
        if let Some(conn) = self.conns[rank as usize] {
            let tag = self.world.send(conn, request);
            self.asked.push((conn, tag));
        }
    }

    fn step(&mut self, step: Step) {
        let name = |k: u8| format!("k{k}");
        match step {
            Step::Connect(rank) => {
                if self.conns[rank as usize].is_none() {
                    self.connect(rank);
                }
            }
            Step::Close(rank) => {
                if let Some(conn) = self.conns[rank as usize].take() {
                    self.world.close(conn);
                }
            }
            Step::Finalize(rank) => self.send(rank, &Request::Finalize),
            Step::Commit(rank, k) => self.send(rank, &Request::Commit(global(&name(k), "v"))),
            Step::Get(rank, target, k, time) => {
                let info = time.map(|s| Info::new(keys::TIMEOUT, s)).into_iter().collect();
                self.send(rank, &get(&proc("job", target), &name(k), info));
            }
            Step::Fence(rank, data, time) => {
                let time = time.map(|s| Info::new(keys::TIMEOUT, s));
                let info = time.into_iter().chain([Info::new(keys::COLLECT_DATA, data)]).collect();
                self.send(rank, &fence(Vec::new(), info));
            }
            Step::Pair(a, b) => self.send(a, &fence(vec![proc("job", b), proc("job", a)], Vec::new())),
            Step::Group(rank) => {
                let procs = vec![ProcId::all(&ns("job"))];
                let construct = Construct { id: "g".into(), procs, info: Vec::new() };
                self.send(rank, &Request::GroupConstruct(construct));
            }
            Step::Register(rank, code) => {
                let codes = code.map(Status).into_iter().collect();
                self.send(rank, &Request::RegisterEvents(RegisterEvents { codes, info: Vec::new() }));
            }
            Step::Notify(rank, range) => {
                let notify = Notify { code: Status(-2), range: Range(range), info: Vec::new() };
                self.send(rank, &Request::Notify(notify));
            }
            Step::Garbage(rank, bytes) => {
                if let Some(conn) = self.conns[rank as usize] {
                    self.world.raw(conn, &bytes);
                }
            }
            Step::Ended(rank) => {
                self.world.call(ServerCall::DeregisterClient(proc("job", rank)));
            }
            Step::Modex(rank, k) => {
                let key = Some(super::world::key(&name(k)));
                let (id, returned) =
                    self.world.try_call(ServerCall::DirectModex { proc: proc("job", rank), key });
                if returned.is_none() {
                    self.calls.push(id);
                }
            }
            Step::Answer(which, well) => {
                if !self.world.asked.is_empty() {
                    let which = which % self.world.asked.len();
                    let (id, op) = self.world.asked.remove(which);
                    self.answer(id, &op, well);
                }
            }
            Step::Wait(seconds) => self.world.advance(Duration::from_secs(seconds.into())),
        }
        self.forget_closed();
    }

    fn connect(&mut self, rank: u32) {
        let who = proc("job", rank);
        let conn = self.world.open_as(super::world::UID);
        self.world.bytes(conn, &super::world::hello(&who).encode());
        let admission = self.world.asked.iter().rposition(|(_, op)| matches!(op, HostOp::ClientConnected(_)));
        if let Some(at) = admission {
            let (id, _) = self.world.asked.remove(at);
            self.world.answer(id, HostReply::Done(Status::SUCCESS));
        }
        if self.world.client(conn).welcomed {
            self.conns[rank as usize] = Some(conn);
        }
    }

    fn answer(&mut self, call: HostCall, op: &HostOp, well: bool) {
        let reply = match op {
            _ if !well => HostReply::Done(Status::ERR_LOST_CONNECTION),
            HostOp::Fence(_) | HostOp::DirectModex(_) => HostReply::Modex(Ok(Blob::default())),
            HostOp::GroupConstruct(_) => HostReply::Group(Ok(GroupFormed::default())),
            _ => HostReply::Done(Status::SUCCESS),
        };
        self.world.answer(call, reply);
    }

    fn forget_closed(&mut self) {
        for conn in &mut self.conns {
            if conn.is_some_and(|conn| self.world.closed.contains(&conn)) {
                *conn = None;
            }
        }
    }

    /// All ranks leave and the host answers everything: now no request may wait.
    fn end(mut self) {
        while let Some((id, op)) = self.world.asked.pop() {
            self.answer(id, &op, true);
        }
        for rank in 0..LOCAL {
            self.world.call(ServerCall::DeregisterClient(proc("job", rank)));
        }
        while let Some((id, op)) = self.world.asked.pop() {
            self.answer(id, &op, true);
        }
        let left = self.world.server.explain();
        assert!(left.is_empty(), "{left:?}");
        for call in &self.calls {
            let result = self.world.returns.get(call);
            assert!(matches!(result, Some(ServerReturn::Modex(_))), "{call:?}");
        }
        assert_eq!(self.world.server.timers.next(), None);
        self.world.call(ServerCall::DeregisterNspace(ns("job")));
        assert!(self.world.server.upcalls.is_empty());
    }

    /// No rank dies: every request is answered.
    fn settle(mut self) {
        for _ in 0..100 {
            while let Some((id, op)) = self.world.asked.pop() {
                self.answer(id, &op, true);
            }
            let ranks: Vec<u32> = (0..LOCAL).filter(|rank| self.conns[*rank as usize].is_none()).collect();
            for rank in ranks {
                self.connect(rank);
            }
            for rank in 0..LOCAL {
                self.step(Step::Commit(rank, 0));
                self.step(Step::Fence(rank, true, None));
                self.step(Step::Group(rank));
                for other in 0..LOCAL {
                    self.step(Step::Pair(rank, other));
                    self.step(Step::Pair(other, rank));
                }
            }
            self.world.advance(Duration::from_secs(10));
        }
        for (conn, tag) in &self.asked[..self.asked.len() / 2] {
            assert!(self.world.has_reply(*conn, *tag), "{conn:?} {tag} is not answered");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_left_when_everybody_has_gone(steps in proptest::collection::vec(step(), 0..120), nodes in 1u32..3) {
        let mut chaos = Chaos::new(nodes);
        for step in steps {
            chaos.step(step);
        }
        chaos.end();
    }

    #[test]
    fn everybody_is_answered_while_nobody_dies(steps in proptest::collection::vec(step(), 0..60), nodes in 1u32..3) {
        let mut chaos = Chaos::new(nodes);
        for step in steps {
            if !matches!(step, Step::Close(_) | Step::Finalize(_) | Step::Ended(_) | Step::Garbage(..)) {
                chaos.step(step);
            }
        }
        chaos.settle();
    }

    #[test]
    fn any_bytes_of_a_stranger_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..80) {
        let mut world = World::with_job(1, 1);
        let mut greeting = super::world::hello(&proc("job", 0)).encode();
        greeting.truncate(cut.max(16));
        greeting.extend(bytes);
        let conn = world.open_as(super::world::UID);
        world.bytes(conn, &greeting);
        world.advance(Duration::from_secs(60));
        world.connect_after(conn);
    }
}

//! An overlay carries numbers here, over links that are cut and between daemons that are killed at random.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use proptest::prelude::*;

use super::frames::framed;
use super::*;
use crate::encoding::{Malformed, Reader, Writer, encoded};

#[derive(Clone, Debug)]
struct Numbers;

/// The daemons that have contributed, each at most once.
#[derive(Clone, Debug, Default, PartialEq)]
struct Came(BTreeSet<u32>);

#[derive(Clone, Debug)]
enum Payload {
    Number(u64),
    Result(u32),
}

impl Cargo for Numbers {
    type Down = Payload;
    type Up = u64;
    type Op = u32;
    type Part = Came;
    type Side = u64;
    type Card = u32;
    type Bulk = u64;

    fn result_of(down: &Payload) -> Option<&u32> {
        match down {
            Payload::Result(op) => Some(op),
            Payload::Number(_) => None,
        }
    }
}

encoded!(enum Payload { 0 Number(number), 1 Result(op) });

impl Encode for Came {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Came, Malformed> {
        BTreeSet::decode(from).map(Came)
    }
}

impl Merge for Came {
    fn merge(&mut self, other: Came) {
        for node in other.0 {
            assert!(self.0.insert(node), "the part of daemon {node} was counted twice");
        }
    }
}

impl Bulk for u64 {
    fn bytes(&self) -> usize {
        100
    }
}

/// What one daemon has received.
#[derive(Debug, Default)]
struct Heard {
    numbers: Vec<u64>,
    results: Vec<u32>,
    sides: Vec<u64>,
    taken: Vec<u64>,
    without: BTreeSet<NodeId>,
}

struct World {
    now: Time,
    daemons: Vec<Option<Overlay<Numbers>>>,
    heard: Vec<Heard>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Arc<[u8]>>>,
    random: u64,
    /// Received at the root.
    cards: BTreeSet<NodeId>,
    posts: BTreeMap<NodeId, Vec<u64>>,
    streams: BTreeMap<NodeId, Vec<u64>>,
    gathered: BTreeMap<u32, (Came, Ranges)>,
    lost: Vec<NodeId>,
}

impl World {
    fn new(size: u32, radix: u32, seed: u64) -> World {
        let tree = Tree::new(size, radix);
        let address = |node: NodeId| (node, Arc::from(format!("at {}", node.0)));
        let setup = |me: NodeId| Setup {
            me,
            size,
            radix,
            address: address(me).1,
            lineage: tree.ancestors(me).map(address).collect(),
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(15),
            reconnect: Duration::from_secs(5),
            window: 250,
        };
        let daemons = (0..size).map(|n| Some(Overlay::new(setup(NodeId(n))))).collect();
        let mut world = World {
            now: Time::default(),
            daemons,
            heard: (0..size).map(|_| Heard::default()).collect(),
            links: BTreeMap::new(),
            random: seed | 1,
            cards: BTreeSet::new(),
            posts: BTreeMap::new(),
            streams: BTreeMap::new(),
            gathered: BTreeMap::new(),
            lost: Vec::new(),
        };
        for node in (0..size).map(NodeId) {
            world.at(node, |overlay, now| overlay.hand_in(now, node.0));
            if let Some(parent) = tree.parent(node) {
                world.link(node, parent);
            }
        }
        world
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below.max(1) as u64) as usize
    }

    fn at(&mut self, node: NodeId, act: impl FnOnce(&mut Overlay<Numbers>, Time)) {
        let now = self.now;
        if let Some(overlay) = &mut self.daemons[node.0 as usize] {
            act(overlay, now);
        }
        self.settle(node);
    }

    fn link(&mut self, below: NodeId, above: NodeId) {
        if self.daemons[above.0 as usize].is_none() || self.links.contains_key(&(below, above)) {
            return self.at(below, |overlay, now| overlay.on_link_down(now, above, "cut"));
        }
        self.links.insert((below, above), VecDeque::new());
        self.links.insert((above, below), VecDeque::new());
        self.at(above, |overlay, now| overlay.on_link_up(now, below));
        self.at(below, |overlay, now| overlay.on_link_up(now, above));
    }

    fn cut(&mut self, one: NodeId, other: NodeId) {
        let was = self.links.remove(&(one, other)).is_some();
        self.links.remove(&(other, one));
        if was {
            self.at(other, |overlay, now| overlay.on_link_down(now, one, "cut"));
            self.at(one, |overlay, now| overlay.on_link_down(now, other, "cut"));
        }
    }

    fn kill(&mut self, node: NodeId) {
        self.daemons[node.0 as usize] = None;
        let ends: Vec<NodeId> =
            self.links.keys().filter(|(from, _)| *from == node).map(|(_, to)| *to).collect();
        ends.into_iter().for_each(|to| self.cut(node, to));
    }

    fn settle(&mut self, node: NodeId) {
        while let Some(out) = self.daemons[node.0 as usize].as_mut().and_then(Overlay::pop) {
            match out {
                Out::Send { to, msg } => {
                    let bytes =
                        self.daemons[node.0 as usize].as_mut().map(|overlay| overlay.link_bytes(&msg));
                    if let Some((link, bytes)) = self.links.get_mut(&(node, to)).zip(bytes) {
                        link.push_back(bytes);
                    }
                }
                // The overlay has already handled the end of the link.
                Out::Unlink { to } => {
                    self.links.remove(&(node, to));
                    if self.links.remove(&(to, node)).is_some() {
                        self.at(to, |overlay, now| overlay.on_link_down(now, node, "cut"));
                    }
                }
                Out::Connect { to, address } => {
                    assert_eq!(*address, *format!("at {}", to.0));
                    self.link(node, to);
                }
                Out::Arrived(arrived) => self.arrived(node, arrived),
            }
        }
    }

    fn arrived(&mut self, node: NodeId, arrived: Arrived<Numbers>) {
        let heard = &mut self.heard[node.0 as usize];
        let everybody = Ranges::first(self.daemons.len() as u32);
        match arrived {
            Arrived::Cards(cards) => self.cards.extend(cards.iter().map(|(node, _)| *node)),
            Arrived::Cast { addressed, body } => match &*body {
                Payload::Number(number) if addressed => heard.numbers.push(*number),
                Payload::Number(_) => {}
                Payload::Result(op) => {
                    heard.results.push(*op);
                    self.at(node, |overlay, _| overlay.close(op));
                }
            },
            Arrived::Post { origin, body } => self.posts.entry(origin).or_default().push(*body),
            Arrived::Part(gather) => {
                self.at(node, |overlay, now| overlay.take_part(now, gather, &everybody));
            }
            Arrived::Advanced(_) => {}
            Arrived::Gathered { op, among, missing, part } => {
                assert!(self.gathered.insert(*op, (part, missing)).is_none(), "gathered twice");
                self.at(node, |overlay, now| overlay.cast(now, among, Payload::Result(*op)));
            }
            Arrived::Side { body, .. } => heard.sides.push(body),
            Arrived::Bulk { landing, body } => {
                // The upper half of a number is its sender.
                self.streams.entry(NodeId((body >> 32) as u32)).or_default().push(body);
                let lends = self.random(2) == 0;
                self.at(node, |overlay, now| {
                    if lends {
                        overlay.lend(now, landing);
                    }
                    overlay.taken(now, landing);
                    overlay.tell_taken(now, true);
                });
            }
            Arrived::Taken(pieces) => heard.taken.extend(pieces),
            Arrived::Without(node) => assert!(heard.without.insert(node), "told twice"),
            Arrived::Lost { node, .. } => self.lost.push(node),
            Arrived::Alone { .. } => self.kill(node),
        }
    }

    /// Delivers the next message of some link. `false`: none is under way.
    fn deliver_one(&mut self) -> bool {
        let full: Vec<(NodeId, NodeId)> =
            self.links.iter().filter(|(_, link)| !link.is_empty()).map(|(ends, _)| *ends).collect();
        if full.is_empty() {
            return false;
        }
        let (from, to) = full[self.random(full.len())];
        let Some(bytes) = self.links.get_mut(&(from, to)).and_then(VecDeque::pop_front) else { return true };
        self.at(to, |overlay, now| overlay.on_link_bytes(now, from, &bytes));
        true
    }

    fn deliver_all(&mut self) {
        while self.deliver_one() {}
    }

    /// Lets time pass until the last of a chain of lost daemons has been given up.
    fn wait(&mut self) {
        for _ in 0..30 + 5 * self.daemons.len() {
            self.now = self.now.after(Duration::from_secs(2));
            for node in (0..self.daemons.len() as u32).map(NodeId) {
                self.at(node, |overlay, now| overlay.tick(now));
            }
            self.deliver_all();
        }
    }

    fn living(&self) -> Vec<NodeId> {
        (0..self.daemons.len() as u32).map(NodeId).filter(|n| self.daemons[n.0 as usize].is_some()).collect()
    }
}

/// Events of a world, besides messages that arrive.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Kill(u32),
    Cut(u32),
    Post(u32),
    Stream(u32),
    Join(u32),
    Cast,
    Deliver(u8),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        1 => any::<u32>().prop_map(Deed::Kill),
        1 => any::<u32>().prop_map(Deed::Cut),
        4 => any::<u32>().prop_map(Deed::Post),
        4 => any::<u32>().prop_map(Deed::Stream),
        4 => any::<u32>().prop_map(Deed::Join),
        3 => Just(Deed::Cast),
        8 => any::<u8>().prop_map(Deed::Deliver),
    ]
}

proptest! {
    #[test]
    fn survivors_lose_nothing(size in 1u32..30, radix in 1u32..5, seed: u64,
                              deeds in prop::collection::vec(any_deed(), 0..120)) {
        let mut world = World::new(size, radix, seed);
        let (mut posted, mut streamed) = (BTreeMap::new(), BTreeMap::new());
        let mut casts = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Kill(n) if n % size != 0 => world.kill(NodeId(n % size)),
                Deed::Kill(_) => {}
                Deed::Cut(n) => {
                    let links: Vec<_> = world.links.keys().copied().collect();
                    if let Some((one, other)) = links.get(n as usize % links.len().max(1)) {
                        world.cut(*one, *other);
                    }
                }
                Deed::Post(n) => {
                    let node = NodeId(n % size);
                    let mine: &mut Vec<u64> = posted.entry(node).or_default();
                    mine.push(mine.len() as u64);
                    let number = mine.len() as u64 - 1;
                    world.at(node, |overlay, now| overlay.post(now, number));
                }
                Deed::Stream(n) => {
                    let node = NodeId(n % size);
                    let mine: &mut Vec<u64> = streamed.entry(node).or_default();
                    let number = (u64::from(node.0) << 32) + mine.len() as u64;
                    mine.push(number);
                    world.at(node, |overlay, now| overlay.stream(now, number));
                }
                Deed::Join(n) => {
                    let (node, everybody) = (NodeId(n % size), Ranges::first(size));
                    world.at(node, |overlay, now| {
                        if overlay.casts.have() == 0 || overlay.participants(&7).is_some() {
                            overlay.join(now, 7, &everybody, Came([node.0].into()));
                        }
                    });
                }
                Deed::Cast => {
                    let number = casts.len() as u64;
                    casts.push(number);
                    world.at(NodeId::ROOT, |overlay, now| {
                        overlay.cast(now, Ranges::first(size), Payload::Number(number));
                    });
                }
                Deed::Deliver(n) => (0..n).for_each(|_| { world.deliver_one(); }),
            }
        }
        world.wait();
        let living = world.living();
        for node in living.iter().copied() {
            let heard = &world.heard[node.0 as usize];
            prop_assert!(world.cards.contains(&node), "{node:?} has come up");
            prop_assert_eq!(&heard.numbers, &casts, "casts at {:?}", node);
            let wanted = posted.remove(&node).unwrap_or_default();
            prop_assert_eq!(world.posts.get(&node).cloned().unwrap_or_default(), wanted, "posts of {:?}", node);
            let wanted = streamed.remove(&node).unwrap_or_default();
            prop_assert_eq!(world.streams.get(&node).cloned().unwrap_or_default(), wanted.clone());
            prop_assert_eq!(&heard.taken, &wanted, "what {:?} may forget", node);
        }
        for node in living.iter().copied() {
            let without: Vec<NodeId> = world.heard[node.0 as usize].without.iter().copied().collect();
            let dead: Vec<NodeId> = (0..size).map(NodeId).filter(|n| !living.contains(n)).collect();
            prop_assert_eq!(without, dead, "whom {:?} goes on without", node);
        }
        // From daemons that died, the root has a prefix of what they sent.
        for (node, said) in posted.into_iter().chain(streamed) {
            let posts = world.posts.get(&node).map_or(&[][..], Vec::as_slice);
            let streams = world.streams.get(&node).map_or(&[][..], Vec::as_slice);
            prop_assert!(said.starts_with(posts) || said.starts_with(streams));
        }
        let mut lost = world.lost.clone();
        lost.sort_unstable();
        let dead: Vec<NodeId> = (0..size).map(NodeId).filter(|n| !living.contains(n)).collect();
        prop_assert_eq!(lost, dead, "each loss is told once");
    }

    #[test]
    fn every_gather_ends_and_names_the_missing_daemons(size in 1u32..30, radix in 1u32..5, seed: u64,
                                                  kills in prop::collection::vec((1u32..30, any::<u8>()), 0..6)) {
        let mut world = World::new(size, radix, seed);
        world.deliver_all();
        let everybody = Ranges::first(size);
        for node in world.living() {
            world.at(node, |overlay, now| overlay.join(now, 7, &everybody, Came([node.0].into())));
        }
        for (node, after) in kills {
            (0..after).for_each(|_| { world.deliver_one(); });
            if node < size {
                world.kill(NodeId(node));
            }
        }
        world.wait();
        let Some((came, missing)) = world.gathered.get(&7) else {
            return Err(TestCaseError::fail("the gather has not ended"));
        };
        for node in 0..size {
            prop_assert!(came.0.contains(&node) != missing.contains(node), "daemon {} counts once", node);
        }
        for node in world.living() {
            prop_assert!(came.0.contains(&node.0), "{node:?} lives and has contributed");
            prop_assert_eq!(&world.heard[node.0 as usize].results, &[7]);
        }
    }

    #[test]
    fn routed_messages_find_their_way(size in 2u32..30, radix in 1u32..5, seed: u64, from: u32, to: u32) {
        let mut world = World::new(size, radix, seed);
        world.deliver_all();
        let (from, to) = (NodeId(from % size), NodeId(to % size));
        world.at(from, |overlay, now| overlay.send_to(now, to, 42));
        world.deliver_all();
        prop_assert_eq!(&world.heard[to.0 as usize].sides, &[42]);
    }
}

#[test]
fn a_paused_daemon_does_not_call_others_silent() {
    let mut world = World::new(7, 2, 1);
    world.deliver_all();
    for _ in 0..3 {
        world.now = world.now.after(Duration::from_secs(3600));
        for node in world.living() {
            let Some(overlay) = &mut world.daemons[node.0 as usize] else { continue };
            overlay.tick(world.now);
            let dropped = overlay.out.iter().any(|out| matches!(out, Out::Unlink { .. }));
            assert!(!dropped, "{node:?} has dropped a link before it has read what came meanwhile");
        }
        world.deliver_all();
    }
}

#[test]
fn a_daemon_that_announces_its_pause_is_not_lost_during_it() {
    let mut world = World::new(3, 2, 1);
    world.deliver_all();
    world.at(NodeId::ROOT, |overlay, now| overlay.stand_still(now));
    world.deliver_all();
    let wait_below = |world: &mut World| {
        for _ in 0..100 {
            world.now = world.now.after(Duration::from_secs(2));
            for node in [NodeId(1), NodeId(2)] {
                world.at(node, |overlay, now| overlay.tick(now));
            }
        }
    };
    // Whatever it still says before it stands.
    world.at(NodeId::ROOT, |overlay, now| overlay.send_to(now, NodeId(1), 7));
    world.deliver_all();
    wait_below(&mut world);
    assert_eq!((world.links.len(), world.heard[1].sides.as_slice()), (4, [7].as_slice()));
    // It wakes, and nothing has been read yet.
    let due = |world: &World| world.daemons[0].as_ref().and_then(Overlay::deadline);
    assert_eq!(due(&world), None);
    world.at(NodeId::ROOT, |overlay, now| overlay.tick(now));
    world.at(NodeId::ROOT, |overlay, now| overlay.go_on(now));
    world.at(NodeId::ROOT, |overlay, now| overlay.tick(now));
    assert!(due(&world) > Some(world.now));
    world.deliver_all();
    assert_eq!((world.links.len(), world.lost.len()), (4, 0));
    // The next pause is not announced.
    wait_below(&mut world);
    assert!(world.living().iter().all(|node| *node == NodeId::ROOT), "they have lost the root");
}

#[test]
fn a_silent_root_whose_process_exists_is_waited_for() {
    for (silent, other, is_lost) in [(0, 1, false), (1, 0, true)] {
        let mut world = World::new(2, 2, 1);
        world.deliver_all();
        world.daemons[silent as usize] = None;
        for _ in 0..100 {
            world.now = world.now.after(Duration::from_secs(1));
            world.at(NodeId(other), |overlay, now| {
                overlay.on_link_acked(now, NodeId(silent), Duration::from_secs(2));
                overlay.tick(now);
            });
        }
        assert_eq!(world.links.is_empty(), is_lost, "daemon {silent}");
    }
}

#[test]
fn half_a_message_is_a_sign_of_life() {
    let mut world = World::new(2, 2, 1);
    world.deliver_all();
    let long = framed(&[0; 1000]);
    for byte in long.iter().take(100) {
        world.now = world.now.after(Duration::from_secs(2));
        world.at(NodeId::ROOT, |overlay, now| {
            overlay.on_link_bytes(now, NodeId(1), &[*byte]);
            overlay.tick(now);
        });
    }
    assert_eq!(world.lost, []);
    assert_eq!(world.links.len(), 2);
}

#[test]
fn a_silent_neighbour_is_lost_in_the_stated_time() {
    let mut world = World::new(2, 2, 1);
    world.deliver_all();
    world.daemons[1] = None;
    for second in 0..30 {
        assert_eq!(world.links.is_empty(), second > 15, "after {second} s");
        world.now = world.now.after(Duration::from_secs(1));
        world.at(NodeId::ROOT, |overlay, now| overlay.tick(now));
    }
    assert_eq!(world.lost, [NodeId(1)]);
}

//! Our clients and our servers together, down to the bytes, with all possible events in random order.

#![allow(clippy::unwrap_used)]

mod files;
mod world;

use phalanx_core::{ClientCall, ClientReturn, Event, LookupRequest};
use phalanx_spec::{Range, Rank, Scope, Status, keys};
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::{Info, Key, ProcId, Value};

use self::world::{SIZE, Step, World, proc, register};

const SEEDS: u64 = 60;

fn get(rank: u32, key: &str, info: Vec<Info>) -> Step {
    let request = LookupRequest::new(proc(rank), Some(Key::new(key).unwrap()), &info);
    Step::Call(ClientCall::Get { request, info })
}

fn fence(collect: bool) -> Step {
    let info = vec![Info::new(keys::COLLECT_DATA, collect)];
    Step::Call(ClientCall::Fence(Fence { procs: Vec::new(), info }))
}

fn finalize() -> Step {
    Step::Call(ClientCall::Finalize { info: Vec::new() })
}

fn value(value: impl Into<Value>) -> ClientReturn {
    ClientReturn::Value(Ok(value.into()))
}

const DONE: ClientReturn = ClientReturn::Done(Status::SUCCESS);

/// Put, commit, then get from all ranks; with or without a fence before, which may or may not collect.
#[test]
fn everybody_gets_what_everybody_put() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, |rank| {
            let mut steps = vec![Step::Put(Scope::GLOBAL, "card", Value::Uint32(100 + rank)), Step::Commit];
            steps.extend(match seed % 3 {
                0 => None,
                1 => Some(fence(false)),
                _ => Some(fence(true)),
            });
            steps.extend((0..SIZE).map(|other| get((rank + other) % SIZE, "card", Vec::new())));
            steps.push(finalize());
            steps
        });
        world.run();
        for rank in 0..SIZE {
            let ends = &world.clients[rank as usize].ends;
            assert_eq!(ends[0], ClientReturn::Init(Ok(())), "seed {seed}");
            let gets = ends.len() - 1 - SIZE as usize;
            assert!(ends[1..gets].iter().all(|end| *end == DONE), "seed {seed}: {ends:?}");
            for other in 0..SIZE {
                let expected = value(100 + (rank + other) % SIZE);
                assert_eq!(ends[gets + other as usize], expected, "seed {seed}, rank {rank}");
            }
            assert_eq!(ends.last(), Some(&DONE));
        }
        assert!(world.explain().is_empty(), "{:?}", world.explain());
    }
}

/// Both for a process that asks and for one that reads files: after a fence it gets what processes of its node committed
/// before it, and after a collecting fence also what all others did. A process that asks keeps what it received.
#[test]
fn fences_show_what_was_committed_again() {
    for seed in 0..SEEDS {
        let again = |n: u32| [Step::Put(Scope::GLOBAL, "card", Value::Uint32(n)), Step::Commit];
        let mut world = World::new(seed, |rank| {
            let mut steps: Vec<Step> = again(rank).into();
            steps.push(fence(true));
            steps.extend((seed % 2 == 0).then(|| get((rank + 2) % SIZE, "card", Vec::new())));
            steps.extend(again(100 + rank));
            steps.extend([fence(false), get(rank ^ 1, "card", Vec::new()), fence(false)]);
            steps.extend(again(200 + rank));
            steps.extend([fence(true), get((rank + 2) % SIZE, "card", Vec::new())]);
            steps
        });
        world.run();
        for rank in 0..SIZE {
            let ends = &world.clients[rank as usize].ends;
            let told = usize::from(seed % 2 == 0);
            assert_eq!(ends[5 + told], value(100 + (rank ^ 1)), "seed {seed}, rank {rank}");
            let far = (rank + 2) % SIZE;
            let kept = told == 1 && !world.reads_files(rank);
            assert_eq!(ends[9 + told], value(if kept { far } else { 200 + far }), "seed {seed}, rank {rank}");
        }
    }
}

#[test]
fn each_value_goes_no_further_than_its_scope() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, |rank| {
            let immediate = || vec![Info::new(keys::IMMEDIATE, true)];
            vec![
                Step::Put(Scope::LOCAL, "here", Value::Uint32(rank)),
                Step::Put(Scope::REMOTE, "there", Value::Uint32(rank)),
                Step::Put(Scope::INTERNAL, "mine", Value::Uint32(rank)),
                Step::Commit,
                fence(true),
                get(rank ^ 1, "here", immediate()),
                get(rank ^ 1, "there", immediate()),
                get((rank + 2) % SIZE, "here", immediate()),
                get((rank + 2) % SIZE, "there", immediate()),
                get(rank, "mine", Vec::new()),
            ]
        });
        world.run();
        for rank in 0..SIZE {
            let absent = ClientReturn::Value(Err(Status::ERR_NOT_FOUND));
            assert_eq!(*world.end_of(rank, 3), value(rank ^ 1), "seed {seed}");
            assert_eq!(*world.end_of(rank, 4), absent, "seed {seed}");
            assert_eq!(*world.end_of(rank, 5), absent, "seed {seed}");
            assert_eq!(*world.end_of(rank, 6), value((rank + 2) % SIZE), "seed {seed}");
            assert_eq!(*world.end_of(rank, 7), value(rank), "seed {seed}");
        }
    }
}

#[test]
fn the_job_is_known_without_asking() {
    let mut world = World::new(1, |_| Vec::new());
    world.run();
    for rank in 0..SIZE {
        let store = &world.clients[rank as usize].store;
        let known = |proc: ProcId, key: &'static str| {
            let info = [Info::new(keys::OPTIONAL, true)];
            store.known(&LookupRequest::new(proc, Some(Key::of(key)), &info))
        };
        let all = ProcId::all(&proc(0).nspace);
        assert_eq!(known(all.clone(), keys::JOB_SIZE), Some(Value::Uint32(SIZE)));
        let peers = if rank < 2 {
            "0,1"
        } else if rank < 4 {
            "2,3"
        } else {
            "4,5"
        };
        assert_eq!(known(all.clone(), keys::LOCAL_PEERS), Some(peers.into()));
        assert_eq!(known(all, keys::LOCAL_SIZE), Some(Value::Uint32(2)));
        for other in 0..SIZE {
            let host = format!("node{}", other / 2);
            assert_eq!(known(proc(other), keys::HOSTNAME), Some(host.into()));
            assert_eq!(known(proc(other), keys::LOCAL_RANK), Some(Value::Uint16((other % 2) as u16)));
            assert_eq!(known(proc(other), keys::GLOBAL_RANK).and_then(|v| v.as_rank()), Some(Rank(other)));
        }
    }
}

#[test]
fn a_get_waits_until_the_value_is_committed() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, |rank| match rank {
            0 => vec![fence(false), Step::Put(Scope::GLOBAL, "late", Value::Uint32(7)), Step::Commit],
            _ => vec![fence(false), get(0, "late", Vec::new())],
        });
        world.run();
        for rank in 1..SIZE {
            assert_eq!(*world.end_of(rank, 2), value(7_u32), "seed {seed}, rank {rank}");
        }
    }
}

#[test]
fn a_get_that_nobody_answers_ends_in_time() {
    for seed in 0..SEEDS {
        let timeout = || vec![Info::new(keys::TIMEOUT, 2)];
        let mut world = World::new(seed, |rank| match rank {
            0 => vec![Step::Put(Scope::GLOBAL, "other", Value::Uint32(7)), Step::Commit],
            _ => vec![get(0, "never", timeout())],
        });
        world.run();
        for rank in 1..SIZE {
            let ClientReturn::Value(Err(status)) = world.end_of(rank, 1) else { panic!() };
            assert!([Status::ERR_TIMEOUT, Status::ERR_NOT_FOUND].contains(status), "seed {seed}: {status}");
        }
        assert!(world.explain().is_empty(), "{:?}", world.explain());
    }
}

#[test]
fn published_values_are_found_until_withdrawn() {
    for seed in 0..SEEDS {
        let publish = || ClientCall::Publish(Publish { uid: 0, info: vec![Info::new("service", "tcp:5")] });
        let lookup = || {
            Step::Call(ClientCall::Lookup(Published {
                uid: 0,
                keys: vec![Key::of("service")],
                info: Vec::new(),
            }))
        };
        let unpublish =
            || ClientCall::Unpublish(Published { uid: 0, keys: vec![Key::of("service")], info: Vec::new() });
        let mut world = World::new(seed, |rank| match rank {
            3 => {
                vec![Step::Call(publish()), fence(false), fence(false), Step::Call(unpublish()), fence(false)]
            }
            _ => vec![fence(false), lookup(), fence(false), fence(false), lookup()],
        });
        world.run();
        for rank in (0..SIZE).filter(|rank| *rank != 3) {
            let ClientReturn::Found(Status::SUCCESS, found) = world.end_of(rank, 2) else {
                panic!("seed {seed}")
            };
            assert_eq!((found.len(), &found[0].proc, &found[0].value), (1, &proc(3), &"tcp:5".into()));
            assert_eq!(*world.end_of(rank, 5), ClientReturn::Found(Status::ERR_NOT_FOUND, Vec::new()));
        }
    }
}

#[test]
fn an_event_reaches_the_listeners_in_its_range_once() {
    const CODE: Status = Status(-2000);
    for seed in 0..SEEDS {
        let range = [Range::NAMESPACE, Range::GLOBAL, Range::LOCAL, Range::PROC_LOCAL][seed as usize % 4];
        let notify = || ClientCall::Notify { code: CODE, range, info: vec![Info::new("reason", "test")] };
        let mut world = World::new(seed, |rank| {
            let mut steps = vec![if rank % 2 == 0 { register(&[CODE]) } else { register(&[]) }, fence(false)];
            if rank == 2 {
                steps.push(Step::Call(notify()));
            }
            steps
        });
        world.run();
        for (rank, client) in world.clients.iter().enumerate() {
            let reached = match range {
                Range::PROC_LOCAL => rank == 2,
                Range::LOCAL => rank == 2 || rank == 3,
                _ => true,
            };
            let codes: Vec<_> = client.events.iter().map(|event| event.code).collect();
            assert_eq!(codes, vec![CODE; usize::from(reached)], "seed {seed}, rank {rank}, {range:?}");
            if let Some(Event { source, info, .. }) = client.events.first() {
                assert_eq!(*source, proc(2));
                assert!(info.iter().any(|info| info.key == *"reason"));
            }
        }
    }
}

#[test]
fn waiters_are_answered_when_a_process_dies() {
    for seed in 0..SEEDS {
        let here = || ClientCall::Fence(Fence { procs: vec![proc(0), proc(1)], info: Vec::new() });
        let mut world = World::new(seed, |rank| match rank {
            0 => vec![Step::Call(here())],
            1 => vec![Step::Vanish],
            2 => vec![get(3, "never", Vec::new())],
            3 => vec![Step::Vanish],
            _ => Vec::new(),
        });
        world.run();
        let ClientReturn::Done(status) = world.end_of(0, 1) else { panic!() };
        assert!(!status.is_success(), "seed {seed}");
        let ClientReturn::Value(Err(_)) = world.end_of(2, 1) else { panic!("seed {seed}") };
        assert!(world.explain().is_empty(), "{:?}", world.explain());
    }
}

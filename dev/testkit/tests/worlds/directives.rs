//! Random directives of one tool for the ranks of a job, sent without waiting, while ranks are restarted: at the end the
//! actual state is compared with every answer.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::host::{Asked, HostOp, HostReply, ToolRequest};
use phalanx_dvm::map::Policy;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, JobVerdict, Limits, names};
use phalanx_spec::{Rank, Status, keys};
use phalanx_testkit::scripted::ScriptedServer;
use phalanx_testkit::{Op, Random, RankAnswer, Script, Setup, Step, World};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::{Info, Nspace, ProcId, Value};

use crate::seeds::each_seed;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Directive {
    Pause,
    Resume,
    Restart,
    Kill,
    Terminate,
}

/// A directive with its time and targets.
#[derive(Clone, Debug)]
struct Request {
    at: Duration,
    directive: Directive,
    targets: Vec<u32>,
}

/// The state of one rank according to the answers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Claimed {
    /// How many of its processes ran before the last one that did.
    life: u32,
    runs: bool,
    paused: bool,
}

const FIRST: Claimed = Claimed { life: 0, runs: true, paused: false };

impl Directive {
    fn info(self) -> Info {
        match self {
            Directive::Pause => Info::new(keys::JOB_CTRL_PAUSE, true),
            Directive::Resume => Info::new(keys::JOB_CTRL_RESUME, true),
            Directive::Restart => Info::new(keys::JOB_CTRL_RESTART, Value::NullString),
            Directive::Kill => Info::new(keys::JOB_CTRL_KILL, true),
            Directive::Terminate => Info::new(keys::JOB_CTRL_TERMINATE, true),
        }
    }
}

impl Claimed {
    /// Applies one answer, in the order of the requests. Refuses an answer that cannot be true.
    fn answered(&mut self, directive: Directive, status: Status) -> Result<(), String> {
        match (status, directive) {
            (Status::SUCCESS, Directive::Restart) => *self = Claimed { life: self.life + 1, ..FIRST },
            (Status::SUCCESS, Directive::Kill | Directive::Terminate) => {
                (self.runs, self.paused) = (false, false);
            }
            (Status::SUCCESS, Directive::Pause) => self.paused = self.runs,
            (Status::SUCCESS, Directive::Resume) => self.paused = false,
            // It had ended before.
            (Status::ERR_NOT_FOUND, _) if !self.runs => {}
            // It was killed before it ran again.
            (Status::ERR_PROC_ABORTED, Directive::Restart) => {
                (self.runs, self.paused) = (false, false);
            }
            // A restart is already under way.
            (Status::ERR_EXISTS, Directive::Restart) => {}
            _ => return Err(format!("{directive:?}: {status} of one that {self:?}")),
        }
        Ok(())
    }
}

fn tool() -> ProcId {
    ProcId::new(&Nspace::new("steering").unwrap(), Rank(0))
}

/// A rank of the controlled job.
fn target(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("world@2").unwrap(), Rank(rank))
}

/// Bursts of requests in close succession, with pauses between the bursts.
fn requests(random: &mut Random, ranks: u32, most: u64) -> Vec<Request> {
    let mut at = Duration::from_secs(10);
    let mut each = |random: &mut Random| {
        at += match random.one_in(5) {
            true => Duration::from_millis(random.between(1, 3000)),
            false => Duration::from_micros(random.between(1000, 30_000)),
        };
        let directive = *random
            .pick(&[
                Directive::Pause,
                Directive::Resume,
                Directive::Restart,
                Directive::Restart,
                Directive::Restart,
                Directive::Kill,
                Directive::Terminate,
            ])
            .unwrap();
        let targets: Vec<u32> = match random.between(0, 6) {
            0 => (0..ranks).collect(),
            1 => (0..ranks).filter(|_| random.one_in(2)).collect(),
            _ => vec![random.between(0, ranks.into()) as u32],
        };
        Request { at, directive, targets: if targets.is_empty() { vec![0] } else { targets } }
    };
    (0..random.between(3, most)).map(|_| each(random)).collect()
}

/// One job of ranks that do not end by themselves, unless they fail and are restarted for it, and one of ranks that send a
/// request each, all of them in the tool's name.
fn world(seed: u64, requests: &[Request], ranks: u32, on_failure: FailurePolicy) -> World<ScriptedServer> {
    let mut random = Random::new(seed ^ 0x5eed);
    let server = Box::new(|_| ScriptedServer::default());
    let limits = Limits::default();
    let latency = Duration::from_micros(random.between(100, 60_000));
    let nodes = random.between(1, 4) as u32;
    let mut world = World::new(Setup { seed, nodes, radix: 2, cores: 64, limits, latency, server });
    let sent = requests.to_vec();
    let stubborn = random.number();
    let fails = matches!(on_failure, FailurePolicy::Restart { .. });
    world.script(move |proc| match proc.nspace.as_str() {
        "world@1" => {
            let host = |op| Step::Ask(Op::Host(Box::new(op)));
            let Some(request) = sent.get(proc.rank.0 as usize) else {
                let (claims, info) = (Some(tool()), Vec::new());
                let connected =
                    HostOp::ToolConnected(ToolRequest { uid: 0, gid: 0, pid: None, claims, info });
                return Script::new(vec![host(connected), Step::Hang]);
            };
            let targets = request.targets.iter().map(|rank| target(*rank)).collect();
            let control = JobControl { targets, directives: vec![request.directive.info()] };
            let control = HostOp::from(Asked { from: tool(), request: control });
            Script::new(vec![Step::Sleep(request.at), host(control), Step::Hang])
        }
        _ => Script {
            ignores_term: stubborn >> (proc.rank.0 % 64) & 1 == 1,
            ..Script::new(match fails && random.one_in(2) {
                true => vec![
                    Step::Ask(Op::Init),
                    Step::Sleep(Duration::from_millis(random.between(1, 12_000))),
                    Step::Exit(3),
                ],
                false => vec![Step::Ask(Op::Init), Step::Hang],
            })
        },
    });
    let app = |procs| AppSpec { argv: vec!["steered".into()], procs: Some(procs), ..AppSpec::default() };
    let askers = app(requests.len() as u32 + 1);
    world.submit(JobRequest { apps: vec![askers], ..JobRequest::default() });
    world.run_until(Duration::from_secs(60), |world| world.procs.len() == requests.len() + 1);
    let policy = Policy { map: "node".parse().unwrap(), ..Policy::default() };
    world.submit(JobRequest { apps: vec![app(ranks)], on_failure, policy, ..JobRequest::default() });
    world
}

/// The result of each target, from the answer.
fn results(reply: &HostReply) -> BTreeMap<u32, Status> {
    let HostReply::Infos(_, info) = reply else { panic!("{reply:?}") };
    let mut results = BTreeMap::new();
    for about in info.iter().filter(|info| info.key == *names::RESULT) {
        let about = about.value.as_array().unwrap();
        let find = |key: &str| about.infos().find(|info| info.key == *key).map(|info| &info.value);
        let Some(Value::Status(status)) = find(names::STATUS) else { panic!("{about:?}") };
        for span in find(names::WHICH).and_then(Value::as_str).unwrap().split(',') {
            let (first, last) = span.split_once('-').unwrap_or((span, span));
            for rank in first.parse::<u32>().unwrap()..=last.parse().unwrap() {
                assert_eq!(results.insert(rank, *status), None, "{info:?}");
            }
        }
    }
    results
}

fn live(seed: u64, most: u64, on_failure: FailurePolicy) {
    let mut random = Random::new(seed);
    let ranks = random.between(1, 6) as u32;
    let requests = requests(&mut random, ranks, most);
    let mut world = world(seed, &requests, ranks, on_failure);
    world.run_for(Duration::from_secs(400));
    let mut claimed = vec![FIRST; ranks as usize];
    let mut story = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let asker = ProcId::new(&Nspace::new("world@1").unwrap(), Rank(number as u32));
        let reply = match world.procs[&asker].answers.first() {
            Some((_, RankAnswer::Host(reply))) => reply,
            other => panic!("{request:?}: {other:?}\n{story:#?}\n{}", world.explain()),
        };
        let results = results(reply);
        story.push(format!("{request:?}: {results:?}"));
        assert!(results.keys().eq(request.targets.iter()), "{request:?}: {reply:?}");
        for (rank, status) in results {
            let told = claimed[rank as usize].answered(request.directive, status);
            assert_eq!(told, Ok(()), "rank {rank}\n{story:#?}\n{:?}", world.user.notes);
        }
    }
    let context =
        |world: &World<ScriptedServer>| format!("{story:#?}\n{:#?}\n{}", world.user.notes, world.explain());
    for (rank, claimed) in (0..).zip(&claimed) {
        let fate = &world.procs[&target(rank)];
        let life = fate.env.get(&b"PHALANX_RESTARTS"[..]);
        let life = life.map_or(0, |times| String::from_utf8_lossy(times).parse().unwrap());
        let runs = fate.ended.is_none();
        let truth = match on_failure {
            // Restarts after failures were not requested, and their next lives do not pause.
            FailurePolicy::Restart { .. } => Claimed { runs, ..*claimed },
            _ => Claimed { life, runs, paused: runs && fate.is_stopped() },
        };
        assert_eq!(truth, *claimed, "rank {rank}: the truth, and what was said\n{}", context(&world));
    }
    let ended = world.user.ends.get(&target(0).nspace);
    let is_over = claimed.iter().all(|claimed| !claimed.runs);
    assert_eq!(ended.is_some(), is_over, "{}", context(&world));
    if let Some(end) = ended {
        assert!(matches!(end.verdict, JobVerdict::Killed { .. }), "{:?}\n{}", end.verdict, context(&world));
    }
}

#[test]
fn answers_to_directives_amid_restarts_are_true() {
    each_seed(1..201, |seed| live(seed, 9, FailurePolicy::Continue));
}

#[test]
fn answers_to_many_directives_amid_restarts_are_true() {
    each_seed(1..101, |seed| live(seed, 30, FailurePolicy::KillJob));
}

#[test]
fn answers_are_true_while_ranks_fail_and_start_again() {
    each_seed(1..101, |seed| live(seed, 20, FailurePolicy::Restart { most: 1000 }));
}

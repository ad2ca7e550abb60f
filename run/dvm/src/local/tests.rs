//! One node alone: tests give it events of processes and server, and check its outputs. No tree, no root.

use std::time::Duration;

use phalanx_core::host::{
    Asked, ClientLost, ClientRefused, CollectiveKind, CommitRefused, DirectModexRequest, FenceRequest,
};
use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{HostCall, HostOp, HostReply};
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_topo::Topology;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::{Blob, Info, Nspace, Text};

use super::*;
use crate::config::Limits;
use crate::effect::Effect;
use crate::msg::{
    Agreed, AppDesc, Collective, Control, ControlRequest, ExitStatus, FailurePolicy, JobDesc, Members, Part,
    Pauser, Places, Policy, ReportedEnds, Results, Side, StdinTarget, Task, TaskId,
};
use crate::ranges::Ranges;
use crate::signals::{SIGKILL, SIGSTOP};

mod commands;
mod freed;
mod lives;

struct LocalScene {
    local: Local,
    now: Time,
    /// Its outputs that the test has not checked yet.
    wishes: VecDeque<FromLocal>,
}

fn nspace() -> Nspace {
    Nspace::new("dvm@1").unwrap()
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&nspace(), Rank(rank))
}

/// Two processes on node 1 and one on node 2.
fn desc() -> Arc<JobDesc> {
    let column = |values: [u32; 3]| values.into_iter().collect();
    let places = Places {
        node: column([1, 1, 2]),
        app_rank: column([0, 1, 2]),
        local_rank: column([0, 1, 0]),
        ..Places::default()
    };
    let app = AppDesc {
        argv: [Text::from("program")].into(),
        env: Vec::new(),
        changes: Vec::new(),
        cwd: None,
        prefix: None,
        values: Vec::new(),
        size: 3,
    };
    Arc::new(JobDesc {
        nspace: nspace(),
        number: 1,
        parent: None,
        size: 3,
        nodes: [1, 2].into_iter().collect(),
        crowded: Ranges::new(),
        places,
        env: Vec::new(),
        apps: vec![app],
        stdin: StdinTarget::None,
        forward: IofChannel::ALL,
        diag: false,
        on_failure: FailurePolicy::Continue,
        reported_ends: ReportedEnds::default(),
        kill_after: None,
        checkpoint_command: None,
        restart_command: None,
        job: [].into(),
        session: [].into(),
        allocated: Default::default(),
    })
}

impl LocalScene {
    /// Node 1 of three.
    fn new() -> LocalScene {
        let config = NodeConfig::for_test(1, 3, Topology::synthetic(1, 1, 1, 4, 1));
        let mut scene = LocalScene { local: Local::new(config), now: Time(0), wishes: VecDeque::new() };
        let names = ["n0", "n1", "n2"].map(Arc::from).to_vec();
        scene.down(Down::Table(Arc::new(NodeTable::new(names))));
        scene
    }

    /// Its processes run.
    fn running() -> LocalScene {
        LocalScene::running_job(desc())
    }

    fn running_job(desc: Arc<JobDesc>) -> LocalScene {
        let mut scene = LocalScene::new();
        scene.down(Down::Start(desc));
        scene.serve();
        for rank in [0, 1] {
            scene.tell(ToLocal::Spawned { proc: proc(rank), pid: 100 + rank, program: "/bin/a".into() });
        }
        scene
    }

    fn tell(&mut self, what: ToLocal) {
        self.local.handle(self.now, what, &mut self.wishes);
    }

    fn down(&mut self, body: Down) {
        self.tell(ToLocal::Down(Arc::new(body)));
    }

    fn upcall(&mut self, id: u64, op: HostOp) {
        self.tell(ToLocal::Upcall { call: HostCall::new(id), op });
    }

    /// Plays a server that grants everything.
    fn serve(&mut self) {
        for wish in std::mem::take(&mut self.wishes) {
            let FromLocal::Call { id, call } = wish else {
                self.wishes.push_back(wish);
                continue;
            };
            let result = match call {
                ServerCall::SetupFork(_) => ServerReturn::Environment(Vec::new()),
                _ => ServerReturn::Done(Status::SUCCESS),
            };
            self.tell(ToLocal::Returned { id, result });
        }
    }

    /// The process ends, its streams with it, and the root takes them.
    fn exit(&mut self, rank: u32, status: ExitStatus) {
        self.tell(ToLocal::Exited { proc: proc(rank), status });
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            self.tell(ToLocal::OutputClosed { proc: proc(rank), channel });
        }
        while self.local.go_on(self.now, &mut self.wishes) {}
        let ends = self.wishes.iter().filter_map(|wish| match wish {
            FromLocal::Stream(piece) => Some(piece.clone()),
            _ => None,
        });
        let ends = ends.collect();
        self.wishes.retain(|wish| !matches!(wish, FromLocal::Stream(_)));
        self.tell(ToLocal::Taken(ends));
    }

    fn wait(&mut self, seconds: u64) {
        self.wait_millis(1000 * seconds);
    }

    fn wait_millis(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        while self.local.deadline().is_some_and(|due| due <= self.now) {
            self.tell(ToLocal::Tick);
        }
    }

    /// All posts except those about the job's beginning and free slots.
    fn posts(&self) -> Vec<&Up> {
        let posts = self.wishes.iter().filter_map(|wish| match wish {
            FromLocal::Post(up) if !matches!(up, Up::Began { .. } | Up::Freed { .. }) => Some(up),
            _ => None,
        });
        posts.collect()
    }

    fn part(&self, op: &OpId) -> Option<&Part> {
        self.wishes.iter().find_map(|wish| match wish {
            FromLocal::Join(joined, part) if joined == op => Some(part),
            _ => None,
        })
    }

    fn signals(&self) -> Vec<(u32, i32)> {
        let signal = |wish: &FromLocal| match wish {
            FromLocal::Effect(Effect::Signal { proc, signal } | Effect::SignalTree { proc, signal }) => {
                Some((proc.rank.0, *signal))
            }
            _ => None,
        };
        self.wishes.iter().filter_map(signal).collect()
    }

    fn reply(&self, to: u64) -> Option<&HostReply> {
        self.wishes.iter().find_map(|wish| match wish {
            FromLocal::Reply { call, reply } if call.number() == to => Some(reply),
            _ => None,
        })
    }
}

#[test]
fn its_own_processes_are_started_and_no_others() {
    let scene = LocalScene::running();
    let spawned = |wish: &FromLocal| match wish {
        FromLocal::Effect(Effect::Spawn(start)) => Some(start.proc.rank.0),
        _ => None,
    };
    assert_eq!(scene.wishes.iter().filter_map(spawned).collect::<Vec<_>>(), [0, 1]);
    let Some(Part::Started { pids, programs, failed: false, .. }) = scene.part(&OpId::Started(nspace()))
    else {
        panic!("{:?}", scene.wishes)
    };
    assert_eq!([0, 1, 2].map(|rank| programs.of(rank).is_some()), [true, true, false]);
    assert_eq!(*pids, [(0, 100), (1, 101)]);
}

#[test]
fn the_first_process_is_reported_before_the_others_run() {
    let mut scene = LocalScene::new();
    scene.down(Down::Start(desc()));
    scene.serve();
    let began = |scene: &LocalScene| {
        let is_beginning =
            |wish: &&FromLocal| matches!(wish, FromLocal::Post(Up::Began { nspace: of }) if *of == nspace());
        scene.wishes.iter().filter(is_beginning).count()
    };
    assert_eq!(began(&scene), 0);
    scene.tell(ToLocal::Spawned { proc: proc(1), pid: 101, program: "/bin/a".into() });
    assert_eq!(began(&scene), 1);
    assert!(scene.part(&OpId::Started(nspace())).is_none());
    scene.tell(ToLocal::Spawned { proc: proc(0), pid: 100, program: "/bin/a".into() });
    assert_eq!(began(&scene), 1);
    assert!(scene.part(&OpId::Started(nspace())).is_some());
}

#[test]
fn failures_are_reported_at_once_and_the_end_when_all_ended() {
    let mut scene = LocalScene::running();
    scene.exit(1, ExitStatus::Code(3));
    assert!(matches!(scene.posts()[..], [Up::Failed(end)] if end.proc == proc(1) && end.node == "n1"));
    assert!(scene.part(&OpId::Ended(nspace())).is_none());
    scene.exit(0, ExitStatus::Code(0));
    let Some(Part::Ends(ends)) = scene.part(&OpId::Ended(nspace())) else { panic!("{:?}", scene.wishes) };
    let by_status: Vec<_> = ends.groups.iter().map(|end| (end.ranks.clone(), end.status)).collect();
    let expected = [(0, ExitStatus::Code(0)), (1, ExitStatus::Code(3))];
    assert_eq!(by_status, expected.map(|(rank, status)| (Ranges::single(rank), Some(status))));
    scene.wishes.clear();
    scene.down(Down::Forget { nspace: nspace() });
    assert!(scene.wishes.iter().any(|wish| matches!(wish, FromLocal::Effect(Effect::Forget { .. }))));
}

#[test]
fn a_rank_that_ignores_termination_is_killed() {
    let mut scene = LocalScene::running();
    let action = Control::Terminate { signal: 2 };
    scene.down(Down::Control {
        nspace: nspace(),
        ranks: Some(Ranges::single(1)),
        action,
        pauser: Pauser::User,
    });
    assert_eq!(scene.signals(), [(1, 15)]);
    scene.now = scene.now.after(Limits::default().kill_grace);
    while scene.local.deadline().is_some_and(|due| due <= scene.now) {
        scene.tell(ToLocal::Tick);
    }
    assert_eq!(scene.signals(), [(1, 15), (1, 9)]);
}

#[test]
fn a_job_may_say_how_long_its_ranks_have_to_end() {
    let longer = Limits::default().kill_grace * 2;
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.kill_after = Some(longer));
    let mut scene = LocalScene::running_job(desc);
    scene.down(Down::Control {
        nspace: nspace(),
        ranks: None,
        action: Control::Terminate { signal: 15 },
        pauser: Pauser::User,
    });
    let asked = scene.signals();
    scene.now = scene.now.after(longer - Duration::from_millis(1));
    scene.tell(ToLocal::Tick);
    assert_eq!(scene.signals(), asked);
    scene.now = scene.now.after(Duration::from_millis(1));
    while scene.local.deadline().is_some_and(|due| due <= scene.now) {
        scene.tell(ToLocal::Tick);
    }
    assert_eq!(scene.signals().len(), 2 * asked.len());
}

#[test]
fn a_request_may_say_how_long_ranks_have_to_end() {
    let mut scene = LocalScene::running();
    let terminate = |scene: &mut LocalScene, number: u32, rank: u32, grace: Option<u64>| {
        let id = TaskId { operation: 1, number, daemons: Ranges::single(1) };
        let targets = Members { nspace: nspace(), ranks: Ranges::single(rank) };
        let actions = vec![Control::Terminate { signal: 15 }];
        let request = ControlRequest { grace: grace.map(Duration::from_secs), ..ControlRequest::of(actions) };
        let task = Task::Control { targets, request: Arc::new(request) };
        scene.down(Down::Task { id, task: Arc::new(task) });
    };
    terminate(&mut scene, 1, 0, Some(60));
    terminate(&mut scene, 2, 1, Some(1));
    // A grace period may be shortened, but not extended.
    terminate(&mut scene, 3, 1, Some(100));
    let after = |scene: &mut LocalScene, seconds: u64| {
        scene.now = Time(0).after(Duration::from_secs(seconds));
        while scene.local.deadline().is_some_and(|due| due <= scene.now) {
            scene.tell(ToLocal::Tick);
        }
        let killed = scene.signals().into_iter().filter(|(_, signal)| *signal == SIGKILL);
        killed.map(|(rank, _)| rank).collect::<Vec<_>>()
    };
    assert_eq!(after(&mut scene, 0), []);
    assert_eq!(after(&mut scene, 1), [1]);
    assert_eq!(after(&mut scene, 59), [1]);
    assert_eq!(after(&mut scene, 60), [1, 0]);
}

fn renew(scene: &mut LocalScene, task: Task) -> OpId {
    let id = TaskId { operation: 9, number: 1, daemons: Ranges::single(1) };
    let id = match task {
        Task::Renew { .. } => TaskId { number: 2, ..id },
        _ => id,
    };
    scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
    OpId::Task(id)
}

fn rank_one() -> Members {
    Members { nspace: nspace(), ranks: Ranges::single(1) }
}

/// The environment entries of the last process that was started.
fn started_with(scene: &LocalScene) -> Vec<String> {
    let mut starts = scene.wishes.iter().rev().filter_map(|wish| match wish {
        FromLocal::Effect(Effect::Spawn(start)) => Some(start.env.iter().map(Text::to_string_lossy)),
        _ => None,
    });
    starts.next().into_iter().flatten().filter(|entry| entry.starts_with("PHALANX_RESTART")).collect()
}

fn ends_of_streams(scene: &LocalScene) -> usize {
    scene
        .wishes
        .iter()
        .filter(|wish| matches!(wish, FromLocal::Stream(piece) if piece.data.is_empty()))
        .count()
}

#[test]
fn a_rank_is_started_again_when_nothing_of_it_is_left() {
    let mut scene = LocalScene::running();
    scene.wishes.clear();
    let cleared = renew(&mut scene, Task::Clear { targets: rank_one() });
    let kills = |wish: &FromLocal| matches!(wish, FromLocal::Effect(Effect::SignalTree { signal: 9, .. }));
    assert!(scene.wishes.iter().any(kills) && scene.part(&cleared).is_none());
    scene.tell(ToLocal::Exited {
        proc: proc(1),
        status: ExitStatus::Signal { number: 9, core_dumped: false },
    });
    assert!(scene.part(&cleared).is_none(), "its output may hold more");
    for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
        scene.tell(ToLocal::OutputClosed { proc: proc(1), channel });
    }
    let mut well = Results::default();
    well.set(&Ranges::single(1), Status::SUCCESS);
    let ran = Ranges::single(1);
    assert!(
        matches!(scene.part(&cleared), Some(Part::Cleared { results, ran: one }) if (results, one) == (&well, &ran))
    );
    assert_eq!((scene.posts().len(), ends_of_streams(&scene)), (0, 0), "nobody hears of an end");
    let from = Some(Text::from("night"));
    scene.down(Down::Renewed { nspace: nspace(), ranks: Ranges::single(1), ran: Ranges::single(1), from });
    let renewed = renew(&mut scene, Task::Renew { targets: rank_one() });
    scene.serve();
    assert_eq!(started_with(&scene), ["PHALANX_RESTARTS=1", "PHALANX_RESTART_FROM=night"]);
    assert!(scene.part(&renewed).is_none());
    scene.tell(ToLocal::Spawned { proc: proc(1), pid: 777, program: "/bin/a".into() });
    assert!(matches!(scene.part(&renewed), Some(Part::Renewed { pids, .. }) if *pids == [(1, 777)]));
    scene.exit(0, ExitStatus::Code(0));
    scene.exit(1, ExitStatus::Code(0));
    assert!(scene.part(&OpId::Ended(nspace())).is_some());
}

/// Acts on rank 1 by job control.
fn steer_one(scene: &mut LocalScene, action: Control) -> OpId {
    let request = ControlRequest::of(vec![action]);
    let task = Task::Control { targets: rank_one(), request: Arc::new(request) };
    let id = TaskId { operation: 10, number: 1, daemons: Ranges::single(1) };
    scene.down(Down::Task { id: id.clone(), task: Arc::new(task) });
    OpId::Task(id)
}

#[test]
fn a_rank_between_two_lives_is_steered_in_the_next() {
    for (action, signal) in [(Control::Suspend, 19), (Control::Signal(10), 10), (Control::Kill, SIGKILL)] {
        let mut scene = LocalScene::running();
        renew(&mut scene, Task::Clear { targets: rank_one() });
        scene.wishes.clear();
        let steered = steer_one(&mut scene, action);
        assert!(
            scene.signals().is_empty() && scene.part(&steered).is_none(),
            "{action:?}: {:?}",
            scene.wishes
        );
        scene.exit(1, ExitStatus::Signal { number: 9, core_dumped: false });
        assert!(scene.part(&steered).is_none());
        scene.down(Down::Renewed {
            nspace: nspace(),
            ranks: Ranges::single(1),
            ran: Ranges::single(1),
            from: None,
        });
        let renewed = renew(&mut scene, Task::Renew { targets: rank_one() });
        let mut well = Results::default();
        well.set(&Ranges::single(1), Status::SUCCESS);
        assert!(matches!(scene.part(&steered), Some(Part::Results(results)) if *results == well));
        scene.serve();
        let mut done = Results::default();
        if action == Control::Kill {
            done.set(&Ranges::single(1), Status::ERR_PROC_ABORTED);
            assert!(started_with(&scene).is_empty(), "it is not started to be killed");
        } else {
            scene.tell(ToLocal::Spawned { proc: proc(1), pid: 777, program: "/bin/a".into() });
            done = well;
            assert_eq!(scene.signals(), [(1, signal)]);
        }
        assert!(
            matches!(scene.part(&renewed), Some(Part::Renewed { results, .. }) if *results == done),
            "{action:?}"
        );
    }
}

#[test]
fn a_rank_goes_on_when_its_last_pause_has_ended() {
    let mut scene = LocalScene::running();
    let launcher = |action| {
        let pauser = Pauser::Launcher(ProcId::new(&Nspace::new("tool").unwrap(), Rank(0)));
        Down::Control { nspace: nspace(), ranks: None, action, pauser }
    };
    let user = |action| Down::Control { nspace: nspace(), ranks: None, action, pauser: Pauser::User };
    let to_one =
        |scene: &LocalScene| scene.signals().into_iter().filter(|(rank, _)| *rank == 1).collect::<Vec<_>>();
    steer_one(&mut scene, Control::Suspend);
    scene.down(launcher(Control::Suspend));
    scene.down(user(Control::Suspend));
    assert_eq!(to_one(&scene), [(1, 19); 3], "what it has started since is stopped with it");
    scene.wishes.clear();
    scene.down(user(Control::Resume));
    scene.down(user(Control::Resume));
    steer_one(&mut scene, Control::Resume);
    assert_eq!(to_one(&scene), [], "its launcher stands still");
    scene.down(launcher(Control::Resume));
    assert_eq!(to_one(&scene), [(1, 18)]);
}

#[test]
fn a_rank_that_gets_no_next_life_has_ended_before() {
    let mut scene = LocalScene::running();
    renew(&mut scene, Task::Clear { targets: rank_one() });
    scene.exit(1, ExitStatus::Signal { number: 9, core_dumped: false });
    let steered = steer_one(&mut scene, Control::Suspend);
    assert!(scene.part(&steered).is_none());
    scene.down(Down::Control { nspace: nspace(), ranks: None, action: Control::Kill, pauser: Pauser::User });
    let mut gone = Results::default();
    gone.set(&Ranges::single(1), Status::ERR_NOT_FOUND);
    assert!(matches!(scene.part(&steered), Some(Part::Results(results)) if *results == gone));
}

#[test]
fn the_end_of_a_rank_before_its_restart_is_not_reported() {
    let mut desc = desc();
    Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.reported_ends = ReportedEnds::All);
    let mut scene = LocalScene::running_job(desc);
    renew(&mut scene, Task::Clear { targets: rank_one() });
    scene.exit(1, ExitStatus::Signal { number: 9, core_dumped: false });
    assert!(scene.posts().is_empty(), "{:?}", scene.wishes);
    scene.exit(0, ExitStatus::Code(0));
    assert!(matches!(scene.posts()[..], [Up::Left(end)] if end.proc == proc(0)));
}

#[test]
fn the_end_of_a_failed_rank_waits_for_what_is_decided() {
    let recoverable = || {
        let mut desc = desc();
        let policy = FailurePolicy::Restart { most: 1 };
        Arc::get_mut(&mut desc).into_iter().for_each(|desc| desc.on_failure = policy);
        LocalScene::running_job(desc)
    };
    // The failure ends the job.
    let mut scene = recoverable();
    scene.exit(0, ExitStatus::Code(0));
    scene.exit(1, ExitStatus::Code(3));
    assert!(matches!(scene.posts()[..], [Up::Failed(end)] if end.proc == proc(1)));
    assert!(scene.part(&OpId::Ended(nspace())).is_none());
    scene.down(Down::Control {
        nspace: nspace(),
        ranks: None,
        action: Control::Terminate { signal: 15 },
        pauser: Pauser::User,
    });
    assert_eq!(ends_of_streams(&scene), 2);
    let piece =
        |wish: &FromLocal| if let FromLocal::Stream(piece) = wish { Some(piece.clone()) } else { None };
    let ends = scene.wishes.iter().filter_map(piece).collect();
    scene.tell(ToLocal::Taken(ends));
    assert!(scene.part(&OpId::Ended(nspace())).is_some());
    // The rank is started again.
    let mut scene = recoverable();
    scene.exit(1, ExitStatus::Code(3));
    let cleared = renew(&mut scene, Task::Clear { targets: rank_one() });
    assert!(scene.part(&cleared).is_some());
    scene.down(Down::Renewed {
        nspace: nspace(),
        ranks: Ranges::single(1),
        ran: Ranges::single(1),
        from: None,
    });
    renew(&mut scene, Task::Renew { targets: rank_one() });
    scene.serve();
    assert_eq!(started_with(&scene), ["PHALANX_RESTARTS=1"]);
    // The job ends before it runs.
    scene.down(Down::Control { nspace: nspace(), ranks: None, action: Control::Kill, pauser: Pauser::User });
    scene.tell(ToLocal::Spawned { proc: proc(1), pid: 777, program: "/bin/a".into() });
    scene.exit(1, ExitStatus::Signal { number: 9, core_dumped: false });
    scene.exit(0, ExitStatus::Signal { number: 9, core_dumped: false });
    assert!(scene.part(&OpId::Ended(nspace())).is_some(), "{:?}", scene.wishes);
    scene.down(Down::Forget { nspace: nspace() });
}

#[test]
fn fences_are_counted_anew_when_a_rank_is_started_again() {
    let mut scene = LocalScene::running();
    let fence = |scene: &mut LocalScene, id: u64| {
        scene.wishes.clear();
        let (procs, data) = (vec![ProcId::all(&nspace())], Blob::default());
        scene.upcall(id, HostOp::Fence(FenceRequest { procs, data, info: Vec::new() }));
        scene.wishes.iter().find_map(|wish| match wish {
            FromLocal::Join(OpId::Collective(op), _) => Some(op.round),
            _ => None,
        })
    };
    assert_eq!(fence(&mut scene, 1), Some(1));
    scene.down(Down::Dead { nspace: nspace(), ranks: Ranges::single(2) });
    assert_eq!(fence(&mut scene, 2), None, "nobody comes for that rank");
    scene.down(Down::Renewed {
        nspace: nspace(),
        ranks: Ranges::single(2),
        ran: Ranges::single(2),
        from: None,
    });
    assert_eq!(fence(&mut scene, 3), Some((1 << 32) + 1), "others may not have counted the second");
}

#[test]
fn a_signal_waits_for_its_process_to_run() {
    let mut scene = LocalScene::new();
    scene.down(Down::Start(desc()));
    scene.serve();
    scene.down(Down::Control {
        nspace: nspace(),
        ranks: None,
        action: Control::Signal(10),
        pauser: Pauser::User,
    });
    assert_eq!(scene.signals(), []);
    scene.tell(ToLocal::Spawned { proc: proc(1), pid: 7, program: "/bin/a".into() });
    assert_eq!(scene.signals(), [(1, 10)]);
}

#[test]
fn data_of_a_lost_node_is_not_waited_for() {
    let mut scene = LocalScene::running();
    scene.upcall(1, HostOp::DirectModex(DirectModexRequest { proc: proc(2), info: Vec::<Info>::new() }));
    let asks = |wish: &FromLocal| matches!(wish, FromLocal::Send(NodeId(2), Side::Modex { .. }));
    assert!(scene.wishes.iter().any(asks));
    assert_eq!((scene.reply(1), scene.local.explain().len()), (None, 1));
    scene.tell(ToLocal::Without(NodeId(2)));
    scene.upcall(2, HostOp::DirectModex(DirectModexRequest { proc: proc(2), info: Vec::new() }));
    let gone = HostReply::Modex(Err(Status::ERR_PROC_TERM_WO_SYNC));
    assert_eq!((scene.reply(1), scene.reply(2)), (Some(&gone), Some(&gone)));
}

#[test]
fn late_answers_are_not_taken_for_those_of_restarted_ranks() {
    let mut scene = LocalScene::running();
    scene.upcall(1, HostOp::DirectModex(DirectModexRequest { proc: proc(2), info: Vec::new() }));
    let asked = |scene: &LocalScene| {
        let asks = scene.wishes.iter().filter_map(|wish| match wish {
            FromLocal::Send(NodeId(2), Side::Modex { id, .. }) => Some(*id),
            _ => None,
        });
        asks.collect::<Vec<u64>>()
    };
    let before = asked(&scene);
    scene.down(Down::Renewed {
        nspace: nspace(),
        ranks: Ranges::single(2),
        ran: Ranges::single(2),
        from: None,
    });
    let forgets = |wish: &FromLocal| matches!(wish, FromLocal::Call { call: ServerCall::ForgetValues { ranks, .. }, .. } if *ranks == [Rank(2)]);
    assert!(scene.wishes.iter().any(forgets), "{:?}", scene.wishes);
    let all = asked(&scene);
    let answer = |scene: &mut LocalScene, id: u64, of: &[u8]| {
        let side = Side::ModexIs { id, result: Ok(Blob::from(of.to_vec())) };
        scene.tell(ToLocal::Side { from: NodeId(2), side });
    };
    answer(&mut scene, before[0], b"old");
    assert_eq!((scene.reply(1), all.len()), (None, 2));
    answer(&mut scene, all[1], b"new");
    assert_eq!(scene.reply(1), Some(&HostReply::Modex(Ok(Blob::from(b"new".to_vec())))));
}

#[test]
fn a_fence_is_answered_with_the_data_of_all() {
    let mut scene = LocalScene::running();
    let (procs, data) = (vec![ProcId::all(&nspace())], Blob::from(b"ours".to_vec()));
    scene.upcall(1, HostOp::Fence(FenceRequest { procs, info: Vec::new(), data }));
    let members = [Members { nspace: nspace(), ranks: Ranges::first(3) }].into();
    let op = OpId::Collective(Collective {
        kind: CollectiveKind::Fence,
        members,
        id: None,
        round: 1,
        policy: Policy::Fixed,
    });
    assert!(matches!(scene.part(&op), Some(Part::Modex(blobs)) if blobs.len() == 1));
    assert_eq!(scene.local.daemons_of(&op), Some([1, 2].into_iter().collect()));
    let all = Blob::from(b"ours and theirs".to_vec());
    scene.down(Down::Done { op: Arc::new(op), outcome: Ok(Agreed::Modex(all.clone())) });
    assert_eq!(scene.reply(1), Some(&HostReply::Modex(Ok(all))));
}

#[test]
fn upcalls_for_the_root_are_answered_by_it() {
    let mut scene = LocalScene::running();
    let op = HostOp::Log(Asked {
        from: proc(0),
        request: Log { timestamp: 0, data: Vec::new(), directives: Vec::new() },
    });
    scene.upcall(5, op.clone());
    let [Up::Host { request, op: asked }] = scene.posts()[..] else { panic!("{:?}", scene.wishes) };
    assert_eq!(*asked, op);
    let reply = HostReply::Done(Status::SUCCESS);
    scene.down(Down::Reply { request: *request, reply: reply.clone() });
    assert_eq!(scene.reply(5), Some(&reply));
}

#[test]
fn user_hears_why_a_connection_was_closed() {
    let mut scene = LocalScene::running();
    for rank in [0, 1] {
        let cut_off = Some("it sent too much".to_owned());
        scene.upcall(u64::from(rank), HostOp::ClientLost(ClientLost { proc: proc(rank), cut_off }));
    }
    let text = "the connection of rank 0 (on n1) to its PMIx server was closed: it sent too much".to_owned();
    let notes = scene.posts().into_iter().filter_map(|up| match up {
        Up::Note { about, text } => Some((about.clone(), text.clone())),
        _ => None,
    });
    // Only the first of a job is reported.
    assert_eq!(notes.collect::<Vec<_>>(), [(Some(proc(0)), text)]);
}

/// The root looks for them first. Either may be known first: that a rank has ended, or that its connection is lost.
#[test]
fn those_that_wait_for_a_failed_rank_wait_for_the_last_look() {
    let status = ExitStatus::Code(3);
    for lost_first in [false, true] {
        let desc = JobDesc { on_failure: FailurePolicy::KillJob, ..Arc::into_inner(desc()).unwrap() };
        let mut scene = LocalScene::running_job(Arc::new(desc));
        scene.upcall(1, HostOp::ClientConnected(proc(1)));
        let lost = HostOp::ClientLost(ClientLost { proc: proc(1), cut_off: None });
        if lost_first {
            scene.upcall(2, lost);
            scene.exit(1, status);
        } else {
            scene.exit(1, status);
            scene.upcall(2, lost);
        }
        while scene.local.go_on(scene.now, &mut scene.wishes) {}
        assert!(scene.posts().iter().any(|up| matches!(up, Up::Failed(end) if end.proc == proc(1))));
        assert_eq!(scene.reply(2), None, "lost first: {lost_first}");
        scene.wait(2);
        assert_eq!(scene.reply(2), Some(&HostReply::Done(Status::SUCCESS)));
    }
}

#[test]
fn user_hears_which_rank_was_refused_for_its_user() {
    let mut scene = LocalScene::running();
    for rank in [1, 0] {
        let refused = ClientRefused { proc: proc(rank), uid: 77, pid: Some(4711), expected: 1000 };
        scene.upcall(u64::from(rank), HostOp::ClientRefused(refused));
        assert_eq!(scene.reply(rank.into()), Some(&HostReply::Done(Status::SUCCESS)));
    }
    // Only the first of a job is reported.
    let [Up::Note { about: Some(about), text }] = scene.posts()[..] else { panic!("{:?}", scene.wishes) };
    let begin = "the PMIx server of n1 has refused rank 1: the process that calls itself so (pid 4711) runs as user 77, \
                 and the job as user 1000. ";
    assert!(*about == proc(1) && text.starts_with(begin), "{text}");
}

#[test]
fn user_hears_of_commits_that_were_refused_up_to_a_limit() {
    let mut scene = LocalScene::running();
    for call in 0..12 {
        let refused = CommitRefused { proc: proc(1), why: "it cannot be read: so".to_owned() };
        scene.upcall(call, HostOp::CommitRefused(refused));
        assert_eq!(scene.reply(call), Some(&HostReply::Done(Status::SUCCESS)));
    }
    let notes = scene.posts().into_iter().filter_map(|up| match up {
        Up::Note { about: Some(about), text } if *about == proc(1) => Some(text.as_str()),
        _ => None,
    });
    let notes: Vec<_> = notes.collect();
    let text = "the PMIx server of n1 has refused a commit of rank 1: it cannot be read: so. What it has put is not available \
                to others";
    assert_eq!((notes.len(), notes[0]), (8, text));
    assert_eq!(notes[7], format!("{text}. Further ones here are not reported"));
}

fn pausing(number: u32) -> TaskId {
    TaskId { operation: 1, number, daemons: Ranges::single(1) }
}

#[test]
fn a_pause_is_answered_when_nothing_of_its_ranks_goes_on() {
    for escaped in [false, true] {
        let mut scene = LocalScene::running();
        let pause = |scene: &mut LocalScene, number| {
            let targets = Members { nspace: nspace(), ranks: Ranges::first(3) };
            let request = Arc::new(ControlRequest::of(vec![Control::Suspend]));
            let task = Task::Control { targets, request };
            scene.down(Down::Task { id: pausing(number), task: Arc::new(task) });
        };
        pause(&mut scene, 1);
        assert_eq!(scene.signals(), [(0, SIGSTOP), (1, SIGSTOP)]);
        scene.tell(ToLocal::TreeStopped { proc: proc(0), escaped: false });
        assert!(scene.part(&OpId::Task(pausing(1))).is_none());
        scene.tell(ToLocal::TreeStopped { proc: proc(1), escaped });
        let mut expected = Results::default();
        expected.set(&Ranges::single(0), Status::SUCCESS);
        let status = if escaped { Status::ERR_PARTIAL_SUCCESS } else { Status::SUCCESS };
        expected.set(&Ranges::single(1), status);
        let Some(Part::Results(results)) = scene.part(&OpId::Task(pausing(1))) else {
            panic!("{:?}", scene.wishes)
        };
        assert!(results.iter().eq(expected.iter()), "{results:?}");
        assert_eq!(results.why(Status::ERR_PARTIAL_SUCCESS).is_some(), escaped);
        assert_eq!(scene.posts().len(), usize::from(escaped), "the user hears of it: {:?}", scene.wishes);
        scene.wishes.clear();
        pause(&mut scene, 2);
        assert_eq!(scene.signals(), [(0, SIGSTOP), (1, SIGSTOP)], "what has appeared since is stopped, too");
        scene.down(Down::Forget { nspace: nspace() });
        assert!(scene.part(&OpId::Task(pausing(2))).is_some());
    }
}

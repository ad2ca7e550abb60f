//! Messages survive encoding and decoding, and any bytes are a message or a reason.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, ClientRefused, CollectiveKind, CommitRefused,
    ConnectRequest, DirectModexRequest, EventsRequest, FenceRequest, GroupRequest, MemberMissing,
    OverdueCall, PullEnded, ToolRequest,
};
use phalanx_core::{Event, GroupFormed, HostOp, HostReply, Time, Waiting};
use phalanx_spec::{IofChannel, ProcState, Range, Rank, Status, keys};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{
    App, Blob, DiskStats, Info, Key, Kval, NodeStats, Nspace, Pdata, ProcId, Query, Text, Timeval, Value,
};
use proptest::prelude::*;

use super::*;
use crate::column::Column;
use crate::encoding::{Encode, from_bytes, to_bytes};
use crate::hosts::Slots;
use crate::id::NodeId;
use crate::msg::*;
use crate::overlay::{Cast, CastBody, Msg, Post, PostBody};
use crate::ranges::Ranges;

fn proc(rank: u32) -> ProcId {
    ProcId::new(&job(), Rank(rank))
}

fn job() -> Nspace {
    Nspace::new("dvm@7").expect("a namespace")
}

fn key() -> Key {
    Key::of("some.key")
}

fn infos() -> Vec<Info> {
    let disk = DiskStats { disk: Some("sda".into()), counters: [7; 11] };
    let stats = NodeStats {
        node: Some("n0".into()),
        gauges: [0.5; 11],
        sample_time: Timeval { sec: 1, usec: 2 },
        disks: vec![disk],
        nets: Vec::new(),
    };
    vec![
        Info::new(keys::TIMEOUT, 30i32).required(),
        Info::new(keys::HOST, "n0,n1"),
        Info { key: key(), flags: Default::default(), value: Value::NodeStats(Box::new(stats)) },
    ]
}

fn ranks() -> Ranges {
    [0, 1, 2, 3, 9, 4_000_000_000].into_iter().collect()
}

fn some_time() -> Duration {
    Duration::new(3, 999_999_999)
}

fn collective() -> Collective {
    let members = [Members { nspace: job(), ranks: ranks() }].into();
    let policy = Policy::Shrinks { daemons: ranks() };
    Collective { kind: CollectiveKind::GroupConstruct, members, id: Some("g".into()), round: 1 << 40, policy }
}

fn task() -> TaskId {
    TaskId { operation: 8, number: 1, daemons: ranks() }
}

fn formed() -> GroupFormed {
    GroupFormed { members: vec![proc(1), proc(0)], context_id: Some(u64::MAX), info: infos() }
}

fn event() -> Arc<Event> {
    Arc::new(Event { code: Status::EVENT_JOB_END, source: proc(0), range: Range::NAMESPACE, info: infos() })
}

fn end(status: Option<ExitStatus>) -> ProcEnd {
    let node = "n1".to_owned();
    ProcEnd {
        proc: proc(1),
        node,
        pid: Some(7),
        status,
        after: some_time(),
        killed_by_us: true,
        lost_connection: false,
    }
}

fn desc() -> JobDesc {
    let column: Column = [3, 3, 3, 0, 1, 2, 9].into_iter().collect();
    let texts = || vec![Text::from("A=b"), Text::from_bytes(b"\xff=\xfe")];
    let change = |how| EnvChange { name: "PATH".into(), how };
    JobDesc {
        nspace: job(),
        number: 7,
        parent: Some(proc(2)),
        size: 7,
        nodes: ranks(),
        crowded: Ranges::new(),
        places: Places {
            node: column.clone(),
            binding: column,
            bindings: vec![Binding { cpuset: Some("0-3".into()), locality: None }],
            ..Places::default()
        },
        env: texts(),
        apps: vec![AppDesc {
            argv: texts().into(),
            env: texts(),
            changes: vec![
                change(Change::Set("x".into())),
                change(Change::Unset),
                change(Change::Add("x".into())),
                change(Change::Prepend("x".into(), b':')),
                change(Change::Append("x".into(), b';')),
                change(Change::First("x".into(), 0)),
            ],
            cwd: Some("/tmp".into()),
            prefix: None,
            values: vec![Kval::new(keys::APPNUM, 1u32)],
            size: 7,
        }],
        stdin: StdinTarget::Rank(Rank(1)),
        forward: IofChannel::STDOUT,
        diag: true,
        on_failure: FailurePolicy::KillOnSignal,
        reported_ends: crate::msg::ReportedEnds::Bad,
        kill_after: Some(Duration::from_millis(1500)),
        checkpoint_command: Some("save".into()),
        restart_command: None,
        job: [Kval::new(keys::JOB_SIZE, 7u32)].into(),
        session: [].into(),
        allocated: [0, 1, 4].into_iter().collect(),
    }
}

fn downs() -> Vec<Down> {
    let (nspace, op) = (job(), Arc::new(OpId::Collective(collective())));
    let cleanup = CleanupRequest {
        files: BTreeSet::from(["/tmp/a".into()]),
        rules: DirectoryRules { only_empty: true, ..DirectoryRules::default() },
        ..CleanupRequest::default()
    };
    let actions =
        vec![Control::Signal(-1), Control::Terminate { signal: 15 }, Control::Kill, Control::Suspend];
    let request = Arc::new(ControlRequest {
        actions,
        grace: Some(Duration::from_secs(1)),
        cleanup: Some(cleanup),
        pauser: Pauser::Launcher(proc(7)),
    });
    let targets = Members { nspace: job(), ranks: ranks() };
    let output = |to| Forward {
        to,
        piece: 300,
        proc: proc(1),
        pid: None,
        names_place: true,
        channel: IofChannel::STDERR,
        data: [0, 255].into(),
        lost: 70_000,
    };
    vec![
        Down::Table(Arc::new(NodeTable::new(vec!["n0".into(), "n1".into()]))),
        Down::SendTopology,
        Down::Start(Arc::new(desc())),
        Down::Done { op: op.clone(), outcome: Err(Status::ERR_TIMEOUT) },
        Down::Done { op: op.clone(), outcome: Ok(Agreed::Nothing) },
        Down::Done { op: op.clone(), outcome: Ok(Agreed::Modex(Blob::from(vec![7; 300]))) },
        Down::Done { op, outcome: Ok(Agreed::Group(formed())) },
        Down::Control {
            nspace: nspace.clone(),
            ranks: Some(ranks()),
            action: Control::Resume,
            pauser: Pauser::User,
        },
        Down::Task { id: task(), task: Arc::new(Task::Control { targets, request }) },
        Down::Task {
            id: task(),
            task: Arc::new(Task::Survey(Subject::Procs { nspace: nspace.clone(), usage: true })),
        },
        Down::Task { id: task(), task: Arc::new(Task::Survey(Subject::Nodes)) },
        Down::Task { id: task(), task: Arc::new(Task::Survey(Subject::Waits)) },
        Down::Task {
            id: task(),
            task: Arc::new(Task::Survey(Subject::Stacks { nspace: nspace.clone(), ranks: Some(ranks()) })),
        },
        Down::Task {
            id: task(),
            task: Arc::new(Task::Log {
                item: 300,
                line: LogLine::Syslog { priority: 191, line: "\u{e4}".into() },
            }),
        },
        Down::Task {
            id: task(),
            task: Arc::new(Task::Log {
                item: 0,
                line: LogLine::File { path: "/x".into(), line: "y".into() },
            }),
        },
        Down::Task {
            id: task(),
            task: Arc::new(Task::Mail {
                item: 1,
                mail: Mail { text: "To: x".into(), server: Some("mx".into()), port: Some(25) },
                limit: some_time(),
            }),
        },
        Down::Dead { nspace: nspace.clone(), ranks: ranks() },
        Down::Watch { nspace: nspace.clone(), ranks: ranks() },
        Down::Expect(collective()),
        Down::Forget { nspace: nspace.clone() },
        Down::Reply { request: 1, reply: HostReply::Done(Status::SUCCESS) },
        Down::Output(output(TapName::Pull(9))),
        Down::Output(output(TapName::Parent(proc(0), nspace.clone()))),
        Down::Say { to: proc(0), text: "ä".to_owned() },
        Down::Stdin { nspace: nspace.clone(), ranks: ranks(), data: [1; 500].into() },
        Down::StdinEnd { nspace: nspace.clone(), ranks: ranks() },
        Down::Event { event: event(), except: Some(NodeId(3)) },
        Down::Announce {
            event: event(),
            number: 7,
            concerned: Some([nspace].into()),
            ago: Some(some_time()),
        },
        Down::Stop,
    ]
}

fn ups() -> Vec<Up> {
    let nspace = job();
    let failure = SpawnFailure { step: SpawnStep::Chdir, subject: "/x".to_owned(), errno: 2 };
    let reached = Reached { count: 3, after: some_time() };
    let library = MpiLibrary { file: "libmpi.so.40".to_owned(), has_pmix: true, below: false };
    let signal = ExitStatus::Signal { number: 9, core_dumped: true };
    vec![
        Up::Topology { signature: "2x4".to_owned(), encoded: vec![1, 2, 3] },
        Up::StartFailed { proc: proc(1), failure },
        Up::Began { nspace: nspace.clone() },
        Up::Failed(end(Some(signal))),
        Up::Failed(end(None)),
        Up::Abort { from: proc(0), status: Status(-1), message: "m".to_owned(), procs: vec![proc(1)] },
        Up::LoadedMpi { proc: proc(0), library },
        Up::Connected { nspace: nspace.clone(), reached },
        Up::Freed { nspace: nspace.clone(), ended: ranks(), leaving: Ranges::new() },
        Up::Exited { nspace: nspace.clone() },
        Up::Waits(collective()),
        Up::Fails { op: collective(), status: Status::ERR_TIMEOUT },
        Up::Over { nspace: nspace.clone(), ranks: ranks() },
        Up::Host { request: 5, op: HostOp::ClientConnected(proc(0)) },
        Up::ToolLeft { proc: proc(0) },
        Up::StdinTaken { nspace: nspace.clone(), rank: Rank::WILDCARD, bytes: 1 << 33 },
        Up::StdinRefused { nspace, rank: Rank(0) },
        Up::OutputLeft { to: TapName::Pull(0), pieces: vec![(1, 2), (3, 4)], gone: true },
        Up::Note { about: Some(proc(0)), text: String::new() },
    ]
}

fn parts() -> Vec<Part> {
    let group = EndGroup {
        ranks: ranks(),
        status: Some(ExitStatus::Code(-3)),
        killed_by_us: false,
        lost_connection: true,
        connected: true,
        after: some_time(),
    };
    let usage =
        Usage { resident: u64::MAX, time: some_time(), state: 'S', priority: -20, ..Usage::default() };
    let waiting = Waiting {
        operation: "fence".into(),
        subject: "s".to_owned(),
        asked_by: vec![proc(0)],
        missing: vec![proc(1)],
        since: Time(1),
        deadline: Some(Time(2)),
        unblocked_by: "x".into(),
    };
    let found = Found {
        procs: vec![FoundProc {
            rank: 3,
            state: ProcState::CONNECTED,
            stopped: true,
            pid: Some(1),
            status: None,
            usage: Some(usage),
        }],
        daemons: vec![(NodeId(1), 2)],
        nodes: vec![(NodeId(1), NodeUsage { load: [0.1, 1e9, f32::MIN], ..NodeUsage::default() })],
        waits: vec![Wait { node: NodeId(1), age: some_time(), waiting }],
        stuck: vec![Stuck {
            operation: "get".into(),
            subject: "key".into(),
            ranks: ranks(),
            longest: some_time(),
        }],
        stacks: Stacks {
            all: vec![Stack {
                program: "a".to_owned(),
                frames: vec!["main".to_owned()],
                ranks: ranks(),
                threads: 2,
            }],
            unread: vec![Unread { why: "not permitted".to_owned(), ranks: ranks() }],
            omitted: ranks(),
        },
    };
    let ends = Ends { groups: vec![group], ..Ends::default() };
    let mut results = Results::default();
    results.set(&ranks(), Status::ERR_NOT_FOUND);
    let member = GroupPart { info: infos(), lost: vec![proc(1)], silent: vec![proc(2)] };
    vec![
        Part::Nothing,
        Part::Modex(vec![Blob::default(), Blob::from(vec![0; 200])]),
        Part::Group(member),
        Part::Started {
            pids: vec![(0, 4_000_000)],
            programs: Programs::default(),
            failed: true,
            after: some_time(),
        },
        Part::Ends(Box::new(ends)),
        Part::Found(Box::new(found)),
        Part::Results(results),
        Part::Failed(Status::ERR_LOST_CONNECTION),
    ]
}

fn upcalls() -> Vec<HostOp> {
    let (from, info, procs) = (proc(0), infos(), vec![proc(0), proc(1)]);
    let (keys, uid, handle) = (vec![key()], 1000, 9);
    let app = App { cmd: Some("a".into()), argv: vec!["a".into()], info: infos(), ..App::default() };
    let queries = vec![Query { keys: vec!["k".into()], qualifiers: infos() }];
    let data = Blob::from(vec![1]);
    let directives = info.clone();
    let group = |from| GroupRequest { from, id: "g".to_owned(), procs: procs.clone(), info: infos() };
    let connect = || ConnectRequest { procs: procs.clone(), info: infos() };
    let events = || EventsRequest { codes: vec![Status(-1)], info: infos() };
    let published = Asked { from: from.clone(), request: Published { uid, keys, info: infos() } };
    let (lookup, unpublish) = (published.clone(), published);
    let publish = Asked { from: from.clone(), request: Publish { uid, info: infos() } };
    let pull = Asked {
        from: from.clone(),
        request: Pull { sources: procs.clone(), channels: IofChannel::STDOUT, directives: infos(), handle },
    };
    let stdin = Asked {
        from: from.clone(),
        request: Push { targets: procs.clone(), directives: infos(), data: data.clone() },
    };
    let message = "m".to_owned();
    vec![
        HostOp::ClientConnected(proc(0)),
        HostOp::ClientFinalized(ClientFinalized { proc: proc(0), others: true }),
        HostOp::ClientLost(ClientLost { proc: proc(0), cut_off: Some("why".to_owned()) }),
        HostOp::ClientRefused(ClientRefused { proc: proc(0), uid: 1, pid: Some(2), expected: 3 }),
        HostOp::CommitRefused(CommitRefused { proc: proc(0), why: "why".to_owned() }),
        HostOp::MemberMissing(MemberMissing { proc: proc(0), kind: CollectiveKind::Connect }),
        HostOp::Abort(AbortRequest { from: proc(0), status: Status(-1), message, procs: procs.clone() }),
        HostOp::Fence(FenceRequest { procs: procs.clone(), info: infos(), data }),
        HostOp::DirectModex(DirectModexRequest { proc: proc(0), info }),
        HostOp::Publish(publish),
        HostOp::Lookup(lookup),
        HostOp::Unpublish(unpublish),
        HostOp::Spawn(Asked { from: from.clone(), request: Spawn { job: infos(), apps: vec![app] } }),
        HostOp::Connect(connect()),
        HostOp::Disconnect(connect()),
        HostOp::RegisterEvents(events()),
        HostOp::DeregisterEvents(events()),
        HostOp::Notify((*event()).clone()),
        HostOp::Query(Asked { from: from.clone(), request: Queries { queries } }),
        HostOp::ToolConnected(ToolRequest {
            uid,
            gid: 1,
            pid: Some(2),
            claims: Some(proc(0)),
            info: infos(),
        }),
        HostOp::Log(Asked {
            from: from.clone(),
            request: Log { timestamp: 0, data: infos(), directives: infos() },
        }),
        HostOp::Monitor(Asked {
            from: from.clone(),
            request: Monitor { what: infos().remove(0), error: Status(-2), directives: infos() },
        }),
        HostOp::IofPull(pull),
        HostOp::IofStop(PullEnded { from: from.clone(), handle, directives: infos(), died: true }),
        HostOp::PushStdin(stdin),
        HostOp::GroupConstruct(group(Some(proc(1)))),
        HostOp::GroupDestruct(group(None)),
        HostOp::Overdue(OverdueCall { call: 7 }),
        HostOp::from(Asked { from, request: JobControl { targets: procs.clone(), directives } }),
    ]
}

fn replies() -> Vec<HostReply> {
    let found = Pdata { proc: proc(0), key: key(), value: Value::Bool(true) };
    vec![
        HostReply::Modex(Ok(Blob::from(vec![1]))),
        HostReply::Modex(Err(Status::ERR_NOT_FOUND)),
        HostReply::Lookup(Ok(vec![found])),
        HostReply::Spawned(Ok(job())),
        HostReply::Infos(Status::SUCCESS, infos()),
        HostReply::Credential(Ok((Blob::from(vec![1]), infos()))),
        HostReply::ToolAdmitted(Ok(proc(0))),
        HostReply::Group(Ok(formed())),
    ]
}

fn cards() -> Vec<NodeReport> {
    let report =
        |slots| NodeReport { hostname: "n0".into(), slots, max_slots: Some(3), signature: "s".into() };
    [Slots::Unstated, Slots::Mentioned(2), Slots::Stated(u32::MAX)].into_iter().map(report).collect()
}

#[track_caller]
fn comes_back<T: Encode + Debug>(values: Vec<T>) {
    for value in values {
        let bytes = to_bytes(&value);
        let back: T = from_bytes(&bytes).unwrap_or_else(|error| panic!("{value:?}: {error}"));
        assert_eq!(format!("{value:?}"), format!("{back:?}"));
        // Any truncation is refused.
        for end in 0..bytes.len() {
            assert!(from_bytes::<T>(&bytes[..end]).is_err(), "{value:?} cut off at {end}");
        }
    }
}

#[test]
fn every_message_comes_back_as_it_was_said() {
    comes_back(downs());
    comes_back(ups());
    comes_back(parts());
    comes_back(upcalls());
    comes_back(replies());
    comes_back(cards());
    let modex = || Side::Modex { id: 1, proc: proc(1), key: Some(key()) };
    comes_back(vec![modex(), Side::ModexIs { id: 1, result: Err(Status::ERR_NOT_FOUND) }]);
    comes_back(vec![OpId::Started(job()), OpId::Ended(job()), OpId::Task(task())]);
}

#[test]
fn a_regular_job_takes_as_many_bytes_on_any_number_of_nodes() {
    let bytes = |nodes: u32| {
        let size = nodes * 128;
        let column = |of: &dyn Fn(u32) -> u32| (0..size).map(of).collect::<Column>();
        let places = Places {
            node: column(&|rank| rank / 128),
            app_rank: column(&|rank| rank),
            local_rank: column(&|rank| rank % 128),
            node_rank: column(&|rank| rank % 128),
            binding: column(&|rank| rank % 128),
            bindings: vec![Binding::default(); 128],
            ..Places::default()
        };
        let desc = JobDesc { size, nodes: Ranges::first(nodes), places, ..desc() };
        assert!(desc.places.weight() < 8192);
        to_bytes(&desc).len()
    };
    assert!(bytes(16_000) <= bytes(1_000) + 16);
}

fn valid() -> Vec<Vec<u8>> {
    let asked = upcalls().into_iter().map(|op| Up::Host { request: 1, op });
    let posts = ups()
        .into_iter()
        .chain(asked)
        .map(|up| Msg::<Load>::Post(Post { origin: NodeId(1), seq: 7, body: PostBody::Cargo(Arc::new(up)) }));
    let casts = downs()
        .into_iter()
        .map(|down| Msg::Cast(Arc::new(Cast { seq: 7, to: ranks(), body: CastBody::Cargo(Arc::new(down)) })));
    posts.chain(casts).map(|msg| to_bytes(&msg)).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(msg) = from_bytes::<Msg<Load>>(&bytes) {
            prop_assert!(from_bytes::<Msg<Load>>(&to_bytes(&msg)).is_ok());
        }
    }

    #[test]
    fn changed_bytes_do_no_harm(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let all = valid();
        let mut bytes = all[which.index(all.len())].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(msg) = from_bytes::<Msg<Load>>(&bytes) {
            prop_assert!(from_bytes::<Msg<Load>>(&to_bytes(&msg)).is_ok());
        }
    }
}

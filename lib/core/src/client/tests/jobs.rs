use phalanx_spec::{AllocDirective, IofChannel, keys};
use phalanx_wire::cmd::allocate::Allocate;
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::cmd::credential::{GetCredential, ValidateCredential};
use phalanx_wire::cmd::fabric::{Register, Update};
use phalanx_wire::cmd::iof::Pull;
use phalanx_wire::cmd::iof::{self, PullReply};
use phalanx_wire::cmd::session::SessionControl;
use phalanx_wire::cmd::{InfoReply, connect, credential, group, monitor, spawn};
use phalanx_wire::{App, Blob, DataArray, Info, InfoList};

use super::*;
use crate::host::GroupFormed;
use crate::store::Lookup;

fn job(name: &str, size: u32) -> JobData {
    let nspace = Nspace::new(name).unwrap();
    JobData { nspace, values: vec![Kval::new(keys::JOB_SIZE, size)], procs: vec![] }
}

fn size_of(scene: &Scene, name: &str) -> Lookup {
    let owner = ProcId::all(&Nspace::new(name).unwrap());
    scene.client.store().lookup(&LookupRequest::new(owner, Some(Key::of(keys::JOB_SIZE)), &[]))
}

#[test]
fn a_parent_knows_the_job_that_it_has_started() {
    let mut scene = Scene::ready();
    let app = App { cmd: Some("worker".into()), max_procs: 3, ..App::default() };
    let call = ClientCall::Spawn(spawn::Spawn { job: vec![], apps: vec![app] });
    let id = scene.call(call.clone());
    assert_eq!(scene.client.explain()[0].subject, "worker");
    scene.reply(&spawn::Reply { status: Status::SUCCESS, job: Some(job("child", 3)) });
    let nspace = Nspace::new("child").unwrap();
    let child = NewJob { nspace: nspace.clone(), style: vec![] };
    assert_eq!(scene.result(id), ClientReturn::Spawned(Ok(child)));
    assert_eq!(size_of(&scene, "child"), Lookup::Hit(3_u32.into()));
    // The style of its output is no value of the job.
    let id = scene.call(call.clone());
    let style = vec![Info::new(keys::IOF_TAG_OUTPUT, true)];
    let mut again = job("child", 3);
    again.values.push(Kval::new(iof::STYLE, DataArray::of_infos(style.clone())));
    scene.reply(&spawn::Reply { status: Status::SUCCESS, job: Some(again) });
    assert_eq!(scene.result(id), ClientReturn::Spawned(Ok(NewJob { nspace: nspace.clone(), style })));
    let owner = ProcId::all(&nspace);
    let known = scene.client.store().lookup(&LookupRequest::new(owner, Some(Key::of(iof::STYLE)), &[]));
    assert_ne!(std::mem::discriminant(&known), std::mem::discriminant(&Lookup::Hit(0.into())));
    let id = scene.call(call);
    scene.reply_status(Status::ERR_OUT_OF_RESOURCE);
    assert_eq!(scene.result(id), ClientReturn::Spawned(Err(Status::ERR_OUT_OF_RESOURCE)));
}

#[test]
fn connected_processes_know_each_others_jobs() {
    let mut scene = Scene::ready();
    let procs = vec![ProcId::all(&proc(0).nspace), ProcId::all(&Nspace::new("other").unwrap())];
    let id = scene.call(ClientCall::Connect(Connect {
        procs: procs.clone(),
        info: vec![],
        endpoints: Vec::new(),
    }));
    assert_eq!(scene.client.explain()[0].subject, "job:*, other:*");
    scene.reply(&connect::Reply { status: Status::SUCCESS, jobs: vec![job("other", 9)] });
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    assert_eq!(size_of(&scene, "other"), Lookup::Hit(9_u32.into()));
    let id = scene.call(ClientCall::Disconnect(Connect { procs, info: vec![], endpoints: Vec::new() }));
    assert!(matches!(scene.asked(), Request::Disconnect(_)));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn a_group_is_formed_and_ended_with_servers_of_every_release() {
    for release in [Release::new(4, 2, 2), Release::new(5, 0, 11), Release::new(6, 1, 1)] {
        let dialect = Dialect { release, ..config().dialect };
        let mut scene = Scene::ready_with(ClientConfig { dialect, ..config() }, vec![]);
        let procs = vec![proc(0), proc(1)];
        let info = vec![Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true)];
        let id = scene.call(ClientCall::GroupConstruct(group::Construct {
            id: "g".into(),
            procs: procs.clone(),
            info,
        }));
        let reply = group::ConstructReply {
            status: Status::SUCCESS,
            members: procs.clone(),
            context_id: Some(5),
            info: vec![],
            jobs: vec![],
        };
        scene.reply(&reply);
        let formed = GroupFormed { members: procs.clone(), context_id: Some(5), info: vec![] };
        assert_eq!(scene.result(id), ClientReturn::Group(Ok(formed)));
        let id = scene.call(ClientCall::GroupDestruct { id: "g".into(), info: vec![] });
        let Request::GroupDestruct(asked) = scene.asked() else { panic!() };
        assert_eq!(asked.procs, if release.major < 5 { vec![] } else { procs });
        scene.reply_status(Status::SUCCESS);
        assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    }
}

#[test]
fn output_is_delivered_from_the_pull_to_its_end() {
    let mut scene = Scene::ready();
    let pull = Pull { sources: vec![proc(0)], channels: IofChannel::STDOUT, directives: vec![], handle: 0 };
    let id = scene.call(ClientCall::IofPull { handler: HandlerId(3), pull });
    let Request::IofPull(asked) = scene.asked() else { panic!() };
    let write = |scene: &mut Scene, handle, text: &str| {
        let data = Blob::from(text.as_bytes());
        let output = iof::Output { source: proc(0), channel: IofChannel::STDOUT, handle, info: vec![], data };
        scene.bytes(&encode_frame(0, TAG_IOF, &output.encode(scene.dialect)));
        scene.delivered.pop().map(|(_, to, what)| (to, what))
    };
    let early = write(&mut scene, asked.handle, "early");
    scene.reply(&PullReply { status: Status::SUCCESS, handle: 77, style: vec![] });
    assert_eq!(scene.result(id), ClientReturn::Pulled(Ok(vec![])));
    let data = Blob::from(&b"early"[..]);
    let what = ClientDelivery::Output { source: proc(0), channel: IofChannel::STDOUT, data, info: vec![] };
    assert_eq!(early, Some((HandlerId(3), what)));
    let unasked = write(&mut scene, 0, "without a pull");
    assert_eq!(unasked.map(|(to, _)| to), Some(crate::client::UNASKED));
    scene.bytes(&encode_frame(0, TAG_IOF, &[]));
    scene.bytes(&encode_frame(0, TAG_IOF, b"?"));
    let id = scene.call(ClientCall::IofDeregister { handler: HandlerId(3), directives: vec![] });
    let Request::IofDeregister(end) = scene.asked() else { panic!() };
    assert_eq!(end.handle, 77);
    assert!(write(&mut scene, asked.handle, "written before").is_some());
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    assert_eq!(write(&mut scene, asked.handle, "late"), None);
    let again = scene.call(ClientCall::IofDeregister { handler: HandlerId(3), directives: vec![] });
    assert_eq!(scene.result(again), ClientReturn::Done(Status::ERR_NOT_FOUND));
}

#[test]
fn server_hears_what_the_program_has_taken() {
    let mut scene = Scene::ready();
    let handler = HandlerId(3);
    let (sources, channels) = (vec![proc(0)], IofChannel::STDOUT);
    scene.call(ClientCall::IofPull {
        handler,
        pull: Pull { sources, channels, directives: vec![], handle: 0 },
    });
    let Request::IofPull(asked) = scene.asked() else { panic!() };
    assert!(asked.directives.is_set(iof::TELLS_TAKEN));
    let handle = asked.handle;
    scene.reply(&PullReply { status: Status::SUCCESS, handle: 77, style: vec![] });
    let write = |scene: &mut Scene, piece: Option<u64>, handle, bytes: usize| {
        let info = piece.map(|piece| Info::new(iof::PIECE, piece)).into_iter().collect();
        let data = Blob::from(vec![b'x'; bytes]);
        let output = iof::Output { source: proc(0), channel: IofChannel::STDOUT, handle, info, data };
        scene.bytes(&encode_frame(0, TAG_IOF, &output.encode(scene.dialect)));
        let (id, _, what) = scene.delivered.pop()?;
        let ClientDelivery::Output { info, .. } = what else { panic!() };
        assert_eq!(info, [], "the number is the library's");
        Some(id)
    };
    let take = |scene: &mut Scene, id: Option<DeliveryId>| {
        scene.call(ClientCall::Taken { delivery: id.unwrap(), held: 0 });
        scene.taken.pop().map(|taken| taken.spans)
    };
    // Several small pieces are reported together, and a long one at once.
    let few: Vec<_> = [5, 6, 8].map(|piece| write(&mut scene, Some(piece), handle, 10)).into();
    assert_eq!(take(&mut scene, few[0]), None);
    assert_eq!(take(&mut scene, few[1]), None);
    let long = write(&mut scene, Some(9), handle, 40_000);
    let more = write(&mut scene, Some(10), handle, 1);
    assert_eq!(take(&mut scene, few[2]), None);
    assert_eq!(take(&mut scene, long), Some(vec![(5, 6), (8, 9)]));
    assert_eq!(take(&mut scene, more), Some(vec![(10, 10)]));
    // If the program holds bytes, their number is reported.
    let held = write(&mut scene, Some(11), handle, 10);
    let (spans, before) = (vec![(12, 12)], write(&mut scene, Some(12), handle, 10));
    scene.call(ClientCall::Taken { delivery: held.unwrap(), held: 7 });
    assert!(scene.taken.is_empty());
    scene.call(ClientCall::Taken { delivery: before.unwrap(), held: 0 });
    assert_eq!(scene.taken.pop(), Some(iof::Taken { spans, held: vec![(11, 7)] }));
    // Output without a pull is reported at once; other servers get no reports.
    assert_eq!(write(&mut scene, Some(13), 999, 1), None);
    assert_eq!(scene.taken.pop().unwrap().spans, [(13, 13)]);
    assert_eq!(write(&mut scene, None, handle, 1), Some(UNTOLD));
    assert_eq!(take(&mut scene, Some(UNTOLD)), None);
}

#[test]
fn the_end_of_input_is_said_and_its_answer_is_no_error() {
    let mut scene = Scene::ready();
    let push = |data: &[u8]| {
        ClientCall::IofPush(iof::Push { targets: vec![proc(0)], data: data.into(), directives: vec![] })
    };
    let id = scene.call(push(b"line"));
    let Request::IofPush(asked) = scene.asked() else { panic!() };
    assert_eq!((asked.data.as_bytes(), asked.directives), (&b"line"[..], vec![]));
    scene.reply_status(Status::SUCCESS);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    let id = scene.call(push(b""));
    let Request::IofPush(asked) = scene.asked() else { panic!() };
    assert_eq!(asked.directives, [Info::new(keys::IOF_COMPLETE, true)]);
    scene.reply_status(Status::ERR_IOF_COMPLETE);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
}

#[test]
fn heartbeats_need_no_answer() {
    let mut scene = Scene::ready();
    let id = scene.call(ClientCall::Heartbeat);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::SUCCESS));
    assert_eq!(scene.heartbeats, 1);
    scene.close();
    let id = scene.call(ClientCall::Heartbeat);
    assert_eq!(scene.result(id), ClientReturn::Done(Status::ERR_UNREACH));
}

#[test]
fn a_credential_is_given_and_examined() {
    let mut scene = Scene::ready();
    let id = scene.call(ClientCall::from(GetCredential { info: vec![] }));
    let token = Blob::from(&b"token"[..]);
    let reply = credential::Reply { status: Status::SUCCESS, credential: token.clone(), info: vec![] };
    scene.reply(&reply);
    assert_eq!(scene.result(id), ClientReturn::Credential(Ok((token.clone(), vec![]))));
    let id = scene.call(ClientCall::from(ValidateCredential { credential: token, info: vec![] }));
    scene.reply(&InfoReply { status: Status::ERR_INVALID_CRED, info: vec![] });
    assert_eq!(scene.result(id), ClientReturn::Infos(Status::ERR_INVALID_CRED, vec![]));
}

#[test]
fn questions_that_are_answered_by_infos() {
    let calls = [
        ClientCall::from(Allocate { directive: AllocDirective::EXTEND, info: vec![] }),
        ClientCall::from(SessionControl { session: 4, directives: vec![] }),
        ClientCall::Monitor(monitor::Monitor {
            what: Info::new(keys::MONITOR_HEARTBEAT, true),
            error: Status(-1),
            directives: vec![],
        }),
        ClientCall::from(Register { directives: vec![] }),
        ClientCall::from(Update { index: 1 }),
    ];
    for call in calls {
        let mut scene = Scene::ready();
        let id = scene.call(call.clone());
        let info = vec![Info::new("answer", 1_u32)];
        scene.reply(&InfoReply { status: Status::SUCCESS, info: info.clone() });
        assert_eq!(scene.result(id), ClientReturn::Infos(Status::SUCCESS, info));
        let id = scene.call(call);
        scene.close();
        assert_eq!(scene.result(id), ClientReturn::Infos(Status::ERR_LOST_CONNECTION, vec![]));
    }
}

//! The ranks' part in the scenarios of `hosts.rs`.

use std::sync::mpsc::channel;

use pmix::{
    AllocDirective, App, Client, DataArray, Drive, Info, InfoFlags, IofChannel, Query, Range, Scope, Status,
    Value, Verdict, keys,
};

use crate::PATIENCE;

fn on(key: &'static str) -> Info {
    Info::new(key, true)
}

fn color(shade: &str) -> Info {
    Info { flags: InfoFlags::QUALIFIER, ..Info::new("color", shade) }
}

pub(crate) fn two_nodes() {
    let client = Client::init().unwrap();
    let me = client.proc().rank.0;
    client.put(Scope::REMOTE, "remote", me).unwrap();
    client.put(Scope::LOCAL, "local", me).unwrap();
    client.commit().unwrap();
    client.fence(&[], &[on(keys::COLLECT_DATA)]).unwrap();
    for rank in 0..4 {
        let (key, hidden) = if rank % 2 == me % 2 { ("local", "remote") } else { ("remote", "local") };
        if rank != me {
            assert_eq!(client.get(&client.peer(rank), key, &[]).unwrap(), Value::Uint32(rank));
            let hidden = client.get(&client.peer(rank), hidden, &[on(keys::IMMEDIATE)]);
            assert!(hidden.unwrap_err().is_not_found());
        }
        let host = client.get(&client.peer(rank), keys::HOSTNAME, &[]).unwrap();
        assert_eq!(host.as_str(), Some(["east", "west"][rank as usize % 2]));
    }
    client.put(Scope::GLOBAL, "later", me + 10).unwrap();
    // A key of the standard's, which hosts provide only without qualifiers.
    let named = Info::new(keys::GROUP_CONTEXT_ID, me + 20);
    client.put_any(Scope::GLOBAL, keys::QUALIFIED_VALUE, DataArray::of_infos([named, color("red")])).unwrap();
    client.commit().unwrap();
    client.fence(&[], &[]).unwrap();
    // Not collected: their servers are asked.
    for rank in 0..4 {
        let context = |how: &[Info]| client.get(&client.peer(rank), keys::GROUP_CONTEXT_ID, how);
        assert_eq!(context(&[color("red")]).unwrap(), Value::Uint32(rank + 20));
        assert!(context(&[color("blue")]).unwrap_err().is_not_found());
        assert_eq!(client.get(&client.peer(rank), "later", &[]).unwrap(), Value::Uint32(rank + 10));
    }
    let far = [client.peer(0), client.peer(3)];
    if far.contains(client.proc()) {
        client.fence(&far, &[on(keys::COLLECT_DATA)]).unwrap();
    }
    client.finalize(&[on(keys::EMBED_BARRIER)]).unwrap();
}

pub(crate) fn late_host() {
    let client = Client::init().unwrap();
    let me = client.proc().rank.0;
    let dropped = client.lookup(&["dropped"], &[]).unwrap_err();
    assert_eq!(dropped.status(), Status::ERROR);
    let answers = client.query(&[Query { keys: vec!["x".into()], qualifiers: vec![] }]).unwrap();
    assert_eq!(answers, [Info::new(keys::QUERY_NAMESPACES, "some")]);
    if me == 0 {
        let impatient = client.lookup(&["kept"], &[Info::new(keys::TIMEOUT, 1_u32)]).unwrap_err();
        assert_eq!(impatient.status(), Status::ERR_TIMEOUT);
    }
    let found = client.lookup(&["mine"], &[]).unwrap();
    assert_eq!(found[0].value, Value::Uint32(me));
    client.finalize(&[]).unwrap();
}

pub(crate) fn host_panics() {
    let client = Client::init().unwrap();
    let ended = match client.proc().rank.0 {
        0 => {
            client.get(&client.peer(1), "here", &[]).unwrap();
            client.publish(&[Info::new("x", 1_u32)])
        }
        _ => {
            client.put(Scope::GLOBAL, "here", true).unwrap();
            client.commit().unwrap();
            client.fence(&[], &[])
        }
    };
    assert_eq!(ended.unwrap_err().status(), Status::ERR_LOST_CONNECTION);
    client.finalize(&[]).unwrap();
}

pub(crate) fn host_driven() {
    let client = Client::init_driven(Drive::Host).unwrap();
    let (seen, events) = channel();
    client
        .register_event_handler(&[Status(-3005)], &[], move |event, _| {
            seen.send(event.source.rank.0).unwrap();
            Verdict { status: Status::SUCCESS, results: Vec::new() }
        })
        .unwrap();
    client.put(Scope::GLOBAL, "card", client.proc().rank.0).unwrap();
    client.commit().unwrap();
    // Two threads wait at the same time.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| client.get(&client.peer(1), "card", &[]).unwrap());
        }
    });
    client.fence(&[], &[on(keys::COLLECT_DATA)]).unwrap();
    client.notify(Status(-3005), Range::LOCAL, &[]).unwrap();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        client.progress();
        heard.extend(events.try_recv());
    }
    heard.sort_unstable();
    assert_eq!(heard, [0, 1]);
    client.finalize(&[]).unwrap();
}

pub(crate) fn own_process() {
    let client = Client::init().unwrap();
    let (seen, events) = channel();
    client
        .register_event_handler(&[], &[], move |event, _| {
            seen.send(event.code).unwrap();
            Verdict { status: Status::SUCCESS, results: Vec::new() }
        })
        .unwrap();
    client.put(Scope::GLOBAL, "card", 7_u32).unwrap();
    client.commit().unwrap();
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Status(-3001));
    client.put(Scope::GLOBAL, "card", 8_u32).unwrap();
    client.commit().unwrap();
    client.notify(Status(-3002), Range::GLOBAL, &[]).unwrap();
    while events.recv_timeout(PATIENCE).unwrap() != Status(-3003) {}
    // Without finalize.
    std::process::exit(0);
}

pub(crate) fn every_upcall() {
    let client = Client::init().unwrap();
    let handler = |_: &pmix::Event, _: &[Info]| Verdict { status: Status::SUCCESS, results: Vec::new() };
    let id = client.register_event_handler(&[Status(-3010)], &[], handler).unwrap();
    client.notify(Status(-3011), Range::GLOBAL, &[]).unwrap();
    client.deregister_event_handler(id).unwrap();
    // With a directive that the server leaves to the host.
    client.fence(&[], &[on("example.directive").required()]).unwrap();
    let nowhere = pmix::ProcId::new(&pmix::Nspace::new("nobody@1").unwrap(), pmix::Rank(0));
    assert!(client.get(&nowhere, "x", &[]).unwrap_err().is_not_found());
    client.publish(&[Info::new("x", 1_u32)]).unwrap();
    assert_eq!(client.lookup(&["x"], &[]).unwrap()[0].value, Value::from("found"));
    client.unpublish(&["x"], &[]).unwrap();
    let app = App { cmd: Some("program".into()), max_procs: 1, ..App::default() };
    assert_eq!(client.spawn(&[], &[app]).unwrap(), "child@1");
    client.connect(&[client.job()], &[]).unwrap();
    client.disconnect(&[client.job()], &[]).unwrap();
    let question = Query { keys: vec![keys::QUERY_NAMESPACES.into()], qualifiers: vec![] };
    client.query(&[question]).unwrap();
    client.log(&[Info::new(keys::LOG_STDERR, "a line\n")], &[]).unwrap();
    let directives = [Info::new("example.directive", 3_u32)];
    assert_eq!(client.allocate(AllocDirective::EXTEND, &directives).unwrap(), directives);
    client.resource_block(1, "block", &[], &[]).unwrap();
    assert_eq!(client.job_control(&[], &directives).unwrap(), directives);
    assert_eq!(client.session_control(4, &directives).unwrap(), directives);
    let what = Info::new(keys::MONITOR_FILE, "/tmp/file");
    assert_eq!(client.monitor(what, Status::MONITOR_FILE_ALERT, &directives).unwrap(), directives);
    let (credential, _) = client.get_credential(&[]).unwrap();
    client.validate_credential(&credential, &[]).unwrap();
    let pulled = client.iof_pull(&[client.job()], IofChannel::STDOUT, &[], |_, _, _, _| {}).unwrap();
    client.iof_deregister(pulled, &[]).unwrap();
    client.iof_push(&[client.job()], b"bytes", &[]).unwrap();
    let group = client.group_construct("all", &[client.job()], &[on(keys::GROUP_ASSIGN_CONTEXT_ID)]).unwrap();
    assert_eq!(group.context_id, Some(5));
    client.group_destruct("all", &[]).unwrap();
    client.fabric_register(&[]).unwrap();
    client.fabric_update(0).unwrap();
    client.abort(3, "for the record", &[]).unwrap();
    client.finalize(&[]).unwrap();
}

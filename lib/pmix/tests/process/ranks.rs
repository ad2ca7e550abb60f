//! The ranks' part of each scenario.

use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

use pmix::{Client, Error, Info, InitError, Query, Range, Scope, Status, Value, Verdict, keys};

use crate::{PATIENCE, collected, hosted, machine, streams, waits};

const CODE: Status = Status(-3000);

pub(crate) fn run(scenario: &str) {
    match scenario {
        "meet" => meet(),
        "publish" => publish(),
        "events" => events(),
        "questions" => questions(),
        "groups" => groups(),
        "large" => large(),
        "threads" => threads(),
        "timeouts" => timeouts(),
        "waits" => waits::waits(),
        "news" => waits::news(),
        "closed" => waits::closed(),
        "interrupted" => waits::interrupted(),
        "fork" => fork(),
        "surroundings" => surroundings(),
        "short_way" => short_way(),
        "goodbye" => drop(Client::init().unwrap()),
        "abort" => Client::init().unwrap().abort(7, "enough", &[]).unwrap(),
        "server_dies" => server_dies(),
        "nobody_listens" => nobody_listens(),
        "turned_away" => turned_away(),
        "alone" => alone(),
        "two_nodes" => hosted::two_nodes(),
        "late_host" => hosted::late_host(),
        "host_panics" => hosted::host_panics(),
        "host_driven" | "taken_over" => hosted::host_driven(),
        "own_process" => hosted::own_process(),
        "every_upcall" => hosted::every_upcall(),
        "machine" => machine::rank(),
        "server_stands_still" => collected::server_stands_still(),
        "files_vanish" => collected::files_vanish(),
        "spawned_output" => streams::tool(),
        other => panic!("no scenario {other}"),
    }
}

fn on(key: &'static str) -> Info {
    Info::new(key, true)
}

fn meet() {
    let client = Client::init().unwrap();
    let (me, size) = (client.proc().rank.0, client.get_job(keys::JOB_SIZE).unwrap());
    assert_eq!(size, Value::Uint32(4));
    assert!(!client.is_singleton());
    client.put(Scope::GLOBAL, "card", me).unwrap();
    assert_eq!(client.get(client.proc(), "card", &[]).unwrap(), Value::Uint32(me), "before the commit");
    client.put(Scope::LOCAL, "card.local", me + 10).unwrap();
    client.commit().unwrap();
    client.fence(&[], &[on(keys::COLLECT_DATA)]).unwrap();
    for rank in 0..4 {
        assert_eq!(client.get(&client.peer(rank), "card", &[]).unwrap(), Value::Uint32(rank));
        assert_eq!(
            client.get(&client.peer(rank), "card.local", &[on(keys::OPTIONAL)]).unwrap(),
            Value::Uint32(rank + 10)
        );
        let all = client.get_all(&client.peer(rank), &[]).unwrap();
        assert!(
            all.iter().any(|info| info.key == "card") && all.iter().any(|info| info.key == keys::LOCAL_RANK)
        );
    }
    let absent = client.get(&client.peer(0), "absent", &[on(keys::IMMEDIATE)]).unwrap_err();
    assert!(absent.is_not_found(), "{absent}");
    assert!(absent.to_string().starts_with(&format!("get of absent of {}", client.peer(0))), "{absent}");
    let peers = client.resolve_peers(None, &client.proc().nspace).unwrap();
    assert_eq!(peers, (0..4).map(|rank| client.peer(rank)).collect::<Vec<_>>());
    let host = client.get(client.proc(), keys::HOSTNAME, &[]).unwrap();
    assert_eq!(client.resolve_nodes(&client.proc().nspace).unwrap(), [host.as_str().unwrap()]);
    assert!(matches!(client.put(Scope::GLOBAL, "pmix.job.size", 5_u32), Err(Error::ReservedKey { .. })));
    assert!(matches!(client.put(Scope::UNDEF, "x", 5_u32), Err(Error::Scope(Scope::UNDEF))));
    assert!(matches!(client.put(Scope::GLOBAL, &"x".repeat(600), 5_u32), Err(Error::Key { .. })));
    client.finalize(&[on(keys::EMBED_BARRIER)]).unwrap();
}

fn publish() {
    let client = Client::init().unwrap();
    let first = client.proc().rank.0 == 0;
    if first {
        client
            .publish(&[Info::new("service.port", "tcp:5"), Info::new(keys::RANGE, Range::SESSION)])
            .unwrap();
    }
    client.fence(&[], &[]).unwrap();
    let found = client.lookup(&["service.port", "service.absent"], &[]).unwrap();
    assert_eq!((found.len(), &found[0].proc, &found[0].value), (1, &client.peer(0), &"tcp:5".into()));
    client.fence(&[], &[]).unwrap();
    if first {
        client.unpublish(&["service.port"], &[]).unwrap();
    }
    client.fence(&[], &[]).unwrap();
    assert!(client.lookup(&["service.port"], &[]).unwrap_err().is_not_found());
    client.finalize(&[]).unwrap();
}

fn events() {
    let client = std::sync::Arc::new(Client::init().unwrap());
    let done = |status| Verdict { status, results: Vec::new() };
    let (seen, events) = channel();
    let last = seen.clone();
    let weak = std::sync::Arc::downgrade(&client);
    client
        .register_event_handler(&[], &[Info::new(keys::EVENT_HDLR_NAME, "default")], move |event, results| {
            last.send(("default", event.clone(), results.len())).unwrap();
            done(Status::SUCCESS)
        })
        .unwrap();
    let id = client
        .register_event_handler(
            &[CODE],
            &[Info::new(keys::EVENT_HDLR_NAME, "single")],
            move |event, results| {
                let client = weak.upgrade().unwrap();
                assert!(matches!(client.fence(&[], &[]), Err(Error::OnProgressThread)));
                assert_eq!(
                    client.get_job(keys::JOB_SIZE).unwrap(),
                    Value::Uint32(3),
                    "what is known can be had"
                );
                seen.send(("single", event.clone(), results.len())).unwrap();
                Verdict {
                    status: Status::EVENT_PARTIAL_ACTION_TAKEN,
                    results: vec![Info::new("result", 1_u32)],
                }
            },
        )
        .unwrap();
    client
        .register_event_handler(&[CODE], &[], |_, _| {
            std::panic::resume_unwind(Box::new("a handler of the program fails"))
        })
        .unwrap();
    client.fence(&[], &[]).unwrap();
    if client.proc().rank.0 == 1 {
        client.notify(CODE, Range::NAMESPACE, &[Info::new("reason", "test")]).unwrap();
    }
    let (name, event, results) = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!((name, event.code, event.source, results), ("single", CODE, client.peer(1), 0));
    let (name, event, results) = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!((name, results), ("default", 1));
    assert!(event.info.iter().any(|info| info.key == "reason"));
    client.deregister_event_handler(id).unwrap();
    client.fence(&[], &[]).unwrap();
    if client.proc().rank.0 == 2 {
        client.notify(CODE, Range::NAMESPACE, &[]).unwrap();
    }
    assert_eq!(events.recv_timeout(PATIENCE).unwrap().0, "default");
    client.fence(&[], &[]).unwrap();
}

fn questions() {
    let client = Client::init().unwrap();
    let answers =
        client.query(&[Query { keys: vec![keys::QUERY_NAMESPACES.into()], qualifiers: vec![] }]).unwrap();
    assert_eq!(answers, [Info::new(keys::QUERY_NAMESPACES, "job@1")]);
    client.log(&[Info::new(keys::LOG_STDERR, "a line\n")], &[on(keys::LOG_GENERATE_TIMESTAMP)]).unwrap();
    let directive = Info::new(keys::REGISTER_CLEANUP, "/tmp/x");
    assert_eq!(client.job_control(&[], std::slice::from_ref(&directive)).unwrap()[0], directive);
    client.finalize(&[]).unwrap();
}

fn groups() {
    let client = Client::init().unwrap();
    let members = [client.peer(0), client.peer(2)];
    if client.proc().rank.0 != 1 {
        let wish = [on(keys::GROUP_ASSIGN_CONTEXT_ID)];
        let group = client.group_construct("pair", &members, &wish).unwrap();
        assert_eq!(group.members, members);
        assert!(group.context_id.is_some());
        client.group_destruct("pair", &[]).unwrap();
    }
    client.connect(&[client.job()], &[]).unwrap();
    client.heartbeat().unwrap();
    client.disconnect(&[client.job()], &[]).unwrap();
    client.finalize(&[]).unwrap();
}

fn large() {
    let client = Client::init().unwrap();
    let content: String = (0..8 << 20).map(|n: u32| char::from(b'a' + (n % 23) as u8)).collect();
    if client.proc().rank.0 == 0 {
        client.put(Scope::GLOBAL, "large", content.as_str()).unwrap();
        client.commit().unwrap();
    }
    let got = client.get(&client.peer(0), "large", &[]).unwrap();
    assert!(got.as_str() == Some(&content));
    client.fence(&[], &[]).unwrap();
    client.finalize(&[]).unwrap();
}

fn threads() {
    let client = Client::init().unwrap();
    for n in 0..64_u32 {
        client.put(Scope::GLOBAL, &format!("value.{n}"), n).unwrap();
    }
    client.commit().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16_u32 {
            let client = &client;
            scope.spawn(move || {
                for n in 0..64_u32 {
                    let n = (n + thread * 4) % 64;
                    for rank in 0..2 {
                        let got = client.get(&client.peer(rank), &format!("value.{n}"), &[]).unwrap();
                        assert_eq!(got, Value::Uint32(n));
                    }
                    let me = client.proc().rank;
                    client
                        .publish(&[Info {
                            key: pmix::Key::new(&format!("p.{me}.{thread}.{n}")).unwrap(),
                            ..on("x")
                        }])
                        .unwrap();
                }
            });
        }
    });
    client.fence(&[], &[]).unwrap();
    client.finalize(&[]).unwrap();
}

fn timeouts() {
    let client = Client::init().unwrap();
    let timeout = [Info::new(keys::TIMEOUT, 1)];
    if client.proc().rank.0 == 0 {
        let here = [client.peer(0), client.peer(1)];
        assert_eq!(client.fence(&here, &timeout).unwrap_err().status(), Status::ERR_TIMEOUT);
        client.get(&client.peer(1), "never", &timeout).unwrap_err();
    }
    client.fence(&[], &[]).unwrap();
    client.finalize(&[]).unwrap();
}

/// A forked child cannot use its parent's client, and does not harm it. It may be a client of the rank itself, also beside its
/// parent.
fn fork() {
    let is_the_rank = || {
        let client = Client::init().unwrap();
        let size = client.get_job(keys::JOB_SIZE);
        client.fence(&[], &[]).is_ok() && size.is_ok() && client.finalize(&[]).is_ok()
    };
    in_a_child(is_the_rank);
    let mut client = Some(Client::init().unwrap());
    in_a_child(|| {
        // The child's copy.
        let client = client.take().unwrap();
        matches!(client.get_job(keys::JOB_SIZE), Err(Error::Forked))
            && matches!(client.fence(&[], &[]), Err(Error::Forked))
            && matches!(client.put(Scope::GLOBAL, "x", 1_u32), Err(Error::Forked))
    });
    let client = client.unwrap();
    client.fence(&[], &[]).unwrap();
    in_a_child(is_the_rank);
    in_a_child(|| Client::init().map(std::mem::forget).is_ok());
    client.fence(&[], &[]).unwrap();
    client.finalize(&[]).unwrap();
    in_a_child(is_the_rank);
}

/// Succeeds if this holds in a forked child.
fn in_a_child(is_so: impl FnOnce() -> bool) {
    // SAFETY: no other thread of this program runs but the library's, which waits for bytes and holds no lock; the C library
    // takes care of the child's memory, and the child ends with _exit.
    match unsafe { libc::fork() } {
        0 => {
            let so = is_so();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(if so { 0 } else { 1 }) }
        }
        child => {
            let child = rustix::process::Pid::from_raw(child).unwrap();
            let (_, status) = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())
                .unwrap()
                .unwrap();
            assert_eq!(status.exit_status(), Some(0));
        }
    }
}

/// No thread before it is needed, then one with all signals blocked, no descriptors that a program started from here would
/// inherit, and nothing left at the end.
fn surroundings() {
    let (threads, fds) = (names_of_threads(), open_fds());
    let client = Client::init().unwrap();
    client.fence(&[], &[]).unwrap();
    assert_eq!(names_of_threads(), threads);
    let verdict = |_: &pmix::Event, _: &[Info]| Verdict { status: Status::SUCCESS, results: Vec::new() };
    client.register_event_handler(&[CODE], &[], verdict).unwrap();
    let is_ours = |(_, name): &&(String, String)| name == "pmix-progress";
    // The thread sets its name when it runs.
    while names_of_threads().iter().filter(is_ours).count() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let during = names_of_threads();
    assert_eq!(during.iter().filter(is_ours).count(), 1);
    assert_eq!(during.len(), threads.len() + 1);
    let (task, _) = during.iter().find(|(_, name)| name == "pmix-progress").unwrap();
    let status = fs::read_to_string(format!("/proc/self/task/{task}/status")).unwrap();
    let blocked = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    // SIGKILL and SIGSTOP cannot be blocked; glibc keeps 32 and 33 for itself.
    let cannot = [9, 19, 32, 33].iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
    assert_eq!(blocked(&status) | cannot, u64::MAX, "{:x}", blocked(&status));
    assert_eq!(blocked(&fs::read_to_string("/proc/self/status").unwrap()), 0);
    let new: Vec<_> = open_fds().difference(&fds).copied().collect();
    assert!((1..=4).contains(&new.len()), "{new:?}");
    for fd in new {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        assert_ne!(
            u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000,
            0,
            "fd {fd} is not close-on-exec"
        );
    }
    client.finalize(&[]).unwrap();
    // Joined, but the kernel may not have removed its entry yet.
    while names_of_threads() != threads {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(open_fds(), fds);
}

/// Server and client are both ours.
fn short_way() {
    let before = open_fds();
    let client = Client::init().unwrap();
    let opened = open_fds().into_iter().filter(|fd| !before.contains(fd));
    let links = opened.filter_map(|fd| fs::read_link(format!("/proc/self/fd/{fd}")).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned());
    let inodes = links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()));
    let inodes: Vec<_> = inodes.collect();
    let local = fs::read_to_string("/proc/self/net/unix").unwrap();
    let local: BTreeSet<_> = local.lines().filter_map(|line| line.split_whitespace().nth(6)).collect();
    assert_eq!(inodes.len(), 1);
    assert!(local.contains(inodes[0].as_str()), "{inodes:?} in {local:?}");
    client.finalize(&[]).unwrap();
}

fn names_of_threads() -> BTreeSet<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    tasks
        .filter_map(|task| {
            let name = fs::read_to_string(task.join("comm")).ok()?;
            Some((task.file_name()?.to_str()?.to_owned(), name.trim().to_owned()))
        })
        .collect()
}

fn open_fds() -> BTreeSet<i32> {
    let listing: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path()).collect();
    // The descriptor of the listing itself is among them, and closed by now.
    let open = listing.into_iter().filter(|path| path.exists());
    open.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

fn server_dies() {
    let client = Client::init().unwrap();
    let (seen, events) = channel();
    client
        .register_event_handler(&[Status::ERR_LOST_CONNECTION], &[], move |event, _| {
            seen.send(event.clone()).unwrap();
            Verdict { status: Status::SUCCESS, results: Vec::new() }
        })
        .unwrap();
    client.put(Scope::GLOBAL, "ready", 1_u32).unwrap();
    client.commit().unwrap();
    if client.proc().rank.0 == 0 {
        client.get(&client.peer(1), "ready", &[]).unwrap();
        let error = client.fence(&[], &[]).unwrap_err();
        assert_eq!(error.status(), Status::ERR_LOST_CONNECTION);
        assert_eq!(error.to_string(), "fence of job@1:*: PMIX_ERR_LOST_CONNECTION (-61)");
    }
    let event = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!(event.source.nspace, "px");
    assert_eq!(client.get_job(keys::JOB_SIZE).unwrap(), Value::Uint32(2));
    assert_eq!(client.fence(&[], &[]).unwrap_err().status(), Status::ERR_UNREACH);
    client.finalize(&[]).unwrap();
}

fn nobody_listens() {
    match Client::init().unwrap_err() {
        Error::Init { reason: InitError::Unreachable, source: Some(source), server } => {
            assert_eq!(source.kind(), std::io::ErrorKind::ConnectionRefused);
            assert!(server.starts_with("tcp4://127.0.0.1:"));
        }
        other => panic!("{other}"),
    }
}

fn turned_away() {
    let error = Client::init().unwrap_err();
    assert!(matches!(error, Error::Init { reason: InitError::TurnedAway, .. }), "{error}");
}

fn alone() {
    let client = Client::init().unwrap();
    assert!(client.is_singleton());
    assert!(client.proc().nspace.as_str().starts_with("singleton."));
    assert_eq!(client.get_job(keys::JOB_SIZE).unwrap(), Value::Uint32(1));
    client.put(Scope::GLOBAL, "card", 5_u32).unwrap();
    client.commit().unwrap();
    client.fence(&[], &[]).unwrap();
    assert_eq!(client.get(client.proc(), "card", &[]).unwrap(), Value::Uint32(5));
    assert_eq!(client.publish(&[]).unwrap_err().status(), Status::ERR_UNREACH);
    client.finalize(&[]).unwrap();
}

//! The ranks' part in the scenarios with many waiting threads: a thread that waits for an answer receives, for itself and
//! for others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use pmix::{Client, Error, Info, Range, Scope, Status, Value, Verdict, keys};

use crate::PATIENCE;

const CODE: Status = Status(-3001);
const THREADS: u32 = 8;
const STEPS: u32 = 60;

/// Threads of two ranks proceed in step, each by waiting for a commit of its peer, while others ask, time out and meet.
pub(crate) fn waits() {
    let client = Client::init().unwrap();
    let me = client.proc().rank.0;
    let peer = client.peer(1 - me);
    thread::scope(|scope| {
        let (client, peer) = (&client, &peer);
        for thread in 0..THREADS {
            scope.spawn(move || {
                for step in 0..STEPS {
                    let key = format!("step.{thread}.{step}");
                    // In odd steps the other one goes first.
                    let goes_first = step % 2 == me;
                    if goes_first {
                        put(client, &key, step);
                    }
                    // Of varying lengths, and long enough.
                    let timeout = Info::new(keys::TIMEOUT, 60 + (thread * 7 + step * 13) % 50);
                    let got = client.get(peer, &key, &[timeout]).unwrap();
                    assert_eq!(got, Value::Uint32(step));
                    if !goes_first {
                        put(client, &key, step);
                    }
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..2 {
                let never = client.get(peer, "never", &[Info::new(keys::TIMEOUT, 1)]).unwrap_err();
                assert_eq!(never.status(), Status::ERR_TIMEOUT);
            }
        });
        scope.spawn(move || {
            for _ in 0..STEPS {
                client.fence(&[], &[]).unwrap();
            }
        });
        let (told, hears) = channel();
        for step in 0..STEPS {
            let told = told.clone();
            let then = move |got: Result<Value, Error>| told.send((thread::current().id(), got)).unwrap();
            let patience = [Info::new(keys::TIMEOUT, 100)];
            client.get_then(peer, &format!("step.0.{step}"), &patience, then).unwrap();
        }
        drop(told);
        let got: Vec<_> = hears.iter().collect();
        assert_eq!(got.len(), STEPS as usize);
        for (_, got) in got {
            got.unwrap();
        }
    });
    client.fence(&[], &[]).unwrap();
    client.finalize(&[]).unwrap();
}

fn put(client: &Client, key: &str, value: u32) {
    client.put(Scope::GLOBAL, key, value).unwrap();
    client.commit().unwrap();
}

/// Events that come while a caller waits run on the usual thread, in order, before the answer that came behind them; and
/// their handlers ask.
pub(crate) fn news() {
    const ROUNDS: u32 = 200;
    let client = Arc::new(Client::init().unwrap());
    let me = client.proc().rank.0;
    let last = Arc::new(AtomicU32::new(0));
    let (seen, asker) = (last.clone(), Arc::downgrade(&client));
    let (told, hears) = channel();
    let handler = move |event: &pmix::Event, _: &[Info]| {
        let number = event.info.iter().find(|info| info.key == "number").unwrap();
        let Value::Uint32(number) = number.value else { panic!("{number:?}") };
        assert_eq!(thread::current().name(), Some("pmix-progress"));
        assert_eq!(number, seen.swap(number, Ordering::SeqCst) + 1);
        let client = asker.upgrade().unwrap();
        assert!(matches!(client.lookup(&["x"], &[]), Err(Error::OnProgressThread)));
        let told = told.clone();
        let then = move |got: Result<Value, Error>| {
            assert_eq!(thread::current().name(), Some("pmix-progress"));
            told.send((number, got.unwrap())).unwrap();
        };
        client.get_then(&client.peer(1), &format!("of.{number}"), &[], then).unwrap();
        Verdict { status: Status::EVENT_ACTION_COMPLETE, results: Vec::new() }
    };
    if me == 0 {
        client.register_event_handler(&[CODE], &[], handler).unwrap();
    }
    client.fence(&[], &[]).unwrap();
    for number in 1..=ROUNDS {
        if me == 1 {
            put(&client, &format!("of.{number}"), number);
            client.notify(CODE, Range::LOCAL, &[Info::new("number", number)]).unwrap();
        }
        client.fence(&[], &[]).unwrap();
        if me == 0 {
            assert!(last.load(Ordering::SeqCst) >= number, "what came first is done first");
        }
    }
    if me == 0 {
        // A value known by then is delivered at once, before an answer that has arrived and is not delivered yet.
        let mut told: Vec<_> = (1..=ROUNDS).map(|_| hears.recv_timeout(PATIENCE).unwrap()).collect();
        told.sort_by_key(|(number, _)| *number);
        assert_eq!(told, (1..=ROUNDS).map(|number| (number, Value::Uint32(number))).collect::<Vec<_>>());
    }
    client.fence(&[], &[]).unwrap();
}

/// A caller that waits when another thread finalizes gets an error.
pub(crate) fn closed() {
    let client = Client::init().unwrap();
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|n| {
                let client = &client;
                scope.spawn(move || {
                    client.get(&client.peer(1), &format!("never.{n}"), &[]).unwrap_err().status()
                })
            })
            .collect();
        until_waiting(&client, 3);
        client.close(&[]).unwrap();
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), Status::ERR_LOST_CONNECTION);
        }
    });
    assert!(matches!(client.fence(&[], &[]), Err(Error::Ended)));
}

static CLIENT: OnceLock<Client> = OnceLock::new();
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A signal handler that asks in the middle of a wait of the same thread. PMIx does not promise it; programs do it when they
/// abort.
pub(crate) fn interrupted() {
    const SIGNALS: u32 = 50;
    extern "C" fn ask(_: libc::c_int) {
        let client = CLIENT.get().unwrap();
        assert!(client.lookup(&["absent"], &[]).unwrap_err().is_not_found());
        ASKED.fetch_add(1, Ordering::SeqCst);
    }
    let client = CLIENT.get_or_init(|| Client::init().unwrap());
    if client.proc().rank.0 == 0 {
        let status = std::fs::read_link("/proc/thread-self").unwrap();
        let status = std::path::Path::new("/proc").join(status).join("status");
        // SAFETY: the handler has the required signature. It is called while this thread sleeps, without holding a lock.
        unsafe { libc::signal(libc::SIGUSR1, ask as *const () as libc::sighandler_t) };
        // SAFETY: names this thread.
        let waiter = unsafe { libc::pthread_self() };
        thread::spawn(move || {
            until_waiting(client, 1);
            for sent in 1..=SIGNALS {
                while !std::fs::read_to_string(&status).unwrap().contains("State:\tS") {
                    thread::yield_now();
                }
                // SAFETY: the thread lives as long as the process.
                assert_eq!(unsafe { libc::pthread_kill(waiter, libc::SIGUSR1) }, 0);
                let began = Instant::now();
                while ASKED.load(Ordering::SeqCst) < sent {
                    assert!(began.elapsed() < PATIENCE, "the handler hangs");
                    thread::yield_now();
                }
            }
            client.publish(&[Info::new("enough", true)]).unwrap();
        });
        assert_eq!(client.get(&client.peer(1), "late", &[]).unwrap(), Value::Uint32(1));
        assert_eq!(ASKED.load(Ordering::SeqCst), SIGNALS);
    } else {
        let began = Instant::now();
        while client.lookup(&["enough"], &[]).is_err() {
            assert!(began.elapsed() < PATIENCE, "rank 0 does not publish");
        }
        put(client, "late", 1);
    }
    client.fence(&[], &[]).unwrap();
    client.close(&[]).unwrap();
}

fn until_waiting(client: &Client, count: usize) {
    let began = Instant::now();
    while client.explain().unwrap().waiting.iter().filter(|waiting| waiting.operation == "get").count()
        < count
    {
        assert!(began.elapsed() < PATIENCE, "nobody waits");
        thread::yield_now();
    }
}

//! Collected data is read from the server's files: even while the server is stopped; without the files, the server is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Instant;

use pmix::server::ServerOptions;
use pmix::{Client, Host, Info, ProcId, Scope, Value, keys};
use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::hosts::serve_all_with;
use crate::server::job;
use crate::{PATIENCE, Stage};

struct Silent;
impl Host for Silent {}

fn on(key: &'static str) -> Info {
    Info::new(key, true)
}

/// The ranks of these scenarios meet in a directory of the server's own.
pub(crate) fn host(stage: Stage) {
    let dir = tempfile::tempdir().unwrap();
    let server_tmpdir = Some(dir.path().to_str().unwrap().to_owned());
    let options = ServerOptions { server_tmpdir, ..ServerOptions::default() };
    let (server, ranks) = serve_all_with(&stage, options, Silent);
    ranks.into_iter().for_each(|rank| stage.wait(rank));
    server.deregister_nspace(&job(stage.size).nspace).unwrap();
    assert_eq!(files(dir.path()), [] as [PathBuf; 0], "they go with the job");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("phalanx-")).collect()
}

fn server_files() -> Vec<PathBuf> {
    files(Path::new(&std::env::var_os("PMIX_SERVER_TMPDIR").unwrap()))
}

fn meet(client: &Client, n: u32) {
    client.put(Scope::GLOBAL, "card", n + client.proc().rank.0).unwrap();
    client.commit().unwrap();
    client.fence(&[], &[on(keys::COLLECT_DATA)]).unwrap();
}

fn peers(client: &Client, size: u32) -> impl Iterator<Item = ProcId> {
    (0..size).map(|rank| client.peer(rank)).filter(|peer| peer != client.proc())
}

/// Gets are answered while the server is stopped, new values after the next fence are seen, and the server is asked for what is
/// not in the file.
pub(crate) fn server_stands_still() {
    let client = Client::init().unwrap();
    for n in [100, 200] {
        meet(&client, n);
        let [file] = server_files().try_into().unwrap();
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        client.fence(&[], &[]).unwrap();
        if client.proc().rank.0 == 0 {
            let stopped = Stopped::parent();
            for peer in peers(&client, 4) {
                assert_eq!(client.get(&peer, "card", &[]).unwrap(), Value::Uint32(n + peer.rank.0));
                let optional = client.get(&peer, "absent", &[on(keys::OPTIONAL)]).unwrap_err();
                assert!(optional.is_not_found());
            }
            drop(stopped);
        }
        for peer in peers(&client, 4) {
            assert_eq!(client.get(&peer, "card", &[]).unwrap(), Value::Uint32(n + peer.rank.0));
        }
        let absent = client.get(&client.peer(1), "absent", &[on(keys::IMMEDIATE)]);
        assert!(absent.unwrap_err().is_not_found());
        client.fence(&[], &[]).unwrap();
    }
    // Put after the file was written.
    if client.proc().rank.0 == 1 {
        client.put(Scope::GLOBAL, "late", 7_u32).unwrap();
        client.commit().unwrap();
    }
    assert_eq!(client.get(&client.peer(1), "late", &[]).unwrap(), Value::Uint32(7));
    client.finalize(&[on(keys::EMBED_BARRIER)]).unwrap();
}

/// Whatever happens to the files, the server has the values.
pub(crate) fn files_vanish() {
    let client = Client::init().unwrap();
    let me = client.proc().rank.0;
    meet(&client, 100);
    client.fence(&[], &[]).unwrap();
    if me == 0 {
        // Of the right length, and ours, but with other content.
        for file in server_files() {
            let length = fs::metadata(&file).unwrap().len();
            fs::write(&file, vec![0xff; usize::try_from(length).unwrap()]).unwrap();
        }
    }
    client.fence(&[], &[]).unwrap();
    for peer in peers(&client, 2) {
        assert_eq!(client.get(&peer, "card", &[]).unwrap(), Value::Uint32(100 + peer.rank.0));
    }
    client.fence(&[], &[]).unwrap();
    meet(&client, 200);
    if me == 0 {
        server_files().into_iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    client.fence(&[], &[]).unwrap();
    meet(&client, 300);
    for peer in peers(&client, 2) {
        let fresh = client.get(&peer, "card", &[on(keys::GET_REFRESH_CACHE)]).unwrap();
        assert_eq!(fresh, Value::Uint32(300 + peer.rank.0));
        assert_eq!(client.get(&peer, "card", &[]).unwrap(), Value::Uint32(300 + peer.rank.0));
    }
    client.finalize(&[on(keys::EMBED_BARRIER)]).unwrap();
}

/// The server's process is stopped until this is dropped. A rank that asks it nevertheless would wait as long: it ends as a
/// failure.
struct Stopped {
    process: Pid,
    _ends_watch: Sender<()>,
}

impl Stopped {
    fn parent() -> Stopped {
        let parent = getppid().unwrap();
        kill_process(parent, Signal::STOP).unwrap();
        let (ends_watch, watch) = channel();
        let stopped = Stopped { process: parent, _ends_watch: ends_watch };
        std::thread::spawn(move || {
            if watch.recv_timeout(PATIENCE / 4) == Err(RecvTimeoutError::Timeout) {
                kill_process(parent, Signal::CONT).unwrap();
                eprintln!("a get waits for a server that stands still");
                std::process::exit(1);
            }
        });
        let began = Instant::now();
        while !is_stopped(parent) {
            assert!(began.elapsed() < PATIENCE, "it does not stop");
            std::thread::yield_now();
        }
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.process, Signal::CONT).unwrap();
    }
}

/// Whether all its threads are stopped.
fn is_stopped(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    tasks.flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The name, which may hold anything, ends with the last bracket.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    })
}

//! The library in processes of its own, started by our server over real sockets.
//!
//! This program starts itself once per rank. A rank runs the function in `ranks.rs` of the scenario's name, and fails by
//! panicking; the scenario here is the server's part. Scenarios wait for conditions, never for time to pass.

#![allow(clippy::unwrap_used, reason = "a test without the harness that clippy knows")]

mod collected;
mod hosted;
mod hosts;
mod machine;
mod ranks;
mod server;
mod streams;
mod waits;

use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use pmix::{Info, Status, Tool, keys};

use server::{Call, TestServer};

const RANK: &str = "PHALANX_PMIX_SCENARIO";
/// Far more than any of them needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Name, number of ranks, the server's part.
const SCENARIOS: &[(&str, u32, Part)] = &[
    ("meet", 4, plain),
    ("publish", 2, plain),
    ("events", 3, plain),
    ("questions", 1, plain),
    ("groups", 3, plain),
    ("large", 2, plain),
    ("threads", 2, plain),
    ("timeouts", 2, plain),
    ("waits", 2, plain),
    ("news", 2, plain),
    ("closed", 2, closed),
    ("interrupted", 2, plain),
    ("fork", 1, fork),
    ("surroundings", 1, plain),
    ("short_way", 1, plain),
    ("goodbye", 1, goodbye),
    ("abort", 1, abort),
    ("server_dies", 2, server_dies),
    ("nobody_listens", 1, nobody_listens),
    ("turned_away", 1, turned_away),
    ("tool_turned_away", 1, tool_turned_away),
    ("alone", 1, alone),
    ("two_nodes", 4, hosts::two_nodes),
    ("late_host", 2, hosts::late_host),
    ("host_panics", 2, hosts::host_panics),
    ("host_driven", 2, hosts::host_driven),
    ("taken_over", 2, hosts::taken_over),
    ("own_process", 1, hosts::own_process),
    ("every_upcall", 1, hosts::every_upcall),
    ("machine", 2, machine::host),
    ("server_stands_still", 4, collected::host),
    ("files_vanish", 2, collected::host),
    ("spawned_output", 1, streams::host),
];

type Part = fn(Stage);

/// A running scenario.
struct Stage {
    name: &'static str,
    size: u32,
    server: TestServer,
}

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(RANK) {
        ranks::run(name.to_str().unwrap());
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    // Each scenario starts and ends a server: one at a time.
    arguments.test_threads.get_or_insert(1);
    let trial = |(name, size, part): &(&'static str, u32, Part)| {
        let (name, size, part) = (*name, *size, *part);
        Trial::test(name, move || {
            part(Stage { name, size, server: TestServer::start(size) });
            Ok(())
        })
        .with_kind("in turn")
    };
    libtest_mimic::run(&arguments, SCENARIOS.iter().map(trial).collect()).exit_code()
}

impl Stage {
    fn start(&self, rank: u32, change: impl FnOnce(&mut Command)) -> Child {
        self.start_with(|command| {
            self.server.setup_fork(rank, command);
            change(command);
        })
    }

    fn start_with(&self, change: impl FnOnce(&mut Command)) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(RANK, self.name).stdin(Stdio::null());
        change(&mut command);
        command.spawn().unwrap()
    }

    fn start_all(&self) -> Vec<Child> {
        (0..self.size).map(|rank| self.start(rank, |_| {})).collect()
    }

    fn wait(&self, mut child: Child) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = child.try_wait().unwrap() {
                return assert!(status.success(), "{}: a rank failed: {status}", self.name);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        panic!("{}: a rank hangs", self.name);
    }
}

fn plain(stage: Stage) {
    let ranks = stage.start_all();
    ranks.into_iter().for_each(|rank| stage.wait(rank));
}

/// A child that connects and leaves while its parent is connected is not reported.
fn fork(stage: Stage) {
    stage.wait(stage.start(0, |_| {}));
    let expected = vec![Call::Finalized; 3];
    stage.server.until(|asked| *asked == expected);
}

/// A client that is dropped has finalized.
fn goodbye(stage: Stage) {
    stage.wait(stage.start(0, |_| {}));
    stage.server.until(|asked| asked.contains(&Call::Finalized));
    stage.server.until(|asked| !asked.contains(&Call::Lost));
}

/// Rank 1 is never started.
fn closed(stage: Stage) {
    stage.wait(stage.start(0, |_| {}));
}

fn abort(stage: Stage) {
    let rank = stage.start(0, |_| {});
    stage.server.until(|asked| {
        let is_it =
            |asked: &Call| matches!(asked, Call::Abort(it) if it.status.0 == 7 && it.message == "enough");
        asked.iter().any(is_it)
    });
    stage.wait(rank);
}

/// Rank 1 never enters the fence in which rank 0 waits; then the server dies.
fn server_dies(stage: Stage) {
    let ranks = stage.start_all();
    stage.server.until_fence_waits();
    stage.server.die();
    ranks.into_iter().for_each(|rank| stage.wait(rank));
}

fn nobody_listens(stage: Stage) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("server.0;tcp4://127.0.0.1:{port}");
    stage.wait(stage.start(0, |command| {
        command.env("PMIX_SERVER_URI41", uri);
    }));
}

/// The server closes the connection as soon as it gets the hello.
fn turned_away(stage: Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("server.0;tcp4://{}", listener.local_addr().unwrap());
    let rank = stage.start(0, |command| {
        command.env("PMIX_SERVER_URI41", uri);
    });
    let (mut socket, _) = listener.accept().unwrap();
    assert!(socket.read(&mut [0; 1024]).unwrap() > 0);
    drop(socket);
    stage.wait(rank);
}

fn alone(stage: Stage) {
    stage.wait(stage.start(0, |command| {
        for name in [
            "NAMESPACE",
            "SERVER_URI21",
            "SERVER_URI3",
            "SERVER_URI4",
            "SERVER_URI41",
            "SERVER_URI51",
            "SERVER_URI61",
        ] {
            command.env_remove(format!("PMIX_{name}"));
        }
    }));
}

/// A server may close the connection by mistake: a tool tries again, and finally gives up.
fn tool_turned_away(_: Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("server.0;tcp4://{}", listener.local_addr().unwrap());
    let came = Arc::new(AtomicUsize::new(0));
    let counted = came.clone();
    // It ends with the process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = socket.unwrap().read(&mut [0; 1024]);
        }
    });
    let error = Tool::init(&[Info::new(keys::SERVER_URI, uri)]).err().unwrap();
    assert_eq!(error.status(), Status::ERR_UNREACH, "{error}");
    assert_eq!(came.load(Ordering::Relaxed), 3, "{error}");
}

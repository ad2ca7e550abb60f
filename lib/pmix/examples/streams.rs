//! A tool that spawns a job, shows its output, also in files, and reports when its streams end.
//!
//! ```text
//! cargo run -p pmix --example streams -- PID FILES
//! ```
//!
//! PID: the server's. FILES: a pattern of file names, with `%n` for the job and `%r` for the rank. The job is over before its output
//! is pulled: its output is kept for the spawner.

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use pmix::{App, Event, Info, InfoList, IofChannel, ProcId, Status, Text, Tool, Value, Verdict, keys};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [pid, files] = words.as_slice() else {
        eprintln!("usage: streams PID FILES");
        return ExitCode::from(2);
    };
    match run(pid, files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(pid: &str, files: &str) -> Result<(), Failure> {
    // Shown when it is asked for, and not before.
    let quiet = Info::new(keys::IOF_LOCAL_OUTPUT, false);
    let tool = Tool::init(&[Info::new(keys::SERVER_PIDINFO, Value::Pid(pid.parse()?)), quiet])?;
    let (told, events) = mpsc::channel();
    let codes = [Status::ERR_IOF_COMPLETE, Status::ERR_IOF_FAILURE, Status::EVENT_JOB_END];
    tool.register_event_handler(&codes, &[], move |event: &Event, _: &[Info]| {
        let _ = told.send((event.code, event.info.clone()));
        Verdict { status: Status::SUCCESS, results: Vec::new() }
    })?;

    let argv = ["sh", "-c", "echo out $PMIX_RANK; echo err $PMIX_RANK >&2"].map(Text::from).to_vec();
    let app = App { cmd: Some("/bin/sh".into()), argv, max_procs: 2, ..App::default() };
    let forward = [Info::new(keys::FWD_STDOUT, true), Info::new(keys::FWD_STDERR, true)];
    let job = tool.spawn(&forward, &[app])?;
    eprintln!("spawned {job}");
    let mut over = false;
    let mut ends = 0;
    while !over || ends < 4 {
        let (code, info) = events.recv_timeout(PATIENCE)?;
        let Some(Value::Proc(proc)) = info.find(keys::EVENT_AFFECTED_PROC) else { continue };
        if proc.nspace != job {
            continue;
        }
        over |= code == Status::EVENT_JOB_END;
        if let Some(channel) = info.find("phalanx.iof.channel").and_then(Value::as_u64) {
            eprintln!("{code} {} {} {channel}", proc.nspace, proc.rank);
            ends += 1;
        }
    }

    let form = [
        Info::new(keys::IOF_RANK_OUTPUT, true),
        Info::new(keys::IOF_OUTPUT_TO_FILE, files),
        Info::new(keys::IOF_FILE_PATTERN, true),
    ];
    let both = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0);
    let shown = tool.iof_show(&[ProcId::all(&job)], both, &form)?;
    tool.iof_deregister(shown, &[])?;
    tool.close(&[])?;
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(300);

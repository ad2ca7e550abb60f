//! A tool that spawns jobs one after the other and reads the output of each, from its first byte.
//!
//! ```text
//! cargo run -p pmix --example spawn -- PID COUNT GATE
//! ```
//!
//! PID: the server's. The output of a job is pulled when its name is known, so its earlier output must have been kept. Before its
//! last line, job N waits for the file GATE.N, which is created when the pull is accepted.

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use pmix::{App, Info, IofChannel, ProcId, Text, Tool, Value, keys};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [pid, count, gate] = words.as_slice() else {
        eprintln!("usage: spawn PID COUNT GATE");
        return ExitCode::from(2);
    };
    match run(pid, count, gate) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(pid: &str, count: &str, gate: &str) -> Result<(), Failure> {
    let (pid, count) = (pid.parse()?, count.parse::<u32>()?);
    // It is the handler that reads.
    let quiet = Info::new(keys::IOF_LOCAL_OUTPUT, false);
    let tool = Tool::init(&[Info::new(keys::SERVER_PIDINFO, Value::Pid(pid)), quiet])?;
    for number in 0..count {
        let seen = output_of(&tool, number, &format!("{gate}.{number}"))?;
        let expected = format!("job {number} first\njob {number} last\n");
        if seen != expected.as_bytes() {
            return Err(format!("job {number} printed {:?}", String::from_utf8_lossy(&seen)).into());
        }
    }
    tool.close(&[])?;
    println!("{count} jobs");
    Ok(())
}

fn output_of(tool: &Tool, number: u32, gate: &str) -> Result<Vec<u8>, Failure> {
    let wait = format!("until [ -e '{gate}' ]; do sleep 0.01; done");
    let script = format!("echo job {number} first; {wait}; echo job {number} last");
    let argv = ["sh", "-c", &script].map(Text::from).to_vec();
    let app = App { cmd: Some("/bin/sh".into()), argv, max_procs: 1, ..App::default() };
    let job = tool.spawn(&[Info::new(keys::FWD_STDOUT, true)], &[app])?;
    let (told, pieces) = mpsc::channel();
    let handler = tool.iof_pull(&[ProcId::all(&job)], IofChannel::STDOUT, &[], move |_, _, data, _| {
        let _ = told.send(data.to_vec());
    })?;
    std::fs::write(gate, "")?;
    let mut seen = Vec::new();
    loop {
        match pieces.recv_timeout(PATIENCE)? {
            piece if piece.is_empty() => break,
            piece => seen.extend(piece),
        }
    }
    tool.iof_deregister(handler, &[])?;
    Ok(seen)
}

const PATIENCE: Duration = Duration::from_secs(300);

//! `px`: the launcher, the daemons and the tools of Phalanx in one binary.
//!
//! This file only chooses the command; each command is a file in [`cmd`].
#![forbid(unsafe_code)]

mod args;
mod background;
mod cmd;
mod compat;
mod detached;
mod failure;
mod keepalive;
mod origin;
mod outer;
mod output;
mod render;
mod resolve;
mod standstill;
mod tool;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use rustix::process::{Resource, getrlimit};

use crate::args::dvm::DvmCommand;
use crate::args::split::{self, RunLine};
use crate::args::usage::Refusal;
use crate::args::{Command, Px};
use crate::compat::mpirun::{self, Invocation};
use crate::failure::{EXIT_USAGE, Failure};
use crate::render::hint;

fn main() -> ExitCode {
    phalanx_node::heed_interrupts();
    match roomy(start) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(finish(Err(failure), false)),
    }
}

/// Calls `start` on a stack that is large enough, whatever the limit for the first thread's stack is.
fn roomy(start: fn() -> u8) -> Result<u8, Failure> {
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_none_or(|limit| limit >= ENOUGH_STACK as u64) {
        return Ok(start());
    }
    let cannot = || Failure::new("cannot get a stack of 8 MiB, and that of this process may have less");
    let thread = std::thread::Builder::new().stack_size(ENOUGH_STACK).spawn(start);
    let thread = thread.map_err(|error| cannot().because(error).hint("see 'ulimit -s' and 'ulimit -v'"))?;
    // The panic has printed its reason.
    Ok(thread.join().unwrap_or(EXIT_PANIC))
}

fn start() -> u8 {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    match mpirun::dialect(&program) {
        Some(name) => called_as(name, args),
        None => px(args),
    }
}

fn px(mut args: Vec<OsString>) -> u8 {
    // `px help run` is what users try first.
    if args.first().is_some_and(|word| word == "help") {
        args.remove(0);
        args.push("--help".into());
    }
    if args.first().is_some_and(|word| word == "run") {
        args.remove(0);
        let as_json = split::says_json(&args);
        return match split::run_line(args) {
            Ok(line) => run(line),
            Err(refusal) => refused(refusal, as_json),
        };
    }
    let as_json = args.iter().any(|arg| arg == "--json");
    let parsed = Px::command()
        .try_get_matches_from(std::iter::once("px".into()).chain(args))
        .and_then(|matches| Px::from_arg_matches(&matches));
    match parsed.map(|px| px.command) {
        Ok(Command::Daemon) => finish(cmd::daemon::run(), false),
        Ok(Command::Hello) => finish(cmd::hello::run(), false),
        Ok(Command::Completions(args)) => finish(cmd::completions::run(&args), false),
        Ok(Command::Man(args)) => finish(cmd::man::run(&args), false),
        Ok(Command::Dvm(args)) => match &args.command {
            DvmCommand::Start(args) => finish(cmd::dvm::start(args), args.json),
            DvmCommand::Status(args) => finish(cmd::dvm::status(args), args.json),
            DvmCommand::Stop(args) => finish(cmd::dvm::stop(args), args.json),
        },
        Ok(Command::Ps(args)) => finish(cmd::ps::run(&args), args.json),
        Ok(Command::Attach(args)) => finish(cmd::attach::run(&args), args.json),
        Ok(Command::Ctl(args)) => finish(cmd::control::run(&args), args.action.is_json()),
        Ok(Command::Kill(args)) => finish(cmd::control::kill(&args), args.target.json),
        Ok(Command::Wait(args)) => finish(cmd::wait::run(&args), args.json),
        Ok(Command::Query(args)) => finish(cmd::query::run(&args), args.json),
        Ok(Command::Events(args)) => finish(cmd::events::run(&args), args.json),
        Ok(Command::Log(args)) => finish(cmd::log::run(&args), args.json),
        Ok(Command::Publish(args)) => finish(cmd::publish::publish(&args), args.json),
        Ok(Command::Lookup(args)) => finish(cmd::publish::lookup(&args), args.json),
        Ok(Command::Unpublish(args)) => finish(cmd::publish::unpublish(&args), args.json),
        Ok(Command::Stacks(args)) => finish(cmd::stacks::run(&args), args.json),
        Ok(Command::Top(args)) => finish(cmd::top::run(&args), args.of.json),
        Ok(Command::Why(args)) => finish(cmd::why::run(&args), args.json),
        // Reached only if 'run' is not the first word, which clap does not accept.
        Ok(Command::Run(run_args)) => run(RunLine { job: run_args.job, apps: vec![run_args.app] }),
        Err(error) => refused(error.into(), as_json),
    }
}

fn called_as(name: &str, args: Vec<OsString>) -> u8 {
    let timeout = std::env::var_os("MPIEXEC_TIMEOUT");
    match mpirun::parse(name, args, timeout.as_deref()) {
        Ok(Invocation::Run(line)) => run(*line),
        Ok(Invocation::Help(text) | Invocation::Version(text)) => {
            finish(cmd::print(&format!("{text}\n")), false)
        }
        Err(failure) => finish(Err(failure), false),
    }
}

fn run(line: RunLine) -> u8 {
    let as_json = line.job.json;
    finish(cmd::run::run(line), as_json)
}

fn finish(result: Result<u8, Failure>, as_json: bool) -> u8 {
    result.unwrap_or_else(|failure| {
        hint::say(&hint::failure(&failure, as_json));
        failure.exit_code
    })
}

fn refused(refusal: Refusal, as_json: bool) -> u8 {
    match refusal {
        Refusal::Failure(failure) => finish(Err(failure), as_json),
        Refusal::Help(help) => match help.print() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                finish(Err(Failure::new("cannot write the help").because(error)), as_json)
            }
            _ if help.use_stderr() => EXIT_USAGE,
            _ => 0,
        },
    }
}

const ENOUGH_STACK: usize = 8 << 20;
/// The exit code of Rust programs after a panic.
const EXIT_PANIC: u8 = 101;

//! `px dvm`: a persistent DVM. `start` is a launcher without a job: tools connect to it and have it run theirs.
//!
//! A DVM has no terminal: output without a reader, because the tool that wanted it has left, is dropped here, unless the spawn wants it in files.

use std::time::{Duration, Instant};

use phalanx_core::output::{Channel, Stream, Style};
use phalanx_dvm::{Limits, Report, Rules};
use phalanx_node::{
    Inherited, Machine, RootOptions, Running, Session, SessionOptions, SignalEvent, Signals, block_on,
};
use phalanx_shell::rendezvous::system_directory;
use pmix::{Info, ProcId, keys};
use serde_json::json;

use crate::args::dvm::{DvmStartArgs, DvmStopArgs};
use crate::cmd::run::user;
use crate::failure::{EXIT_SIGHUP, Failure};
use crate::keepalive::Keepalive;
use crate::origin::Origin;
use crate::output::Output;
use crate::render::hint;
use crate::resolve::{self, Here, Hosts, Serve};
use crate::tool::choice::{self, Requirement};
use crate::{background, tool};

mod pauses;
mod status;

use pauses::Pauses;
pub(crate) use status::status;

/// Runs until it is stopped.
pub(crate) fn start(args: &DvmStartArgs) -> Result<u8, Failure> {
    if args.daemonize && !background::is_here() {
        return match background::start(std::env::args_os().skip(1))? {
            Ok(line) => {
                background::remark().iter().for_each(|text| hint::say(&hint::note(text, args.json)));
                super::print(&line)
            }
            Err(code) => Ok(code),
        };
    }
    if background::is_here() {
        background::enter()?;
    }
    let inherited = Inherited::take()?;
    let here = Here::find()?;
    let hosts = resolve::hosts_of_dvm(args, &here)?;
    let session = Session::begin(&SessionOptions::default())?;
    let origin = Origin::of_environment()?;
    block_on(serve(args, (&here, hosts), inherited, session, &origin))?
}

async fn serve(
    args: &DvmStartArgs,
    (here, hosts): (&Here, Hosts),
    inherited: Inherited,
    session: Session,
    origin: &Origin,
) -> Result<u8, Failure> {
    let mut signals = Signals::new().map_err(|e| Failure::new("cannot watch for signals").because(e))?;
    let mut keepalive = Keepalive::of_environment(Some(origin));
    let Serve { reach, files, mail } = resolve::serve(&args.serve, here);
    let limits = Limits { ended_jobs: args.keep_jobs, ..hosts.limits() };
    let mut running = Running::root(RootOptions {
        inherited,
        session,
        machine: Machine::read()?,
        slots: hosts.slots,
        max_slots: hosts.max_slots,
        takes_ranks: hosts.takes_ranks,
        fleet: hosts.fleet,
        networks: hosts.networks,
        reach,
        rendezvous_files: files,
        system_dir: args.system_server.then(system_directory),
        env: resolve::inherited(&here.env),
        lasts: true,
        rules: Rules {
            steer: args.steer.into(),
            provision: args.provision_command.as_deref().map(Into::into),
            mail: mail.map(Into::into),
            unheard: background::is_here(),
        },
        limits,
    })
    .map_err(|error| match args.system_server {
        true => {
            Failure::from(error).hint("a machine has one system server; commands find it with '--system'")
        }
        false => error.into(),
    })?;
    let handle = running.handle.clone();
    let mut pauses = Pauses::of(&handle);
    if let Some(end) = until_ready(&mut running, &mut signals, &mut pauses, &mut keepalive, args.json).await?
    {
        running.finish().await?;
        return Ok(end);
    }
    handle.announce().await.map_err(|error| super::unfindable("cannot start the DVM", &error))?;
    let name = running.name.as_str();
    let line = match args.json {
        true => json!({ "type": "ready", "nspace": name, "pid": std::process::id() }).to_string(),
        false => format!("{name} is ready"),
    };
    match background::is_here() {
        true => background::stand(&line)?,
        false => drop(super::print(&format!("{line}\n"))?),
    }
    origin.ready(name, &running.uri);
    let mut output = Output::new(Style { file_only: true, ..Style::default() }, None);
    let mut code = 0;
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                // Other signals are ways to stop a DVM. A hang-up is not: the terminal has gone on its own.
                if signal == SignalEvent::Hangup {
                    code = EXIT_SIGHUP;
                }
                pauses.on_signal(signal).await;
                if signal.is_wish_to_end() {
                    let _ = handle.shutdown().await;
                }
            }
            () = keepalive.lost() => {
                let _ = handle.shutdown().await;
            }
            // Readers of its messages may stop or leave; the DVM goes on.
            _ = output.flush(), if !output.is_empty() => {}
            report = running.reports.recv() => match report {
                Some(report) => {
                    pauses.on_report(&report).await;
                    if let Err(failure) = take(report, &mut output, args.json) {
                        say(&mut output, &hint::failure(&failure, args.json));
                    }
                }
                None => break,
            },
            stopped = pauses.stop() => if let Err(error) = stopped {
                say(&mut output, &hint::note(&format!("cannot stop: {error}"), args.json));
            },
        }
    }
    let _ = tokio::time::timeout(LAST_WORDS, output.flush()).await;
    running.finish().await?;
    Ok(code)
}

/// Waits until all daemons are up. Returns the exit code if the DVM ended before.
async fn until_ready(
    running: &mut Running,
    signals: &mut Signals,
    pauses: &mut Pauses<'_>,
    keepalive: &mut Keepalive<'_>,
    as_json: bool,
) -> Result<Option<u8>, Failure> {
    let mut end = None;
    let mut failure = None;
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                pauses.on_signal(signal).await;
                if signal.is_wish_to_end() {
                    end = Some(if signal == SignalEvent::Hangup { EXIT_SIGHUP } else { 0 });
                    let _ = running.handle.shutdown().await;
                }
            }
            () = keepalive.lost() => {
                end = Some(0);
                let _ = running.handle.shutdown().await;
            }
            report = running.reports.recv() => match report {
                Some(Report::Ready) if end.is_none() => return Ok(None),
                Some(Report::NotReady { error }) => {
                    failure = Some(Failure::told(&error));
                    let _ = running.handle.shutdown().await;
                }
                Some(Report::Note { text, .. }) => hint::say(&hint::note(&text, as_json)),
                // It was stopped meanwhile.
                Some(Report::Ready) => {}
                // Progress. Jobs wait until the DVM is up.
                Some(
                    Report::Starting { .. }
                    | Report::Refused { .. }
                    | Report::Accepted { .. }
                    | Report::Progress { .. }
                    | Report::Spawned { .. }
                    | Report::Output { .. }
                    | Report::OutputEnd { .. }
                    | Report::Logged { .. }
                    | Report::Ending { .. }
                    | Report::Ended(_),
                ) => {}
                None => break,
            },
            stopped = pauses.stop() => if let Err(error) = stopped {
                hint::say(&hint::note(&format!("cannot stop: {error}"), as_json));
            },
        }
    }
    failure.map_or(Ok(end), Err)
}

/// Of output, only what a spawn wants in files.
fn take(report: Report, output: &mut Output, as_json: bool) -> Result<(), Failure> {
    let now = Instant::now();
    match report {
        Report::Note { text, .. } => say(output, &hint::note(&text, as_json)),
        Report::Spawned { nspace, placed, info, .. } => {
            output.add_job(&nspace, user::hosts(&placed), &info, true)?;
        }
        Report::Output { proc, pid, channel, data } => {
            output.data(now, (&Stream { proc, channel: Channel::of(channel) }, pid), &data);
        }
        Report::OutputEnd { proc, channel } => {
            output.end(now, &Stream { proc, channel: Channel::of(channel) });
        }
        Report::Logged { proc, channel, text } if output.has_files_of(&proc.nspace) => {
            output.aside(now, &Stream { proc, channel: Channel::of(channel) }, &text);
        }
        // The process wants this to be read, so a copy without a reader goes to the user that runs the DVM.
        Report::Logged { proc, text, .. } => {
            for line in String::from_utf8_lossy(&text).lines() {
                say(output, &hint::note(&format!("{proc} logs: {line}"), as_json));
            }
        }
        Report::Ended(end) => output.forget_job(&end.nspace),
        // Requesters get an answer instead, and the DVM's own start is over.
        Report::Starting { .. }
        | Report::Ready
        | Report::NotReady { .. }
        | Report::Refused { .. }
        | Report::Accepted { .. }
        | Report::Progress { .. }
        | Report::Ending { .. } => {}
    }
    output.take_trouble().map_or(Ok(()), Err)
}

/// Messages without a reader are not kept without end: those that do not fit are dropped.
fn say(output: &mut Output, text: &str) {
    if !output.is_full() {
        output.say(text);
    }
}

/// Asks a server to end; servers of others as OpenPMIx's tools do, without a target. Without a server named, only a DVM is ended.
pub(crate) fn stop(args: &DvmStopArgs) -> Result<u8, Failure> {
    let tool = tool::attach(&choice::only_one(&args.server, Requirement::Dvm)?, args.json)?;
    let servers = tool.servers().map_err(|error| tool::failed("cannot stop the server", &error))?;
    let server = servers.first().ok_or_else(|| Failure::new("cannot stop a server without one"))?;
    let name = &server.server.nspace;
    let lasts = choice::lasts(&tool);
    if lasts == Some(false) && !tool::names_any(&args.server) {
        return Err(Failure::new(format!("the server of this rank, {name}, is no DVM that lasts"))
            .hint("it ends with its job; --pid and --nspace name another server"));
    }
    // From a rank, a request without a target would mean its own job. Only our servers accept their own name as target.
    let targets = lasts.map(|_| ProcId::all(name));
    let asked = tool.job_control(targets.as_slice(), &[Info::new(keys::JOB_CTRL_TERMINATE, true)]);
    match asked {
        Ok(_) => Ok(0),
        // Some servers end before they have answered.
        Err(error) if tool::is_lost(&error) && tool::ends(&server.uri, PATIENCE) => {
            let text = format!("{name} has stopped; it closed the connection without an answer");
            hint::say(&hint::note(&text, args.json));
            Ok(0)
        }
        Err(error) => Err(tool::failed("cannot stop the server", &error)),
    }
}

/// How long the reader of a DVM has to take its last notes.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a server that has closed the connection may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

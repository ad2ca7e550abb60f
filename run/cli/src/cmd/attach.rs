//! `px attach`: shows the output of a running job; with `--stdin` it also sends input.
//!
//! Output is written on the thread that reads it: a slow terminal slows the ranks down, and nothing is lost. Leaving does not harm the job.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use phalanx_dvm::Ranges;
use phalanx_spec::Rank;
use phalanx_wire::cmd::iof::DROPPED;
use pmix::{Event, Info, InfoList, IofChannel, Nspace, ProcId, Status, Tool, Value, Verdict, keys};

use crate::args::tools::AttachArgs;
use crate::detached::{self, Kept};
use crate::failure::{EXIT_SIGPIPE, Failure};
use crate::render::hint;
use crate::tool::{
    self,
    input::Reading,
    job::{ask, check_ranks, procs, size, target},
};

/// Why there is nothing more to show.
enum End {
    /// The stream of a rank has ended.
    Stream(u32, IofChannel),
    Unwritable(io::Error),
    ServerLost,
}

pub(crate) fn run(args: &AttachArgs) -> Result<u8, Failure> {
    let (nspace, wanted) = target(&args.job)?;
    if !args.redirect
        && !tool::names_any(&args.server)
        && let Some(kept) = detached::find(nspace.as_str())
        && (wanted.is_none() || kept.tells_ranks())
    {
        return show_kept(args, &nspace, wanted, &kept);
    }
    let tool = Arc::new(tool::attach_for(&args.server, &nspace, args.json)?);
    let size = size(&tool, &nspace)?;
    let wanted = wanted.unwrap_or_else(|| (0..size).collect());
    let procs = procs(&nspace, size, &wanted)?;
    let (told, ends) = mpsc::channel();
    watch_server(&tool, told.clone())?;
    let directives = directives(args);
    let as_json = args.json;
    let pulled = tool.iof_pull(&procs, OUTPUT, &directives, move |from, channel, data, info| {
        if let Some(bytes) = info.find(DROPPED).and_then(Value::as_u64) {
            hint::say(&hint::note(&missing(from.rank, channel, bytes), as_json));
        }
        let end = match (data.is_empty(), write(channel, data)) {
            (true, _) => End::Stream(from.rank.0, channel),
            (false, Ok(())) => return,
            (false, Err(error)) => End::Unwritable(error),
        };
        let _ = told.send(end);
    });
    pulled.map_err(|error| not_taken(&tool, &nspace, &error))?;
    let input = if args.stdin { Some(read_input(&tool, procs, args.json)?) } else { None };
    let ended = wait(&ends, &wanted)?;
    if let Some(input) = input.filter(|_| ended == 0) {
        input.finish();
    }
    Ok(ended)
}

/// A detached job: its launcher keeps the output in files.
fn show_kept(args: &AttachArgs, nspace: &Nspace, wanted: Option<Ranges>, kept: &Kept) -> Result<u8, Failure> {
    if let (Some(wanted), Some(size)) = (&wanted, kept.ranks) {
        check_ranks(nspace, size, wanted)?;
    }
    let input = if args.stdin { feed_kept(args, nspace, wanted.as_ref(), kept)? } else { None };
    let shown = kept.show(args.since_start, wanted.as_ref(), args.json);
    drop(input);
    shown
}

/// Sends our standard input to a detached job. None: it has ended.
fn feed_kept(
    args: &AttachArgs,
    nspace: &Nspace,
    wanted: Option<&Ranges>,
    kept: &Kept,
) -> Result<Option<(Reading, Arc<Tool>)>, Failure> {
    if kept.ends_within(Duration::ZERO) {
        return Ok(None);
    }
    let feed = || {
        let tool = Arc::new(tool::attach(&kept.server(&args.server), args.json)?);
        let procs = match wanted {
            Some(wanted) => procs(nspace, size(&tool, nspace)?, wanted)?,
            None => vec![ProcId::all(nspace)],
        };
        Ok((read_input(&tool, procs, args.json)?, tool))
    };
    match feed() {
        // A launcher's server ends before the end of its job is recorded.
        Err(_) if kept.ends_within(ENDING) => Ok(None),
        fed => fed.map(Some),
    }
}

/// Waits until every stream has ended, the server is gone, or our output has no reader.
fn wait(ends: &mpsc::Receiver<End>, wanted: &Ranges) -> Result<u8, Failure> {
    let both = |rank| [(rank, IofChannel::STDOUT.0), (rank, IofChannel::STDERR.0)];
    let mut open: BTreeSet<(u32, u16)> = wanted.iter().flat_map(both).collect();
    while !open.is_empty() {
        match ends.recv() {
            Ok(End::Stream(rank, channel)) => {
                open.retain(|(of, bit)| *of != rank || channel.0 & bit == 0);
            }
            Ok(End::Unwritable(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(EXIT_SIGPIPE),
            Ok(End::Unwritable(error)) => return Err(Failure::new("cannot write output").because(error)),
            // A launcher ends with its job.
            Ok(End::ServerLost) | Err(_) => break,
        }
    }
    Ok(0)
}

fn watch_server(tool: &Tool, told: mpsc::Sender<End>) -> Result<(), Failure> {
    let lost = move |_: &Event, _: &[Info]| {
        let _ = told.send(End::ServerLost);
        Verdict { status: Status::SUCCESS, results: Vec::new() }
    };
    tool.register_event_handler(&[Status::ERR_LOST_CONNECTION], &[], lost)
        .map(drop)
        .map_err(|error| tool::failed("cannot watch the server", &error))
}

fn directives(args: &AttachArgs) -> Vec<Info> {
    let mut directives = Vec::new();
    if !args.redirect {
        directives.push(Info::new(keys::IOF_COPY, true));
    }
    if args.since_start {
        // All that the server has.
        directives.push(Info::new(keys::IOF_CACHE_SIZE, u32::MAX));
    }
    directives
}

/// The server has kept nothing of what came between the output before and after.
fn missing(rank: Rank, channel: IofChannel, bytes: u64) -> String {
    let channel = if channel == IofChannel::STDOUT { "output" } else { "error" };
    format!(
        "{bytes} bytes of rank {rank}'s standard {channel} are missing here: the server kept only part of it"
    )
}

fn write(channel: IofChannel, data: &[u8]) -> io::Result<()> {
    match channel == IofChannel::STDOUT {
        true => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(data).and_then(|()| stdout.flush())
        }
        false => io::stderr().lock().write_all(data),
    }
}

/// Sends our standard input to the ranks beside the output. Its end reaches them, too.
fn read_input(tool: &Arc<Tool>, procs: Vec<ProcId>, as_json: bool) -> Result<Reading, Failure> {
    let failed = move |error: &pmix::Error| {
        let failure = tool::failed("cannot send standard input to the job", error);
        hint::say(&hint::failure(&failure, as_json));
    };
    Reading::begin(tool, procs, failed)
        .map_err(|error| Failure::new("cannot read standard input").because(error))
}

/// Why no output is available.
fn not_taken(tool: &Tool, nspace: &Nspace, error: &pmix::Error) -> Failure {
    let ended = ask(tool, nspace, keys::EXIT_CODE).ok().and_then(|info| {
        let code = info.find(keys::EXIT_CODE).and_then(Value::as_i64);
        code.filter(|_| error.status() == Status::ERR_NOT_FOUND)
    });
    match ended {
        Some(code) => Failure::new(format!("job {nspace} has ended with code {code}"))
            .hint("'px run --detach' keeps what a job writes for 'px attach'"),
        None => tool::failed(&format!("cannot take the output of job {nspace}"), error),
    }
}

/// How long after its server a launcher may record the end of its job.
const ENDING: Duration = Duration::from_secs(2);
const OUTPUT: IofChannel = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0);

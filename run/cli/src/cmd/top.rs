//! `px top`: what the ranks of a job use and wait for, again and again.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use phalanx_dvm::{Ranges, names};
use phalanx_wire::plain;
use pmix::{DataArray, Info, InfoList, Nspace, Query, Status, Tool, Value, keys};

use crate::args::tools::{TopArgs, TopSort};
use crate::failure::Failure;
use crate::render::ps::Rank;
use crate::render::top::{Line, Sample};
use crate::render::{hint, value, words};
use crate::tool::{self, job};

pub(crate) fn run(args: &TopArgs) -> Result<u8, Failure> {
    let (tool, nspace, ranks) = job::attach(&args.of)?;
    let is_screen = std::io::stdout().is_terminal() && !args.of.json;
    let most = args.count.or((!is_screen).then_some(1));
    let mut before = Times::new();
    let mut shown = 0;
    loop {
        let mut sample = match sample(&tool, &nspace, ranks.as_ref(), &mut before)? {
            Seen::Sample(sample) => sample,
            Seen::Ended(what) if shown == 0 => {
                return Err(Failure::new(format!("{what} has ended")).hint("'px ps --all' shows the jobs"));
            }
            Seen::Ended(what) => {
                hint::say(&hint::note(&format!("{what} has ended"), args.of.json));
                return Ok(0);
            }
        };
        sort(&mut sample.lines, args.sort);
        match (args.of.json, is_screen) {
            (true, _) => super::print(&format!("{}\n", sample.json()))?,
            (false, true) => show(&sample.text(rows().map(|rows| rows.saturating_sub(1))))?,
            (false, false) => super::print(&sample.text(None))?,
        };
        shown += 1;
        if most.is_some_and(|most| shown >= most) {
            return Ok(0);
        }
        thread::sleep(args.interval);
    }
}

/// Processor time of each rank at its last sample.
type Times = BTreeMap<u32, (Instant, Duration)>;

enum Seen {
    Sample(Sample),
    /// The job, or its server.
    Ended(String),
}

fn sample(tool: &Tool, nspace: &Nspace, ranks: Option<&Ranges>, before: &mut Times) -> Result<Seen, Failure> {
    let keys = [names::RANKS, keys::QUERY_PROC_RESOURCE_USAGE, names::WAITS, names::JOBS];
    let query = Query {
        keys: keys.map(Into::into).into(),
        qualifiers: vec![Info::new(keys::NSPACE, nspace.as_str())],
    };
    let info = match tool.query(&[query]) {
        Ok(info) => info,
        Err(error) if [Status::ERR_LOST_CONNECTION, Status::ERR_UNREACH].contains(&error.status()) => {
            return Ok(Seen::Ended(format!("the server of job {nspace}")));
        }
        Err(error) => {
            let failure = tool::failed(&format!("the server does not show what job {nspace} uses"), &error);
            return Err(failure.hint("only servers of px show it"));
        }
    };
    if info.find(keys::QUERY_PROC_RESOURCE_USAGE).is_none() {
        return Ok(Seen::Ended(format!("job {nspace}")));
    }
    let now = Instant::now();
    let usages = value::records(&info, keys::QUERY_PROC_RESOURCE_USAGE);
    let usages: BTreeMap<u32, &DataArray> =
        usages.iter().filter_map(|usage| Some((rank_of(usage)?, usage))).collect();
    let waits = value::records(&info, names::WAITS);
    let records = value::records(&info, names::RANKS);
    let wanted = |rank: &Rank| ranks.is_none_or(|ranks| ranks.contains(rank.rank));
    let lines = records.iter().map(Rank::from_record).filter(wanted).map(|rank| {
        let mut line = Line { waits: wait_of(&waits, nspace, rank.rank), ..Line::of(rank) };
        if let Some(usage) = usages.get(&line.rank.rank) {
            measure(&mut line, usage, (now, before));
        }
        line
    });
    let lines = lines.collect();
    let about = value::records(&info, names::JOBS);
    let named = |about: &&DataArray| {
        value::find(about, keys::NSPACE).and_then(Value::as_str) == Some(nspace.as_str())
    };
    let age = about.iter().find(named).and_then(|about| value::find(about, names::AGE)?.as_u64());
    let age = age.map(Duration::from_millis);
    Ok(Seen::Sample(Sample { job: nspace.to_string(), age, lines }))
}

fn rank_of(usage: &DataArray) -> Option<u32> {
    Some(value::find(usage, keys::PROCID)?.as_proc()?.rank.0)
}

/// Since the last sample, or at the first one over the whole life.
fn measure(line: &mut Line, usage: &DataArray, (now, before): (Instant, &mut Times)) {
    let number = |key| value::find(usage, key).and_then(Value::as_f64);
    // In megabytes.
    line.memory = number(keys::PROC_RSS).map(|memory| (memory * 1024.0 * 1024.0) as u64);
    line.threads = value::find(usage, keys::PROC_NUM_THREADS).and_then(Value::as_u64);
    line.percent = number(keys::PROC_PERCENT_CPU);
    let Some(Value::Timeval(time)) = value::find(usage, keys::PROC_TIME) else { return };
    let time = Duration::new(time.sec.unsigned_abs(), 0) + Duration::from_micros(time.usec.unsigned_abs());
    line.time = Some(time);
    if let Some((then, used)) = before.insert(line.rank.rank, (now, time))
        // A rank that was started again begins at nothing.
        && let Some(more) = time.checked_sub(used)
    {
        line.percent = Some(100.0 * more.as_secs_f64() / now.duration_since(then).as_secs_f64().max(0.001));
    }
}

/// The longest wait of a rank: `fence 12 s, for rank 3`.
fn wait_of(waits: &[DataArray], nspace: &Nspace, rank: u32) -> Option<(String, Duration)> {
    let ranks_of = |wait: &DataArray, key| -> Vec<u32> {
        let procs = value::find(wait, key).and_then(Value::as_array).map(|procs| &procs.items);
        let procs = procs.into_iter().flatten().filter_map(Value::as_proc);
        procs.filter(|proc| proc.nspace == *nspace).map(|proc| proc.rank.0).collect()
    };
    let own = waits.iter().filter(|wait| ranks_of(wait, names::ASKED_BY).contains(&rank));
    let all = own.map(|wait| {
        let operation = value::find(wait, names::OPERATION).and_then(Value::as_str).unwrap_or_default();
        let age = value::find(wait, names::AGE).and_then(Value::as_u64).unwrap_or(0);
        let missing = ranks_of(wait, names::MISSING);
        let text = match missing.is_empty() {
            true => operation.to_owned(),
            false => format!("{operation} for {}", words::ranks(&missing)),
        };
        (text, Duration::from_millis(age))
    });
    all.max_by_key(|(_, age)| *age)
}

fn sort(lines: &mut [Line], by: TopSort) {
    match by {
        TopSort::Rank => {}
        TopSort::Cpu => {
            lines.sort_by(|a, b| b.percent.partial_cmp(&a.percent).unwrap_or(std::cmp::Ordering::Equal))
        }
        TopSort::Memory => lines.sort_by_key(|line| std::cmp::Reverse(line.memory)),
        TopSort::Time => lines.sort_by_key(|line| std::cmp::Reverse(line.time)),
        TopSort::Wait => {
            lines.sort_by_key(|line| std::cmp::Reverse(line.waits.as_ref().map(|(_, age)| *age)))
        }
    }
}

/// Replaces what the terminal shows.
fn show(text: &str) -> Result<u8, Failure> {
    let mut stdout = std::io::stdout().lock();
    let screen = format!("\x1b[H\x1b[J{}", plain::lines(text));
    match stdout.write_all(screen.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) => Err(Failure::new("cannot write to the terminal").because(error)),
        Ok(()) => Ok(0),
    }
}

fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

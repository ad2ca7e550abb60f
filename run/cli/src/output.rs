//! The output of the ranks, on its way to where the user wants it.
//!
//! Bytes arrive as the node reports them; the core's [`Lines`] keep ranks apart, its formatter dresses lines, [`FileSet`]s and the node's [`Sink`]s
//! take the result. Nothing here waits except [`Output::flush`]. The caller must not add more while [`Output::is_full`], so that a slow reader of px
//! slows the ranks down instead of filling px.

pub(crate) mod plan;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phalanx_core::Time;
use phalanx_core::output::{
    self as format, Channel, Files, Form, Lines, MOST_HELD, Rules, Segment, Source, Stream, Style, Tag,
};
use phalanx_node::Sink;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::detached::Noted;
use crate::failure::Failure;
use phalanx_shell::files::{FileSet, FileTrouble, Outlet};

/// The output of one run.
#[derive(Debug)]
pub(crate) struct Output {
    context: Context,
    /// Standard output, and standard error unless both are the same file or the form is one document.
    lanes: Vec<Lane>,
    /// Standard error for px's own messages, if no lane has it.
    own: Option<Sink>,
    /// Files of the job that px started, and of other jobs that have their own.
    files: Option<FileSet>,
    others: BTreeMap<Nspace, FileSet>,
    began: Instant,
    /// The first error of files that were closed.
    trouble: Option<Failure>,
    /// The process that wrote first.
    first: Option<ProcId>,
    /// Whether the beginning of the document has been written.
    opened: bool,
    /// Output goes to files: what cannot be written is counted.
    is_kept: bool,
}

/// What the formatter needs to know.
#[derive(Debug)]
struct Context {
    style: Style,
    /// The host of each rank of the job.
    hosts: Vec<Arc<str>>,
    rank_width: usize,
    /// The number of the job that px started.
    first_job: u32,
    /// Spawned jobs with a style or hosts of their own.
    spawned: BTreeMap<Nspace, Spawned>,
    /// Pids of processes that have written, if pids are shown.
    pids: BTreeMap<ProcId, u32>,
}

#[derive(Debug)]
struct Spawned {
    style: Style,
    hosts: Vec<Arc<str>>,
}

/// Streams that must not mix, because one reader sees them together.
#[derive(Debug)]
struct Lane {
    lines: Lines,
    /// Destinations of [`Segment`]s, by channel. None once its reader is gone.
    sinks: [Option<Sink>; 2],
    /// Records the ranks of bytes, if that is wanted.
    noted: [Option<Noted>; 2],
    /// Both channels go to the first sink.
    merged: bool,
    /// The sink that the last piece went to: a break follows it there.
    last: Channel,
}

impl Output {
    /// Output to px's standard output and standard error, for a job of `ranks` ranks if that is known already.
    pub(crate) fn new(style: Style, ranks: Option<u32>) -> Output {
        let solo = style.raw || (ranks == Some(1) && !style.marks_lines());
        let (stdout, stderr) = (Sink::stdout(), Sink::stderr());
        let one_reader = stdout.is_same_file(&stderr);
        let rules = |sink: &Sink| Rules {
            solo,
            opens: style.form == Form::Text,
            prompt_after: match (sink.is_terminal(), style.form) {
                (true, _) => Some(PROMPT_AFTER),
                (false, Form::Text) => None,
                (false, _) => Some(PIECE_AFTER),
            },
            patience: if sink.is_terminal() { PATIENCE_ON_TERMINAL } else { PATIENCE },
            most_held: MOST_HELD,
        };
        let (on_stdout, on_stderr) = (rules(&stdout), rules(&stderr));
        let merged = style.merge || style.is_document() || one_reader;
        let lane = |sinks, rules| Lane {
            lines: Lines::new(rules),
            sinks,
            noted: [None, None],
            merged,
            last: Channel::Stdout,
        };
        let mut lanes = vec![lane([Some(stdout), None], on_stdout)];
        let mut own = None;
        match merged {
            false => lanes.push(lane([None, Some(stderr)], on_stderr)),
            // What one reader sees needs one order and so one buffer; but a document must hold nothing else.
            true if one_reader && !style.is_document() => {}
            true => own = Some(stderr),
        }
        let files = style.files.clone().map(|files| FileSet::new(files).taking_pipes());
        let rank_width = digits(ranks.unwrap_or(1));
        let context = Context {
            style,
            hosts: Vec::new(),
            rank_width,
            first_job: 1,
            spawned: BTreeMap::new(),
            pids: BTreeMap::new(),
        };
        let (others, began) = (BTreeMap::new(), Instant::now());
        let (trouble, first) = (None, None);
        Output { context, lanes, own, files, others, began, trouble, first, opened: false, is_kept: false }
    }

    /// Standard output and standard error are files of ours, for later reading. What cannot be written to them is counted as undelivered.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// The job's name, and the host of each rank.
    pub(crate) fn set_job(&mut self, nspace: &Nspace, hosts: Vec<Arc<str>>) {
        self.context.first_job = number(nspace).unwrap_or(1);
        self.context.rank_width = digits(u32::try_from(hosts.len()).unwrap_or(u32::MAX));
        self.context.hosts = hosts;
    }

    pub(crate) fn ranks(&self) -> usize {
        self.context.hosts.len()
    }

    /// Records from now on which bytes of standard output and standard error, which are files, are from which rank.
    pub(crate) fn note_ranks(&mut self, noted: [Noted; 2]) {
        for (number, noted) in noted.into_iter().enumerate() {
            let lane = self.lanes.iter_mut().find(|lane| lane.sinks[number].is_some());
            if let Some(lane) = lane {
                lane.noted[number] = Some(noted);
            }
        }
    }

    /// Adds a spawned job, with the output directives of its spawn. `elsewhere`: a tool shows its output.
    pub(crate) fn add_job(
        &mut self,
        nspace: &Nspace,
        hosts: Vec<Arc<str>>,
        info: &[Info],
        elsewhere: bool,
    ) -> Result<(), Failure> {
        let own = &self.context.style;
        let bad = |bad: format::BadPattern| Failure::new(format!("output of job {nspace}")).because(bad);
        let mut style = own.clone().overlaid(info).map_err(bad)?;
        if own.is_document() {
            // Its output goes into the same document.
            style.form = own.form;
        }
        style.file_only |= elsewhere;
        let files = match style.files == own.files {
            true => own.files.as_ref().and_then(Files::with_nspace),
            false => style.files.clone(),
        };
        if let Some(files) = files {
            self.others.insert(nspace.clone(), FileSet::new(files));
        }
        self.context.spawned.insert(nspace.clone(), Spawned { style, hosts });
        Ok(())
    }

    /// Whether this job's output goes to files of its own.
    pub(crate) fn has_files_of(&self, nspace: &Nspace) -> bool {
        self.others.contains_key(nspace)
    }

    pub(crate) fn forget_job(&mut self, nspace: &Nspace) {
        self.context.spawned.remove(nspace);
        if let Some(mut files) = self.others.remove(nspace) {
            files.finish();
            self.trouble = self.trouble.take().or_else(|| files.take_trouble().map(unwritten));
        }
    }

    pub(crate) fn data(&mut self, now: Instant, source: (&Stream, Option<u32>), data: &[u8]) {
        let (stream, now) = (source.0, self.time(now));
        if self.first.get_or_insert_with(|| stream.proc.clone()) != &stream.proc && !self.context.style.raw {
            self.lanes.iter_mut().for_each(|lane| lane.lines.no_longer_solo());
        }
        self.step(
            source,
            |source, channel, files| files.data(now, source, channel, data),
            |lines, emit| {
                lines.data(now, stream, data, emit);
            },
        );
    }

    /// Whole lines that are not part of the stream but are shown in its place.
    pub(crate) fn aside(&mut self, now: Instant, stream: &Stream, text: &[u8]) {
        let now = self.time(now);
        self.step(
            (stream, None),
            |source, channel, files| files.data(now, source, channel, text),
            |lines, emit| lines.aside(stream, text, emit),
        );
    }

    /// A stream has ended.
    pub(crate) fn end(&mut self, now: Instant, stream: &Stream) {
        let now = self.time(now);
        self.step(
            (stream, None),
            |source, channel, files| files.end(now, source, channel),
            |lines, emit| {
                lines.end(now, stream, emit);
            },
        );
    }

    /// Prints a message of px on standard error, on lines of its own.
    pub(crate) fn say(&mut self, text: &str) {
        self.say_over(text);
        self.say_over("\n");
    }

    /// Writes `text` to standard error as it is, at the beginning of a line.
    pub(crate) fn say_over(&mut self, text: &str) {
        match &mut self.own {
            Some(sink) => sink.say(text.as_bytes()),
            None => {
                if let Some(lane) = self.lanes.last_mut() {
                    lane.run(&self.context, |lines, emit| lines.interrupt(emit));
                    if let [_, Some(sink)] | [Some(sink), None] = &mut lane.sinks {
                        sink.say(text.as_bytes());
                    }
                }
            }
        }
    }

    /// Writes `text` to standard output as it is.
    pub(crate) fn print(&mut self, text: &str) {
        if let Some(lane) = self.lanes.first_mut() {
            lane.push(Channel::Stdout, text.as_bytes());
        }
    }

    /// Shows prompts and ends waits that are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        let now = self.time(now);
        for lane in &mut self.lanes {
            if lane.sinks().any(is_full) {
                lane.lines.hold_off(now);
            }
            lane.run(&self.context, |lines, emit| lines.tick(now, emit));
        }
    }

    /// When [`Output::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let first = self.lanes.iter().filter_map(|lane| lane.lines.deadline()).min()?;
        Some(self.began + first.since(Time::default()))
    }

    /// Nothing more comes: releases everything that is held back.
    pub(crate) fn finish(&mut self) {
        self.each_lane(|lines, emit| lines.finish(emit));
        let marked = self.context.style.marks_lines();
        for lane in &mut self.lanes {
            if marked && lane.lines.is_open() {
                lane.end_line();
            }
        }
        if !self.context.style.file_only {
            self.open_document();
            if let Some(lane) = self.lanes.first_mut() {
                lane.push(Channel::Stdout, format::closing(self.context.style.form).as_bytes());
            }
        }
        self.files.iter_mut().chain(self.others.values_mut()).for_each(FileSet::finish);
    }

    /// Whether px's messages go to a terminal.
    pub(crate) fn has_person(&self) -> bool {
        let voice = self.own.as_ref().or_else(|| self.lanes.last()?.sinks().last());
        voice.is_some_and(Sink::is_terminal)
    }

    /// Whether so much waits for px's readers that no more should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.sinks().any(is_full) || self.files_pending() >= MOST_PENDING
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sinks().all(|sink| sink.pending() == 0) && self.files_pending() == 0
    }

    /// Bytes that readers of pipes among the files have not taken.
    fn files_pending(&self) -> usize {
        self.files.as_ref().map_or(0, FileSet::pending)
    }

    /// Writes what waits. May be cancelled at any time: nothing is lost or written twice. After an error that descriptor is no longer written to.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let after_error = if self.is_kept { AfterError::Count } else { AfterError::Drop };
        self.lanes.iter_mut().try_for_each(|lane| lane.write_notes(after_error))?;
        let places = self.lanes.iter_mut().flat_map(|lane| &mut lane.sinks).chain([&mut self.own]);
        let mut waiting = places.filter(|place| place.as_ref().is_some_and(|sink| sink.pending() > 0));
        let files = flush_files(self.files.as_mut());
        // At most two, standard output and standard error: a reader that blocks one must not block the other.
        match (waiting.next(), waiting.next()) {
            (None, _) => files.await,
            (Some(one), None) => tokio::try_join!(flush(one, after_error), files).map(drop),
            (Some(one), Some(other)) => {
                tokio::try_join!(flush(one, after_error), flush(other, after_error), files).map(drop)
            }
        }
    }

    /// The last output follows. Enlarges pipes to hold more of it.
    pub(crate) fn make_room(&self) {
        self.sinks().filter(|sink| sink.pending() > 0).for_each(Sink::make_room);
    }

    /// When the first reader will have taken nothing for `patience`, counted from `since` at the earliest.
    pub(crate) fn patience_over(&self, since: Instant, patience: Duration) -> Option<Instant> {
        // Data that has just been added has not been tried yet.
        let waiting = self.sinks().filter(|sink| sink.pending() > 0);
        let idle = waiting.map(|sink| sink.idle_since().unwrap_or_else(Instant::now));
        let of_files = self.files.as_ref().and_then(FileSet::idle_since);
        Some(idle.chain(of_files).min()?.max(since) + patience)
    }

    /// Gives up readers that have taken nothing since then.
    pub(crate) fn give_up(&mut self, idle_since: Instant) {
        let sinks = self.lanes.iter_mut().flat_map(|lane| &mut lane.sinks).chain([&mut self.own]).flatten();
        sinks.filter(|sink| sink.idle_since().is_some_and(|at| at <= idle_since)).for_each(Sink::give_up);
        self.files.iter_mut().for_each(|files| files.give_up(idle_since));
    }

    /// How many bytes were not taken by readers that were given up.
    pub(crate) fn undelivered(&self) -> u64 {
        let of_files = self.files.as_ref().map_or(0, FileSet::undelivered);
        self.sinks().map(Sink::undelivered).sum::<u64>() + of_files
    }

    /// The first error of a file.
    pub(crate) fn take_trouble(&mut self) -> Option<Failure> {
        let mut sets = self.files.iter_mut().chain(self.others.values_mut());
        self.trouble.take().or_else(|| sets.find_map(FileSet::take_trouble).map(unwritten))
    }

    fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.lanes.iter().flat_map(Lane::sinks).chain(&self.own)
    }

    fn step(
        &mut self,
        (stream, pid): (&Stream, Option<u32>),
        to_files: impl FnOnce(&Source<'_>, Channel, &mut FileSet),
        to_lines: impl FnOnce(&mut Lines, &mut dyn FnMut(Segment<'_>)),
    ) {
        let style = self.context.style(&stream.proc.nspace);
        let (file_only, merge, detailed) = (style.file_only, style.merge, style.tag == Tag::Detailed);
        if let Some(pid) = pid.filter(|_| detailed) {
            self.context.pids.insert(stream.proc.clone(), pid);
        }
        let channel = if merge { Channel::Stdout } else { stream.channel };
        if let Some(files) = self.others.get_mut(&stream.proc.nspace).or(self.files.as_mut()) {
            to_files(&self.context.source(stream), channel, files);
        }
        if file_only {
            return;
        }
        self.open_document();
        let lane = if self.lanes.len() == 2 && channel != Channel::Stdout { 1 } else { 0 };
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.run(&self.context, to_lines);
        }
    }

    fn time(&self, now: Instant) -> Time {
        Time::default().after(now.saturating_duration_since(self.began))
    }

    fn each_lane(&mut self, mut step: impl FnMut(&mut Lines, &mut dyn FnMut(Segment<'_>))) {
        for lane in &mut self.lanes {
            lane.run(&self.context, &mut step);
        }
    }

    fn open_document(&mut self) {
        if !std::mem::replace(&mut self.opened, true)
            && let Some(lane) = self.lanes.first_mut()
        {
            lane.push(Channel::Stdout, format::opening(self.context.style.form).as_bytes());
        }
    }
}

impl Context {
    fn style(&self, nspace: &Nspace) -> &Style {
        self.spawned.get(nspace).map_or(&self.style, |job| &job.style)
    }

    fn source<'a>(&'a self, stream: &'a Stream) -> Source<'a> {
        let proc = &stream.proc;
        let job = number(&proc.nspace).map_or(0, |n| n.wrapping_sub(self.first_job).wrapping_add(1));
        let (hosts, rank_width) = match self.spawned.get(&proc.nspace) {
            Some(job) => (&job.hosts, digits(u32::try_from(job.hosts.len()).unwrap_or(u32::MAX))),
            None => (&self.hosts, self.rank_width),
        };
        // Output of jobs in another process's DVM may arrive before their map.
        let is_known = job == 1 || self.spawned.contains_key(&proc.nspace);
        let host = hosts.get(proc.rank.0 as usize).filter(|_| is_known).map(|host| &**host);
        Source { stream, host, pid: self.pids.get(proc).copied(), job: Some(job), rank_width }
    }
}

impl Lane {
    fn run(&mut self, context: &Context, step: impl FnOnce(&mut Lines, &mut dyn FnMut(Segment<'_>))) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let Lane { lines, sinks, noted, merged, last } = self;
        step(lines, &mut |piece| {
            let (Segment::Text { stream, .. } | Segment::Break { stream, .. }) = piece;
            if let Segment::Text { .. } = piece {
                let on_stdout = *merged || stream.channel == Channel::Stdout;
                *last = if on_stdout { Channel::Stdout } else { Channel::Stderr };
            }
            let Some(sink) = &mut sinks[*last as usize] else { return };
            let source = context.source(stream);
            let buffer = sink.buffer();
            let before = buffer.len();
            let style = context.style(&stream.proc.nspace);
            match piece {
                Segment::Text { bytes, starts, .. } => {
                    format::append(buffer, style, &source, bytes, starts, now);
                }
                // Ranks' output stays unchanged: without marks, only the ranks end lines.
                Segment::Break { aside, .. } if aside || style.marks_lines() => buffer.push(b'\n'),
                Segment::Break { .. } => {}
            }
            if let Some(noted) = &mut noted[*last as usize] {
                let rank = (source.job == Some(1)).then_some(stream.proc.rank.0);
                noted.add(rank, before, buffer.len());
            }
        });
    }

    /// Ends the line that its rank has left open.
    fn end_line(&mut self) {
        let number = self.last as usize;
        let Some(sink) = &mut self.sinks[number] else { return };
        let before = sink.buffer().len();
        sink.buffer().push(b'\n');
        if let Some(noted) = &mut self.noted[number] {
            noted.add_more(before, before + 1);
        }
    }

    /// Writes the records before their bytes; if that fails, the bytes are not written either.
    fn write_notes(&mut self, after_error: AfterError) -> io::Result<()> {
        for (place, noted) in self.sinks.iter_mut().zip(&mut self.noted) {
            if let (Some(sink), Some(notes)) = (&*place, &mut *noted)
                && let Err(error) = notes.write(|| sink.place_of_buffer())
            {
                *noted = None;
                after_error.act(place);
                return Err(error);
            }
        }
        Ok(())
    }

    fn push(&mut self, channel: Channel, bytes: &[u8]) {
        if let Some(sink) = &mut self.sinks[channel as usize] {
            sink.buffer().extend_from_slice(bytes);
        }
    }

    fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.sinks.iter().flatten()
    }
}

/// Whether so much waits for its reader that no more should be added.
fn is_full(sink: &Sink) -> bool {
    sink.pending() >= MOST_PENDING
}

async fn flush(place: &mut Option<Sink>, after_error: AfterError) -> io::Result<()> {
    let Some(sink) = place else { return Ok(()) };
    let written = sink.flush().await;
    if written.is_err() {
        after_error.act(place);
    }
    written
}

/// If all ranks write to one file that is a pipe, the pipe must have a reader now.
pub(crate) fn open_pipe(style: &Style) -> Result<Option<Outlet>, Failure> {
    let Some(path) = style.files.as_ref().and_then(Files::only) else { return Ok(None) };
    let path = Path::new(OsStr::from_bytes(path));
    let cannot = || Failure::new(format!("cannot write output to '{}'", path.display()));
    Outlet::open(path).map_err(|error| cannot().because(error))
}

/// How often a pipe that was full is retried.
const RETRY: Duration = Duration::from_millis(10);

/// Waits until readers of pipes among the files have taken everything.
async fn flush_files(mut files: Option<&mut FileSet>) -> io::Result<()> {
    while let Some(files) = files.as_mut().filter(|files| files.pending() > 0) {
        files.retry();
        if files.pending() > 0 {
            tokio::time::sleep(RETRY).await;
        }
    }
    Ok(())
}

/// What happens to the rest for a descriptor that is no longer written to.
#[derive(Clone, Copy, Debug)]
enum AfterError {
    Drop,
    Count,
}

impl AfterError {
    fn act(self, place: &mut Option<Sink>) {
        match (self, &mut *place) {
            (AfterError::Count, Some(sink)) => sink.give_up(),
            _ => *place = None,
        }
    }
}

fn unwritten(trouble: FileTrouble) -> Failure {
    Failure::new(format!("cannot write output to '{}'", trouble.path.display())).because(trouble.reason)
}

/// The number in a job's name, `DVM@NUMBER`.
fn number(nspace: &Nspace) -> Option<u32> {
    nspace.as_str().rsplit_once('@')?.1.parse().ok()
}

/// The digits of the highest of this many ranks.
fn digits(ranks: u32) -> usize {
    ranks.saturating_sub(1).max(1).ilog10() as usize + 1
}

/// Longer than a program needs between two pieces of one line, shorter than a user notices.
const PROMPT_AFTER: Duration = Duration::from_millis(50);
/// For programs that read the output, a late line is better than pieces.
const PIECE_AFTER: Duration = Duration::from_millis(500);
const PATIENCE_ON_TERMINAL: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(2);
/// Output is taken no further when this many bytes wait for a reader.
const MOST_PENDING: usize = 256 << 10;

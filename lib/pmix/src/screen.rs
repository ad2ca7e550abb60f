//! This process's own standard output and standard error, as the place where output of others is shown.
//!
//! A thread of the screen's own formats the output and writes it, so that a stopped terminal does not stop the library. Its
//! queue is bounded: when it is full, the deliverer of output waits, and in the end the processes that write it.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phalanx_core::Time;
use phalanx_core::output::{
    BUFFER_ATTRIBUTES, Channel, FILE_ATTRIBUTES, FORM_ATTRIBUTES, Held, Moment, OutputFormatter, Owed, Ready,
    Source, Stream, Style, closing, opening,
};
use phalanx_shell::thread;
use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::iof::DRESSED;
use phalanx_wire::{Info, InfoFlags, InfoList, Nspace, ProcId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::engine::OutputDone;
use crate::error::Error;
use phalanx_shell::files::FileSet;

/// Directives of a pull that are honoured when this process shows the output itself.
pub const ATTRIBUTES: &[&[&str]] =
    &[FORM_ATTRIBUTES, FILE_ATTRIBUTES, BUFFER_ATTRIBUTES, &[keys::IOF_LOCAL_OUTPUT]];

/// One of the pulls that carry out a single pull of the program.
#[derive(Debug)]
pub struct Part {
    pub directives: Vec<Info>,
    /// The screen that takes its output, if not the program's callback.
    pub screen: Option<Screen>,
}

/// A place where output is shown. Dropping it writes all earlier output, however long that takes.
#[derive(Debug)]
pub struct Screen {
    to: SyncSender<Word>,
    thread: Option<JoinHandle<()>>,
}

enum Word {
    Output(Shot),
    /// The style unless the directives override it.
    Defaults(Vec<Info>),
    /// From here on the output of this job looks like this.
    Dress(Nspace, Vec<Info>),
    /// To be answered when what came before is written.
    Written(SyncSender<()>),
    End,
}

/// A piece of output.
pub(crate) struct Shot {
    pub(crate) stream: Stream,
    pub(crate) data: Vec<u8>,
    pub(crate) info: Vec<Info>,
    pub(crate) done: OutputDone,
}

impl Part {
    /// This process writes files itself, even if there is a callback, which gets its output in the form that it requests:
    /// files hold the raw output, so they are a separate reader. The last part is the one that the program knows. Output that `is_shown`
    /// without a pull is not shown twice.
    pub fn of(directives: &[Info], has_callback: bool, is_shown: bool) -> Result<Vec<Part>, Error> {
        let names = [keys::IOF_OUTPUT_TO_FILE, keys::IOF_OUTPUT_TO_DIRECTORY];
        let files = names.iter().any(|name| directives.find(name).is_some());
        let alone = directives.is_set(keys::IOF_FILE_ONLY);
        let mut parts = Vec::new();
        if !has_callback || files {
            let mut directives = directives.to_vec();
            if (has_callback || is_shown) && !alone {
                directives.retain(|info| info.key != *keys::IOF_FILE_ONLY);
                directives.push(Info::new(keys::IOF_FILE_ONLY, true));
            }
            let screen = Screen::open(&mut directives)?;
            parts.push(Part { directives, screen: Some(screen) });
        }
        if has_callback && !(files && alone) {
            let of_files = |info: &Info| FILE_ATTRIBUTES.contains(&info.key.as_str());
            let directives = directives.iter().filter(|info| !of_files(info)).cloned().collect();
            parts.push(Part { directives, screen: None });
        }
        Ok(parts)
    }
}

impl Screen {
    /// Opens a screen in the form that the directives request; changes them so that the output is not formatted twice.
    pub fn open(directives: &mut Vec<Info>) -> Result<Screen, Error> {
        let own = take_on(directives, ATTRIBUTES)?;
        let (to, words) = sync_channel(MOST_WAITING);
        let thread = thread::spawn("pmix-screen", move || run(own, &words))
            .map_err(|source| Error::System { doing: "starting the thread that shows output", source })?;
        Ok(Screen { to, thread: Some(thread) })
    }

    /// The handler for each piece of output.
    pub fn handler(&self) -> impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static {
        let to = self.to.clone();
        move |source: &ProcId, channel: IofChannel, data: &[u8], info: &[Info], done: OutputDone| {
            give(&to, Shot::new(source, channel, data, info, done));
        }
    }

    pub(crate) fn show(&self, shot: Shot) {
        give(&self.to, shot);
    }

    /// Changes the form of this job's output from here on.
    pub(crate) fn dress(&self, job: &Nspace, form: Vec<Info>) {
        let _ = self.to.send(Word::Dress(job.clone(), form));
    }

    /// Completes when all earlier output is written; None: the queue is full, and the caller should not wait.
    pub(crate) fn written(&self) -> Option<Receiver<()>> {
        let (tell, told) = sync_channel(1);
        self.to.try_send(Word::Written(tell)).ok().map(|()| told)
    }

    /// To be called to wait until all earlier output is written, for ever if the terminal is stopped: the output of a job is
    /// shown before its end is reported.
    pub(crate) fn waiter(&self) -> impl FnOnce() + use<> {
        let to = self.to.clone();
        move || {
            let (tell, told) = sync_channel(1);
            // A screen that has ended writes nothing more.
            if to.send(Word::Written(tell)).is_ok() {
                let _ = told.recv();
            }
        }
    }

    /// Begins to show output, with the style that the directives may override.
    pub fn begin(&self, defaults: Vec<Info>) {
        let _ = self.to.send(Word::Defaults(defaults));
    }

    /// Like dropping it, without waiting for the last byte.
    pub fn leave(mut self) {
        self.thread = None;
    }
}

impl Shot {
    pub(crate) fn new(
        source: &ProcId,
        channel: IofChannel,
        data: &[u8],
        info: &[Info],
        done: OutputDone,
    ) -> Shot {
        let stream = Stream { proc: source.clone(), channel: Channel::of(channel) };
        Shot { stream, data: data.to_vec(), info: info.to_vec(), done }
    }
}

/// What a screen takes on itself of the directives for some output: of these attributes all, which are changed so that nobody else
/// carries them out, too.
pub(crate) fn take_on(directives: &mut Vec<Info>, attributes: &[&[&str]]) -> Result<Vec<Info>, Error> {
    let mut own = Vec::new();
    for info in directives.iter_mut() {
        if attributes.iter().any(|keys| keys.contains(&info.key.as_str())) {
            own.push(info.clone());
            info.flags |= InfoFlags::REQUIRED_PROCESSED;
        }
    }
    Style::default().overlaid(&own).map_err(|bad| Error::Failed {
        operation: format!("show of output in files: {bad}"),
        status: Status::ERR_BAD_PARAM,
    })?;
    directives.push(Info::new(DRESSED, true));
    Ok(own)
}

/// A screen that was closed shows nothing any more.
fn give(to: &SyncSender<Word>, shot: Shot) {
    if let Err(SendError(Word::Output(shot))) = to.send(Word::Output(shot)) {
        shot.done.refuse();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.to.send(Word::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for the defaults, which come with the answer to the pull, perhaps after its first output.
fn run(own: Vec<Info>, words: &Receiver<Word>) {
    let mut early = Vec::new();
    let defaults = loop {
        match words.recv() {
            Ok(Word::Output(shot)) if early.len() < MOST_EARLY => early.push(shot),
            Ok(Word::Output(shot)) => {
                early.push(shot);
                break Vec::new();
            }
            Ok(Word::Defaults(defaults)) => break defaults,
            Ok(Word::Dress(..) | Word::Written(_)) => {}
            Ok(Word::End) | Err(_) => {
                early.into_iter().for_each(|shot| shot.done.refuse());
                return;
            }
        }
    };
    let style = Style::default().overlaid(&defaults).and_then(|style| style.overlaid(&own));
    let mut writers = Writers { of_all: Writer::new(style.unwrap_or_default()), of_jobs: BTreeMap::new() };
    early.into_iter().for_each(|shot| writers.take(shot));
    writers.run(words);
}

/// One for each form.
struct Writers {
    of_all: Writer,
    /// Those of jobs whose output has a form of its own.
    of_jobs: BTreeMap<Nspace, Writer>,
}

impl Writers {
    fn run(mut self, words: &Receiver<Word>) {
        loop {
            let all = || std::iter::once(&self.of_all).chain(self.of_jobs.values());
            let word = match all().filter_map(Writer::remaining).min() {
                Some(remaining) => words.recv_timeout(remaining),
                None => words.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match word {
                Ok(Word::Output(shot)) => self.take(shot),
                Ok(Word::Defaults(_)) => {}
                Ok(Word::Dress(job, form)) => self.dress(job, &form),
                Ok(Word::Written(tell)) => drop(tell.send(())),
                Err(RecvTimeoutError::Timeout) => {
                    self.of_all.tick();
                    self.of_jobs.values_mut().for_each(Writer::tick);
                }
                Ok(Word::End) | Err(RecvTimeoutError::Disconnected) => {
                    self.of_jobs.into_values().for_each(Writer::end);
                    return self.of_all.end();
                }
            }
        }
    }

    fn take(&mut self, shot: Shot) {
        self.of_jobs.get_mut(&shot.stream.proc.nspace).unwrap_or(&mut self.of_all).take(shot);
    }

    fn dress(&mut self, job: Nspace, form: &[Info]) {
        let style = |writer: &Writer| writer.formatter.style().clone().overlaid(form).unwrap_or_default();
        match self.of_jobs.get_mut(&job) {
            Some(writer) => writer.change(style(writer)),
            None => drop(self.of_jobs.insert(job, Writer::new(style(&self.of_all)))),
        }
    }
}

struct Writer {
    formatter: OutputFormatter,
    files: Option<FileSet>,
    began: Instant,
    opened: bool,
    /// Pieces that have not been shown completely.
    owed: Owed<OutputDone>,
}

impl Writer {
    fn new(style: Style) -> Writer {
        let files = style.files.clone().map(FileSet::new);
        Writer {
            formatter: OutputFormatter::for_screen(style),
            files,
            began: Instant::now(),
            opened: false,
            owed: Owed::default(),
        }
    }

    /// How long what it holds may still wait.
    fn remaining(&self) -> Option<Duration> {
        self.formatter.deadline().map(|at| at.since(self.now().time))
    }

    fn tick(&mut self) {
        let ready = self.formatter.tick(self.now());
        self.show(ready);
        self.settle();
    }

    /// Another form from here on. Files stay where they are.
    fn change(&mut self, style: Style) {
        self.pass_on();
        self.formatter = OutputFormatter::for_screen(style);
        self.settle();
    }

    fn take(&mut self, shot: Shot) {
        let Shot { stream, data, info, done } = shot;
        let now = self.now();
        let style = self.formatter.style();
        let (merge, file_only) = (style.merge, style.file_only);
        if let Some(files) = &mut self.files {
            let host =
                info.iter().find(|info| info.key == *keys::HOSTNAME).and_then(|info| info.value.as_str());
            let source = Source { stream: &stream, host, pid: None, job: None, rank_width: 0 };
            let channel = if merge { Channel::Stdout } else { stream.channel };
            match data.is_empty() {
                true => files.end(now.time, &source, channel),
                false => files.data(now.time, &source, channel, &data),
            }
            if let Some(trouble) = files.take_trouble() {
                tracing::error!(%trouble, "output is missing in a file");
            }
        }
        if !file_only {
            let ready = self.formatter.data(now, &stream, &data, &info);
            self.show(ready);
        }
        self.owed.arrived(stream, data.len(), done);
        self.settle();
    }

    /// Reports written output as taken.
    fn settle(&mut self) {
        let held = |stream: &Stream| {
            let Held { lines, collected } = self.formatter.held(stream);
            // In files a line waits for its end without a time limit.
            let in_files = self.files.as_ref().map_or(0, |files| files.held(stream));
            Held { lines, collected: collected.max(in_files.saturating_sub(lines)) }
        };
        self.owed.settle(PATIENCE, held).into_iter().for_each(|(done, held)| done.held(held));
    }

    /// What it holds leaves, and a document ends.
    fn pass_on(&mut self) {
        let ready = self.formatter.finish(self.now());
        self.show(ready);
        if std::mem::take(&mut self.opened) {
            write_all(rustix::stdio::stdout(), closing(self.formatter.style().form).as_bytes());
        }
    }

    fn end(mut self) {
        self.pass_on();
        if let Some(files) = &mut self.files {
            files.finish();
        }
    }

    fn show(&mut self, ready: Vec<Ready>) {
        for Ready { stream, data, .. } in ready {
            if !std::mem::replace(&mut self.opened, true) {
                write_all(rustix::stdio::stdout(), opening(self.formatter.style().form).as_bytes());
            }
            let on_stdout = stream.channel == Channel::Stdout || self.formatter.style().is_document();
            match on_stdout {
                true => write_all(rustix::stdio::stdout(), &data),
                false => write_all(rustix::stdio::stderr(), &data),
            }
        }
    }

    fn now(&self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Moment { time: Time::default().after(self.began.elapsed()), wall }
    }
}

/// A program with closed streams has nowhere to report errors.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // The descriptor was set to non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

/// Pieces of output; each is at most what arrives at once.
const MOST_WAITING: usize = 16;
/// Bytes of one stream whose senders wait for the end of a line.
const PATIENCE: usize = 16 << 10;
/// More than can be under way before a pull is answered.
const MOST_EARLY: usize = 64;

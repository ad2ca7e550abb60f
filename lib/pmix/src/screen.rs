//! This process's own standard output and standard error, as the place where output of others is shown.
//!
//! A thread of the screen's own gives the output its form and writes it, so that a terminal that has been stopped does not
//! stop the library. What waits for it is bounded: then whoever delivers output waits, and in the end the processes that
//! write it.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phalanx_core::Time;
use phalanx_core::output::{
    BUFFER_ATTRIBUTES, Channel, Dresser, Moment, Ready, STYLE_ATTRIBUTES, Source, Stream, Style, closing,
    opening,
};
use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::iof::DRESSED;
use phalanx_wire::{Info, InfoFlags, ProcId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::engine::spawn_thread;
use crate::error::Error;
use crate::files::FileSet;

/// What directives of a pull say when this process shows the output itself.
pub const ATTRIBUTES: &[&[&str]] = &[STYLE_ATTRIBUTES, BUFFER_ATTRIBUTES, &[keys::IOF_LOCAL_OUTPUT]];

/// A place where output is shown. Dropping it writes all that it was given before, however long that takes.
#[derive(Debug)]
pub struct Screen {
    to: SyncSender<Word>,
    thread: Option<JoinHandle<()>>,
}

enum Word {
    Output { stream: Stream, data: Vec<u8>, info: Vec<Info> },
    End,
}

impl Screen {
    /// In the form that the directives ask for, which are changed so that nobody else gives it that form, too.
    pub fn open(directives: &mut Vec<Info>) -> Result<Screen, Error> {
        let style = Style::default().overlaid(directives).map_err(|bad| Error::Failed {
            operation: format!("show of output in files: {bad}"),
            status: Status::ERR_BAD_PARAM,
        })?;
        for info in directives.iter_mut() {
            if ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str())) {
                info.flags |= InfoFlags::REQUIRED_PROCESSED;
            }
        }
        directives.push(Info::new(DRESSED, true));
        let (to, words) = sync_channel(MOST_WAITING);
        let writer = Writer::new(style);
        let thread = spawn_thread("pmix-screen", move || writer.run(&words))
            .map_err(|source| Error::System { doing: "starting the thread that shows output", source })?;
        Ok(Screen { to, thread: Some(thread) })
    }

    /// What to do with each piece of output.
    pub fn handler(&self) -> impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static {
        let to = self.to.clone();
        move |source: &ProcId, channel: IofChannel, data: &[u8], info: &[Info]| {
            let stream = Stream { proc: source.clone(), channel: Channel::of(channel) };
            // A screen that was closed shows nothing any more.
            let _ = to.send(Word::Output { stream, data: data.to_vec(), info: info.to_vec() });
        }
    }

    /// The same as dropping it, without waiting for the last byte.
    pub fn leave(mut self) {
        self.thread = None;
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

struct Writer {
    dresser: Dresser,
    files: Option<FileSet>,
    began: Instant,
    opened: bool,
}

impl Writer {
    fn new(style: Style) -> Writer {
        let files = style.files.clone().map(FileSet::new);
        Writer { dresser: Dresser::for_screen(style), files, began: Instant::now(), opened: false }
    }

    fn run(mut self, words: &Receiver<Word>) {
        loop {
            let now = self.now();
            let word = match self.dresser.deadline() {
                Some(at) => words.recv_timeout(at.since(now.time)),
                None => words.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match word {
                Ok(Word::Output { stream, data, info }) => self.take(&stream, &data, &info),
                Err(RecvTimeoutError::Timeout) => {
                    let ready = self.dresser.tick(self.now());
                    self.show(ready);
                }
                Ok(Word::End) | Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
        }
    }

    fn take(&mut self, stream: &Stream, data: &[u8], info: &[Info]) {
        let now = self.now();
        let style = self.dresser.style();
        let (merge, file_only) = (style.merge, style.file_only);
        if let Some(files) = &mut self.files {
            let host =
                info.iter().find(|info| info.key == *keys::HOSTNAME).and_then(|info| info.value.as_str());
            let source = Source { stream, host, pid: None, job: None, rank_width: 0 };
            let channel = if merge { Channel::Stdout } else { stream.channel };
            match data.is_empty() {
                true => files.end(now.time, &source, channel),
                false => files.data(now.time, &source, channel, data),
            }
            if let Some(trouble) = files.take_trouble() {
                tracing::error!(%trouble, "output is missing in a file");
            }
        }
        if !file_only {
            let ready = self.dresser.data(now, stream, data, info);
            self.show(ready);
        }
    }

    fn end(mut self) {
        let ready = self.dresser.finish(self.now());
        self.show(ready);
        if self.opened {
            write_all(rustix::stdio::stdout(), closing(self.dresser.style().form).as_bytes());
        }
        if let Some(files) = &mut self.files {
            files.finish();
        }
    }

    fn show(&mut self, ready: Vec<Ready>) {
        for Ready { stream, data, .. } in ready {
            if !std::mem::replace(&mut self.opened, true) {
                write_all(rustix::stdio::stdout(), opening(self.dresser.style().form).as_bytes());
            }
            let on_stdout = stream.channel == Channel::Stdout || self.dresser.style().is_document();
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

/// A program whose streams are closed has nobody to tell.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Somebody has set it so that it does not block.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

/// Pieces of output; each is at most what arrives at once.
const MOST_WAITING: usize = 16;

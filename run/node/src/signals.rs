//! Signals that reach the launcher, as a stream of values. The reader of the stream decides what they mean.
//!
//! A signal sent to us is meant for us, even if it was ignored when we were started: shells ignore SIGINT and SIGQUIT in what scripts put into the
//! background. Only SIGHUP, which `nohup` ignores for us, stays ignored.

use std::io;
use std::task::{Context, Poll};

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::startup;

/// One signal that was delivered to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalEvent {
    /// SIGINT: the user wants the job to end.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTERM: another program wants the job to end.
    Terminate,
    /// SIGHUP: the terminal is gone.
    Hangup,
    /// SIGTSTP: the user wants the job to pause. See [`stop_self`].
    Suspend,
    /// SIGCONT: we run again.
    Resume,
    /// SIGWINCH: the terminal has another size.
    Resize,
    /// SIGUSR1, SIGUSR2, SIGALRM and the like: meant for the ranks. Holds the signal's number.
    Forward(i32),
}

impl SignalEvent {
    /// Whether the signal asks for an end.
    pub fn is_wish_to_end(self) -> bool {
        use SignalEvent::{Hangup, Interrupt, Quit, Terminate};
        matches!(self, Interrupt | Terminate | Hangup | Quit)
    }
}

/// All signals that a launcher handles.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(SignalEvent, tokio::signal::unix::Signal)>,
    /// Where the next poll begins, so that a flood of one signal does not hide the others.
    next: usize,
}

impl Signals {
    /// Takes over the delivery of these signals. Needs the runtime of [`crate::block_on`].
    pub fn new() -> io::Result<Signals> {
        startup::note_who_terminates();
        startup::note_stops();
        let mut streams = Vec::new();
        for (number, event) in WATCHED {
            if number != libc::SIGHUP || !startup::is_ignored(number) {
                streams.push((event, signal(SignalKind::from_raw(number))?));
            }
        }
        Ok(Signals { streams, next: 0 })
    }

    /// The next signal. Several of the same kind in quick succession may count as one. Of [`SignalEvent::Suspend`] and
    /// [`SignalEvent::Resume`] it is always the one that was sent last, perhaps twice.
    pub async fn next(&mut self) -> SignalEvent {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<SignalEvent> {
        let count = self.streams.len();
        for step in 0..count {
            let at = (self.next + step) % count;
            let Some((event, stream)) = self.streams.get_mut(at) else { continue };
            if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                self.next = at + 1;
                return Poll::Ready(match event {
                    SignalEvent::Suspend | SignalEvent::Resume if startup::is_to_stop() => {
                        SignalEvent::Suspend
                    }
                    SignalEvent::Suspend => SignalEvent::Resume,
                    event => *event,
                });
            }
        }
        Poll::Pending
    }
}

/// Stops this process as SIGTSTP would have, after the job was notified, unless it was continued since. Returns when the process is continued.
pub fn stop_self() -> io::Result<()> {
    match startup::is_to_stop() {
        true => kill_process(getpid(), Signal::STOP).map_err(io::Error::from),
        false => Ok(()),
    }
}

const WATCHED: [(i32, SignalEvent); 11] = [
    (libc::SIGINT, SignalEvent::Interrupt),
    (libc::SIGQUIT, SignalEvent::Quit),
    (libc::SIGTERM, SignalEvent::Terminate),
    (libc::SIGHUP, SignalEvent::Hangup),
    (libc::SIGTSTP, SignalEvent::Suspend),
    (libc::SIGCONT, SignalEvent::Resume),
    (libc::SIGWINCH, SignalEvent::Resize),
    (libc::SIGUSR1, SignalEvent::Forward(libc::SIGUSR1)),
    (libc::SIGUSR2, SignalEvent::Forward(libc::SIGUSR2)),
    (libc::SIGALRM, SignalEvent::Forward(libc::SIGALRM)),
    (libc::SIGXCPU, SignalEvent::Forward(libc::SIGXCPU)),
];

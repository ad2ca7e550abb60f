//! Several servers that may be meant: which of them lets us in, the most likely one first.
//!
//! They are asked one after the other until one is silent: it has not answered, and the kernel says that its process is not at work
//! either. Then the others are asked side by side. Whoever lets us in is taken when all before it have refused or are silent, so
//! a server that merely waits for a busy machine loses its place to nobody, and silent ones cost moments, however many they are.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use phalanx_core::{self as core, Attached, Attempt, InitError, ToolCall, ToolReturn};

use crate::engine::Engine;
use crate::error::Error;

/// What asks one server, and the server's process, if it is known.
pub(super) struct Entrant {
    pub(super) call: ToolCall,
    pub(super) attempt: Attempt,
    pub(super) pid: Option<u32>,
}

/// What became of it.
pub(super) struct Outcome {
    pub(super) attached: Option<Attached>,
    /// Why each of the others did not let us in, and what the system has said, in the order of the entrants; nothing of those that
    /// were not asked or not waited for.
    pub(super) refusals: Vec<Option<Refusal>>,
}

pub(super) struct Refusal {
    pub(super) reason: InitError,
    pub(super) trouble: Option<std::io::Error>,
}

/// The first that lets us in, or all refusals.
pub(super) fn run(
    engine: &Engine<core::Tool>,
    entrants: Vec<Entrant>,
    primary: bool,
) -> Result<Outcome, Error> {
    let (teller, told) = channel();
    let runners = entrants.into_iter().map(|entrant| Runner {
        attempt: entrant.attempt,
        pid: entrant.pid,
        state: RunnerState::Unasked(entrant.call),
    });
    let mut race = Race { engine, runners: runners.collect(), teller, told };
    let attached = race.decide(primary);
    race.forgo_others();
    let refusals = race.runners.into_iter().map(|runner| match runner.state {
        RunnerState::Out(refusal) => Some(refusal),
        _ => None,
    });
    Ok(Outcome { attached: attached?, refusals: refusals.collect() })
}

struct Race<'a> {
    engine: &'a Engine<core::Tool>,
    runners: Vec<Runner>,
    teller: Sender<Told>,
    told: Receiver<Told>,
}

struct Runner {
    attempt: Attempt,
    pid: Option<u32>,
    state: RunnerState,
}

enum RunnerState {
    Unasked(ToolCall),
    Asked {
        /// How many times in a row its process was not at work.
        idle: u32,
    },
    LetsIn,
    Taken,
    Out(Refusal),
}

/// The answer of the runner of that number.
type Told = (usize, Result<ToolReturn, Error>);

enum Verdict {
    Take(usize),
    Wait,
    AllOut,
}

impl Race<'_> {
    fn decide(&mut self, primary: bool) -> Result<Option<Attached>, Error> {
        loop {
            match self.verdict() {
                Verdict::AllOut => return Ok(None),
                Verdict::Take(at) => {
                    if let Some(attached) = self.take(at, primary)? {
                        return Ok(Some(attached));
                    }
                }
                Verdict::Wait => {
                    self.ask_more()?;
                    self.listen()?;
                }
            }
        }
    }

    fn verdict(&self) -> Verdict {
        let mut is_open = false;
        for (at, runner) in self.runners.iter().enumerate() {
            match &runner.state {
                RunnerState::LetsIn => return Verdict::Take(at),
                RunnerState::Out(_) => {}
                RunnerState::Asked { .. } if runner.is_silent() => is_open = true,
                RunnerState::Asked { .. } | RunnerState::Unasked(_) | RunnerState::Taken => {
                    return Verdict::Wait;
                }
            }
        }
        if is_open { Verdict::Wait } else { Verdict::AllOut }
    }

    /// One at a time as long as all answer.
    fn ask_more(&mut self) -> Result<(), Error> {
        let asked = |runner: &&Runner| matches!(runner.state, RunnerState::Asked { .. });
        let count = match (self.runners.iter().any(|r| r.is_silent()), self.runners.iter().find(asked)) {
            (true, _) => self.runners.len(),
            (false, Some(_)) => 0,
            (false, None) => 1,
        };
        let unasked = |(_, runner): &(usize, &mut Runner)| matches!(runner.state, RunnerState::Unasked(_));
        for (at, runner) in self.runners.iter_mut().enumerate().filter(unasked).take(count) {
            let state = std::mem::replace(&mut runner.state, RunnerState::Asked { idle: 0 });
            if let RunnerState::Unasked(call) = state {
                let teller = self.teller.clone();
                // Who has been let in listens no more.
                self.engine.call_then(call, move |answer| drop(teller.send((at, answer))))?;
            }
        }
        Ok(())
    }

    /// Takes the next answer, or looks what those are doing who give none.
    fn listen(&mut self) -> Result<(), Error> {
        self.engine.progress();
        match self.told.recv_timeout(LOOK) {
            Ok((at, answer)) => {
                let state = match answer? {
                    ToolReturn::Asked(Ok(())) => RunnerState::LetsIn,
                    ToolReturn::Asked(Err(reason)) => self.out(reason),
                    other => {
                        tracing::error!(?other, "an answer of another kind");
                        self.out(InitError::TurnedAway)
                    }
                };
                if let Some(runner) = self.runners.get_mut(at) {
                    runner.state = state;
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                self.runners.iter_mut().for_each(Runner::look);
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => Err(Error::Ended),
        }
    }

    fn out(&self, reason: InitError) -> RunnerState {
        RunnerState::Out(Refusal { reason, trouble: self.engine.take_trouble() })
    }

    fn take(&mut self, at: usize, primary: bool) -> Result<Option<Attached>, Error> {
        let Some(attempt) = self.runners.get(at).map(|runner| runner.attempt) else { return Ok(None) };
        let (state, attached) = match self.engine.call(ToolCall::Take { attempt, primary })? {
            ToolReturn::Attached(Ok(attached)) => (RunnerState::Taken, Some(attached)),
            ToolReturn::Attached(Err(reason)) => (self.out(reason), None),
            _ => (self.out(InitError::TurnedAway), None),
        };
        if let Some(runner) = self.runners.get_mut(at) {
            runner.state = state;
        }
        Ok(attached)
    }

    fn forgo_others(&self) {
        for runner in &self.runners {
            if let RunnerState::Asked { .. } | RunnerState::LetsIn = runner.state {
                // An engine that has ended has forgone all.
                let _ = self.engine.call(ToolCall::Forgo(runner.attempt));
            }
        }
    }
}

impl Runner {
    fn is_silent(&self) -> bool {
        matches!(self.state, RunnerState::Asked { idle } if idle >= IDLE_LOOKS)
    }

    fn look(&mut self) {
        if let RunnerState::Asked { idle } = &mut self.state {
            *idle = if self.pid.is_none_or(may_be_at_work) { 0 } else { *idle + 1 };
        }
    }
}

/// Whether a process has something to do and waits for a processor or a disk at most, as far as is known.
fn may_be_at_work(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let stats = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .into_iter()
        .any(|stat| stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['R', 'D'])))
}

/// How long an answer is waited for before its server's process is looked at again.
const LOOK: Duration = Duration::from_millis(2);
/// Who was idle so often, and has a message of ours to read, is not about to answer it.
const IDLE_LOOKS: u32 = 10;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn the_kernel_says_who_is_at_work() {
        assert!(may_be_at_work(u32::MAX), "nothing is known");
        // Not this process: when a thread of it ends, the kernel may leave out others of the list that is being read.
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        assert!(may_be_at_work(busy.id()), "this one is");
        busy.kill().unwrap();
        busy.wait().unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        while may_be_at_work(child.id()) {
            std::thread::sleep(LOOK);
        }
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        while may_be_at_work(child.id()) {
            std::thread::sleep(LOOK);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

//! Several candidate servers: picks the one that admits us, the most likely one first.
//!
//! They are asked one after the other until one is silent: it has not answered, and the kernel reports that its process is idle.
//! Then the others are asked side by side. A server that admits us is taken when all before it have refused or are silent, so a
//! server that is only slow on a busy machine does not lose its place, and any number of silent ones costs only moments.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use phalanx_core::{self as core, Attached, Attempt, InitError, ToolCall, ToolReturn};

use crate::engine::Engine;
use crate::error::Error;

/// The call that asks one server, and the server's process, if known.
pub(super) struct Entrant {
    pub(super) call: ToolCall,
    pub(super) attempt: Attempt,
    pub(super) pid: Option<u32>,
}

/// The outcome of a race.
pub(super) struct Outcome {
    pub(super) attached: Option<Attached>,
    /// Why each of the others did not admit us, with the system's error, in the order of the entrants; `None` for those that were
    /// not asked or not waited for.
    pub(super) refusals: Vec<Option<Refusal>>,
}

pub(super) struct Refusal {
    pub(super) reason: InitError,
    pub(super) trouble: Option<std::io::Error>,
}

/// The first that admits us, or all refusals.
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
    teller: Sender<Finished>,
    told: Receiver<Finished>,
}

struct Runner {
    attempt: Attempt,
    pid: Option<u32>,
    state: RunnerState,
}

enum RunnerState {
    Unasked(ToolCall),
    Asked {
        /// How many times in a row its process was idle.
        idle: u32,
    },
    LetsIn,
    Taken,
    Out(Refusal),
}

/// The answer of the runner of that number.
type Finished = (usize, Result<ToolReturn, Error>);

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

    /// Asks one at a time as long as all answer.
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
                // The listener is gone once the tool has been admitted.
                self.engine.call_then(call, move |answer| drop(teller.send((at, answer))))?;
            }
        }
        Ok(())
    }

    /// Takes the next answer, or checks the processes of the servers that give none.
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
                // An engine that has ended has dropped all attempts.
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

/// Whether a process is running, or waits only for a processor or a disk, as far as is known.
fn may_be_at_work(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let stats = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .into_iter()
        .any(|stat| stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['R', 'D'])))
}

/// How long to wait for an answer before the server's process is checked again.
const LOOK: Duration = Duration::from_millis(2);
/// A server that was idle so often, with our message unread, is not about to answer it.
const IDLE_LOOKS: u32 = 10;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn the_kernel_shows_which_processes_are_at_work() {
        assert!(may_be_at_work(u32::MAX), "nothing is known");
        // Not this process: when one of its threads ends, the kernel may omit others from the list that is being read.
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

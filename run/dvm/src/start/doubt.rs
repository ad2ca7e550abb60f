//! Whether the batch system has ended the allocation of the hosts.
//!
//! It ends ranks and daemons at the same moment, and what is noticed first looks like the failure of one of them. So when a rank is
//! killed or a daemon is lost, the batch system is asked, and the root gets no news until the answer is here ([`Starter::is_in_doubt`]).

use phalanx_core::Time;
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::ProcId;

use super::{FromStarter, Out, Starter, Timer};
use crate::effect::{Effect, ProcStart, StdinPlan};
use crate::fleet::Allocation;
use crate::msg::charge;
use crate::signals::SIGKILL;

/// One doubt, until it is settled.
#[derive(Debug)]
pub(super) struct Doubt {
    since: Time,
    /// The number of the process that asks, while it runs.
    asks: Option<u32>,
    said: Vec<u8>,
    /// Its output streams that are closed.
    closed: u32,
    has_exited: bool,
}

/// What the batch system says of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Lives,
    /// It ends, and the reason is not shown yet.
    Ends,
    Ended(&'static str),
}

impl Starter {
    /// Something has happened that also happens at the end of an allocation.
    pub(crate) fn doubt(&mut self, now: Time, out: &mut Out) {
        let was_asked = self.believed.is_some_and(|at| now.since(at) < BELIEVED);
        if self.plan.fleet.allocation.is_none()
            || self.doubt.is_some()
            || was_asked
            || !self.booted
            || self.stopping
        {
            return;
        }
        self.doubt = Some(Doubt { since: now, asks: None, said: Vec::new(), closed: 0, has_exited: false });
        self.ask(now, out);
    }

    /// Whether what arrives for the root has to wait.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    fn ask(&mut self, now: Time, out: &mut Out) {
        let (Some(doubt), Some(allocation)) = (&mut self.doubt, &self.plan.fleet.allocation) else { return };
        let number = FIRST + self.asked;
        self.asked += 1;
        *doubt =
            Doubt { since: doubt.since, asks: Some(number), said: Vec::new(), closed: 0, has_exited: false };
        let proc = ProcId::new(&self.plan.nspace, Rank(number));
        out.push_back(FromStarter::Effect(Effect::Spawn(Box::new(ProcStart {
            proc: proc.clone(),
            argv: allocation.ask.clone().into(),
            env: self.plan.fleet.env.clone(),
            cwd: None,
            cpus: None,
            stdin: StdinPlan::Null,
            diag: false,
            asked_first: false,
            may_leave: true,
        }))));
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            let credit = Effect::Credit { proc: proc.clone(), channel, bytes: MOST_SAID };
            out.push_back(FromStarter::Effect(credit));
        }
        self.timers.set(now.after(PATIENCE), Timer::Doubt);
    }

    fn asking(&mut self, proc: &ProcId) -> Option<&mut Doubt> {
        self.doubt.as_mut().filter(|doubt| doubt.asks == Some(proc.rank.0))
    }

    pub(super) fn on_answer(&mut self, proc: &ProcId, data: &[u8], channel: IofChannel, out: &mut Out) {
        let credit = Effect::Credit { proc: proc.clone(), channel, bytes: charge(data.len()) };
        out.push_back(FromStarter::Effect(credit));
        if let Some(doubt) = self.asking(proc) {
            let room = MOST_SAID.saturating_sub(doubt.said.len());
            doubt.said.extend_from_slice(data.get(..room).unwrap_or(data));
        }
    }

    /// One of its output streams is closed, or it has exited.
    pub(super) fn on_answer_end(&mut self, now: Time, proc: &ProcId, exited: bool, out: &mut Out) {
        let Some(doubt) = self.asking(proc) else { return };
        match exited {
            true => doubt.has_exited = true,
            false => doubt.closed += 1,
        }
        if doubt.has_exited && doubt.closed == 2 {
            doubt.asks = None;
            let (since, said) = (doubt.since, std::mem::take(&mut doubt.said));
            match State::of(&String::from_utf8_lossy(&said)) {
                State::Lives => self.believe(now),
                State::Ended(how) => self.settle_doubt(how, out),
                State::Ends if self.is_over_time() => self.settle_doubt(OVER_TIME, out),
                State::Ends if now.since(since) >= PATIENCE => self.settle_doubt("", out),
                State::Ends => self.timers.set(now.after(AGAIN), Timer::Doubt),
            }
        }
    }

    /// It could not be asked.
    pub(super) fn on_no_answer(&mut self, now: Time, proc: &ProcId) {
        if self.asking(proc).is_some() {
            self.believe(now);
        }
    }

    pub(super) fn on_doubt_due(&mut self, now: Time, out: &mut Out) {
        match self.doubt.as_ref().map(|doubt| doubt.asks) {
            None => {}
            Some(None) => self.ask(now, out),
            Some(Some(number)) => {
                let proc = ProcId::new(&self.plan.nspace, Rank(number));
                out.push_back(FromStarter::Effect(Effect::Signal { proc, signal: SIGKILL }));
                self.believe(now);
            }
        }
    }

    /// The allocation goes on, as far as is known.
    fn believe(&mut self, now: Time) {
        self.doubt = None;
        self.believed = Some(now);
    }

    fn is_over_time(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|what| what.contains("TIME LIMIT"))
    }

    fn settle_doubt(&mut self, how: &str, out: &mut Out) {
        self.doubt = None;
        if let Some(Allocation { name, .. }) = self.plan.fleet.allocation.take() {
            let how = if how.is_empty() { String::new() } else { format!(": it {how}") };
            out.push_back(FromStarter::AllocationEnded { why: format!("the {name} has ended{how}") });
        }
    }
}

impl State {
    /// Reads the answer of `scontrol`.
    fn of(said: &str) -> State {
        let state = said.split_whitespace().find_map(|word| word.strip_prefix("JobState="));
        match state {
            // It forgets jobs some minutes after their end.
            None if said.contains("Invalid job id") => State::Ended(""),
            None => State::Lives,
            Some("COMPLETING") => State::Ends,
            Some("CANCELLED") => State::Ended("was cancelled"),
            Some("TIMEOUT" | "DEADLINE") => State::Ended(OVER_TIME),
            Some("NODE_FAIL") => State::Ended("has lost a node"),
            Some("PREEMPTED") => State::Ended("was preempted"),
            Some("COMPLETED" | "FAILED" | "BOOT_FAIL" | "OUT_OF_MEMORY" | "REVOKED") => State::Ended(""),
            Some(_) => State::Lives,
        }
    }
}

/// The number of the first process that asks, beyond those of agents.
const FIRST: u32 = 1 << 30;
const OVER_TIME: &str = "has reached its time limit";
/// How long an answer may take, and how long an allocation that ends may hide the reason.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
const AGAIN: std::time::Duration = std::time::Duration::from_millis(200);
/// For this long after an answer, the allocation is taken to go on.
const BELIEVED: std::time::Duration = std::time::Duration::from_secs(1);
const MOST_SAID: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_scontrol_are_understood() {
        for (said, state) in [
            ("JobId=7 JobName=x JobState=RUNNING Reason=None", State::Lives),
            ("JobId=7 JobState=COMPLETING Reason=None", State::Ends),
            ("JobId=7 JobState=CANCELLED Reason=None", State::Ended("was cancelled")),
            ("JobId=7 JobState=TIMEOUT Reason=TimeLimit", State::Ended(OVER_TIME)),
            ("JobId=7 JobState=COMPLETED Reason=None", State::Ended("")),
            ("slurm_load_jobs error: Invalid job id specified\n", State::Ended("")),
            ("slurm_load_jobs error: Unable to contact slurm controller\n", State::Lives),
        ] {
            assert_eq!(State::of(said), state, "{said}");
        }
    }
}

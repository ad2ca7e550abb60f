//! A process of this node, from the order to start it until everything is known of its end.

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_core::server::ServerCall;
use phalanx_core::{HostCall, HostReply, Time};
use phalanx_spec::{IofChannel, ProcState, Status};
use phalanx_wire::ProcId;

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::turn::Cx;
use crate::msg::{Control, ExitStatus, Pauser, ended_state};
use crate::signals::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};

#[derive(Debug)]
pub(super) struct Proc {
    pub(super) phase: Phase,
    pub(super) pid: Option<u32>,
    pub(super) pmix: Pmix,
    /// The deadliest signal that we have ordered.
    pub(super) killed: Option<Killed>,
    /// When it is killed, if it has been asked to end.
    pub(super) kill_at: Option<Time>,
    /// Why it is paused, if it is.
    pub(super) paused_by: BTreeSet<Pauser>,
    /// Signals that arrived before it ran, each once.
    pub(super) early: BTreeSet<i32>,
    /// Which streams are still open: standard output, standard error, diagnostics.
    pub(super) open: [bool; 3],
    /// Which streams have ended without that being reported.
    pub(super) unsaid: [bool; 3],
    /// Everything that waits for it has been released.
    pub(super) given_up: bool,
    /// It is to be started again, or the root has yet to decide.
    pub(super) place_kept: bool,
    /// Its successor, if an action on it is already pending.
    pub(super) next: Option<Box<Proc>>,
    /// Unanswered upcalls about its lost connection, answered when the process is given up.
    pub(super) losses: Vec<HostCall>,
    pub(super) status: Option<ExitStatus>,
    pub(super) after: Duration,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server is preparing its environment.
    Preparing,
    /// The shell has the order to start it.
    Starting,
    Running,
    /// Reaped, or never started.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pmix {
    Never,
    Connected,
    /// One of its connections has finalized, others go on.
    Leaving,
    Finalized,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Killed {
    Asked,
    Forced,
}

impl Proc {
    pub(super) fn new() -> Proc {
        Proc {
            phase: Phase::Preparing,
            pid: None,
            pmix: Pmix::Never,
            killed: None,
            kill_at: None,
            paused_by: BTreeSet::new(),
            early: BTreeSet::new(),
            open: [false; 3],
            unsaid: [false; 3],
            given_up: false,
            place_kept: false,
            next: None,
            losses: Vec::new(),
            status: None,
            after: Duration::ZERO,
            settled: false,
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        !self.paused_by.is_empty()
    }

    /// Whether it was paused.
    pub(super) fn forget_pauses(&mut self) -> bool {
        !std::mem::take(&mut self.paused_by).is_empty()
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running)
    }

    pub(super) fn stream(&mut self, channel: IofChannel) -> Option<&mut bool> {
        match channel {
            IofChannel::STDOUT => self.open.first_mut(),
            IofChannel::STDERR => self.open.get_mut(1),
            IofChannel::STDDIAG => self.open.last_mut(),
            _ => None,
        }
    }

    /// Releases everything that waits for it, if it has ended or has lost its connection.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, id: &ProcId) {
        self.given_up |= self.settled || self.pmix == Pmix::Lost;
        if self.settled {
            cx.call(ServerCall::DeregisterClient(id.clone()), Call::Told("forgetting a client"));
        }
        self.acknowledge_losses(cx);
    }

    pub(super) fn acknowledge_losses(&mut self, cx: &mut Cx<'_>) {
        let losses = std::mem::take(&mut self.losses);
        losses.into_iter().for_each(|call| cx.reply(call, HostReply::Done(Status::SUCCESS)));
    }

    /// Whether it will send nothing more. A process that has lost its connection is not over while it may still turn out to
    /// have died.
    pub(super) fn is_over(&self) -> bool {
        let never_ran = self.settled && self.status.is_none();
        let has_lost = self.pmix == Pmix::Lost && self.losses.is_empty();
        never_ran || (self.settled && self.given_up) || self.pmix == Pmix::Finalized || has_lost
    }

    /// Whether its absence from collectives is to be reported to the members that wait for it. If its end ends the job, that is
    /// delayed.
    pub(super) fn never_comes(&self) -> bool {
        self.pmix == Pmix::Finalized || self.given_up
    }

    /// It never ran.
    pub(super) fn never(&mut self) {
        self.phase = Phase::Gone;
        self.open = [false; 3];
        self.settled = true;
    }

    pub(super) fn lost_connection(&self) -> bool {
        matches!(self.pmix, Pmix::Connected | Pmix::Lost)
    }

    /// The process that an action applies to now: this one, or its successor.
    pub(super) fn heir(&mut self) -> &mut Proc {
        match self.place_kept {
            true => self.next.get_or_insert_with(|| Box::new(Proc::new())),
            false => self,
        }
    }

    pub(super) fn state(&self) -> ProcState {
        match (self.phase, self.pmix) {
            (Phase::Preparing, _) => ProcState::PREPPED,
            (Phase::Starting, _) => ProcState::LAUNCH_UNDERWAY,
            (Phase::Running, Pmix::Connected | Pmix::Leaving) => ProcState::CONNECTED,
            (Phase::Running, _) => ProcState::RUNNING,
            (Phase::Gone, _) => ended_state(self.status, self.killed.is_some(), self.lost_connection()),
        }
    }

    /// `alone`: the rest of the job goes on. Then processes that the rank has started in other sessions end with the rank, not
    /// with the job.
    pub(super) fn act(
        &mut self,
        cx: &mut Cx<'_>,
        proc: &ProcId,
        (action, pauser): (Control, &Pauser),
        alone: bool,
    ) {
        let tree = match action {
            Control::Suspend | Control::Resume => true,
            Control::Terminate { .. } => alone || self.is_paused(),
            Control::Kill => alone,
            Control::Signal(_) => false,
        };
        let mut signal = |number| {
            let (proc, signal) = (proc.clone(), number);
            cx.effect(match tree {
                true => Effect::SignalTree { proc, signal },
                false => Effect::Signal { proc, signal },
            });
        };
        let running = self.phase == Phase::Running;
        match action {
            // A process that is not running yet gets its signals when it runs.
            Control::Terminate { .. } if self.phase != Phase::Gone => {
                self.killed = self.killed.max(Some(Killed::Asked));
                if running {
                    signal(SIGTERM);
                }
                if running && self.forget_pauses() {
                    signal(SIGCONT);
                }
            }
            Control::Kill if self.phase != Phase::Gone => {
                self.killed = Some(Killed::Forced);
                self.kill_at = None;
                if running {
                    signal(SIGKILL);
                }
            }
            Control::Signal(number) if running => signal(number),
            Control::Signal(number) if self.phase != Phase::Gone => {
                self.early.insert(number);
            }
            Control::Suspend if self.phase != Phase::Gone => {
                let was_paused = self.is_paused();
                self.paused_by.insert(pauser.clone());
                if running && !was_paused {
                    signal(SIGSTOP);
                }
            }
            Control::Resume => {
                let went_on = self.paused_by.remove(pauser) && !self.is_paused();
                if running && went_on {
                    signal(SIGCONT);
                }
            }
            _ => {}
        }
    }
}

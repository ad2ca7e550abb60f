//! What was ordered for a process: to end, to pause, and, before it runs, the signals that it gets when it does.

use std::collections::BTreeSet;

use phalanx_core::Time;
use phalanx_wire::ProcId;

use crate::effect::Effect;
use crate::local::turn::Cx;
use crate::msg::{Control, Pauser};
use crate::signals::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};

/// An action on processes.
pub(super) struct Action<'a> {
    pub(super) control: Control,
    /// The reason for a pause.
    pub(super) pauser: &'a Pauser,
    /// When processes that are asked to end are killed.
    pub(super) kill_at: Time,
    /// The rest of the job goes on. Then processes that the rank has started in other sessions end with the rank, not with the
    /// job.
    pub(super) alone: bool,
}

/// The deadliest signal that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    Asked { kill_at: Time },
    Forced,
}

#[derive(Debug, Default)]
pub(super) struct Orders {
    killed: Option<Killed>,
    /// Why it is paused, if it is.
    paused_by: BTreeSet<Pauser>,
}

/// The orders for a process that does not run yet.
#[derive(Debug, Default)]
pub(super) struct Early {
    orders: Orders,
    /// Each once.
    signals: BTreeSet<i32>,
}

impl Killed {
    /// Whether the time from the polite signal to the kill is over.
    pub(super) fn is_due(self, now: Time) -> bool {
        matches!(self, Killed::Asked { kill_at } if kill_at <= now)
    }
}

impl Orders {
    pub(super) fn killed(&self) -> Option<Killed> {
        self.killed
    }

    pub(super) fn is_paused(&self) -> bool {
        !self.paused_by.is_empty()
    }

    pub(super) fn kill(&mut self) {
        self.killed = Some(Killed::Forced);
    }

    /// A grace period may be shortened, but not extended.
    fn ask(&mut self, kill_at: Time) {
        self.killed = match self.killed {
            None => Some(Killed::Asked { kill_at }),
            Some(Killed::Asked { kill_at: before }) => Some(Killed::Asked { kill_at: before.min(kill_at) }),
            Some(Killed::Forced) => Some(Killed::Forced),
        };
    }

    /// For a process that runs. Returns whether it is now paused, if that has changed.
    pub(super) fn carry_out(&mut self, cx: &mut Cx<'_>, id: &ProcId, action: &Action<'_>) -> Option<bool> {
        let was_paused = self.is_paused();
        let Action { control, pauser, kill_at, alone } = action;
        let (tree, signals) = match control {
            Control::Terminate { .. } => {
                self.ask(*kill_at);
                self.paused_by.clear();
                (*alone || was_paused, vec![Some(SIGTERM), was_paused.then_some(SIGCONT)])
            }
            Control::Kill => {
                self.kill();
                (*alone, vec![Some(SIGKILL)])
            }
            Control::Signal(number) => (false, vec![Some(*number)]),
            Control::Suspend => {
                self.paused_by.insert((*pauser).clone());
                // Again, too: new descendants may have appeared.
                (true, vec![Some(SIGSTOP)])
            }
            Control::Resume => {
                self.paused_by.remove(pauser);
                (true, vec![(was_paused && !self.is_paused()).then_some(SIGCONT)])
            }
        };
        for signal in signals.into_iter().flatten() {
            let proc = id.clone();
            cx.effect(match tree {
                true => Effect::SignalTree { proc, signal },
                false => Effect::Signal { proc, signal },
            });
        }
        (self.is_paused() != was_paused).then(|| self.is_paused())
    }
}

impl Early {
    pub(super) fn orders(&self) -> &Orders {
        &self.orders
    }

    pub(super) fn orders_mut(&mut self) -> &mut Orders {
        &mut self.orders
    }

    pub(super) fn killed(&self) -> Option<Killed> {
        self.orders.killed
    }

    /// Returns whether the process is now to be paused, if that has changed.
    pub(super) fn enter(&mut self, action: &Action<'_>) -> Option<bool> {
        let was_paused = self.orders.is_paused();
        match action.control {
            Control::Terminate { .. } => self.orders.ask(action.kill_at),
            Control::Kill => self.orders.kill(),
            Control::Signal(number) => {
                self.signals.insert(number);
            }
            Control::Suspend => {
                self.orders.paused_by.insert(action.pauser.clone());
            }
            Control::Resume => {
                self.orders.paused_by.remove(action.pauser);
            }
        }
        let is_paused = self.orders.is_paused();
        (is_paused != was_paused).then_some(is_paused)
    }

    /// The process runs: the signals that it gets now.
    pub(super) fn run(self) -> (Orders, Vec<i32>) {
        let Early { orders, signals } = self;
        let last = match orders.killed {
            None => orders.is_paused().then_some(SIGSTOP),
            Some(Killed::Asked { .. }) => Some(SIGTERM),
            Some(Killed::Forced) => Some(SIGKILL),
        };
        let signals = signals.into_iter().chain(last).collect();
        (orders, signals)
    }
}

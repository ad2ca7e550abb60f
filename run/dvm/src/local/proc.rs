//! A process of this node, from the order to start it until everything is known of its end, and the next one in its place.

use std::time::Duration;

use phalanx_core::server::ServerCall;
use phalanx_core::{HostCall, HostReply, Time};
use phalanx_spec::{IofChannel, ProcState, Status};
use phalanx_wire::ProcId;

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::orders::{Action, Early, Killed, Orders};
use crate::local::turn::Cx;
use crate::msg::{ExitStatus, ended_state};
use crate::signals::SIGKILL;

#[derive(Debug)]
pub(super) struct Proc {
    phase: Phase,
    pub(super) pmix: Pmix,
    pub(super) streams: Streams,
    /// Unanswered upcalls about its lost connection, answered when what waits for the process is released.
    losses: Vec<HostCall>,
    /// The process that is started in its place when it has ended, if the root does not decide otherwise: what was ordered for
    /// it so far.
    pub(super) next: Option<Early>,
}

/// What a process waits for.
#[derive(Debug)]
enum Phase {
    /// For its environment, which our server prepares.
    Preparing(Early),
    /// For the shell, which has the order to start it.
    Starting(Early),
    /// For its exit.
    Running { pid: u32, orders: Orders },
    /// It was reaped. For our server to have read its last message.
    Exited(Exit),
    /// Everything is known of its end. For whatever arrived before to be handled.
    Settled(Exit),
    /// For nothing: nothing waits for it, either.
    Released(Exit),
    /// It never ran, and never will.
    Never(Option<Killed>),
}

/// How a process has ended.
#[derive(Clone, Debug)]
pub(super) struct Exit {
    /// `None`: it was reaped before the shell has reported its start.
    pub(super) pid: Option<u32>,
    pub(super) status: ExitStatus,
    /// The time since the job's start.
    pub(super) after: Duration,
    pub(super) killed: Option<Killed>,
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

/// The streams of a process: standard output, standard error, diagnostics.
#[derive(Debug, Default)]
pub(super) struct Streams([Stream; 3]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stream {
    /// It was not opened, or its end was reported.
    #[default]
    Shut,
    Open,
    /// It has ended, and that was not reported.
    Unsaid,
}

impl Proc {
    pub(super) fn new(early: Early) -> Proc {
        Proc {
            phase: Phase::Preparing(early),
            pmix: Pmix::Never,
            streams: Streams::default(),
            losses: Vec::new(),
            next: None,
        }
    }

    /// The shell gets the order to start it.
    pub(super) fn begin(&mut self, diag: bool) {
        if let Phase::Preparing(early) = &mut self.phase {
            self.phase = Phase::Starting(std::mem::take(early));
            let diag = if diag { Stream::Open } else { Stream::Shut };
            self.streams = Streams([Stream::Open, Stream::Open, diag]);
        }
    }

    /// It runs. Returns the signals that have waited for that; `None`: the shell had no order to start it.
    pub(super) fn run(&mut self, pid: u32) -> Option<Vec<i32>> {
        let Phase::Starting(early) = &mut self.phase else { return None };
        let (orders, signals) = std::mem::take(early).run();
        self.phase = Phase::Running { pid, orders };
        Some(signals)
    }

    /// It will never run.
    pub(super) fn never(&mut self) {
        self.phase = Phase::Never(self.killed());
        self.streams = Streams::default();
    }

    /// It was reaped. Returns whether it was paused; `None`: it was not alive.
    pub(super) fn exit(&mut self, status: ExitStatus, after: Duration) -> Option<bool> {
        let pid = self.pid();
        let orders = match &self.phase {
            Phase::Starting(early) => early.orders(),
            Phase::Running { orders, .. } => orders,
            _ => return None,
        };
        let was_paused = orders.is_paused();
        self.phase = Phase::Exited(Exit { pid, status, after, killed: orders.killed() });
        Some(was_paused)
    }

    /// Whether it was reaped at or before this time of its job, and our server may still have its last message to read.
    pub(super) fn is_unsettled(&self, until: Duration) -> bool {
        matches!(&self.phase, Phase::Exited(exit) if exit.after <= until)
    }

    /// All that determines how it ended is known. `None`: it has not ended, or that was known.
    pub(super) fn settle(&mut self) -> Option<Exit> {
        let Phase::Exited(exit) = &self.phase else { return None };
        let exit = exit.clone();
        self.phase = Phase::Settled(exit.clone());
        Some(exit)
    }

    /// Releases everything that waits for it, if it has ended or has lost its connection.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, id: &ProcId) {
        if let Phase::Settled(exit) = &self.phase {
            self.phase = Phase::Released(exit.clone());
            cx.call(ServerCall::DeregisterClient(id.clone()), Call::Notice("forgetting a client"));
        }
        self.acknowledge_losses(cx);
    }

    /// Our server has lost its connection. `Some`: nothing waits for the process, so the upcall need not wait, either.
    pub(super) fn lose(&mut self, call: HostCall) -> Option<HostCall> {
        match self.phase {
            Phase::Released(_) | Phase::Never(_) => Some(call),
            _ => {
                self.losses.push(call);
                None
            }
        }
    }

    pub(super) fn acknowledge_losses(&mut self, cx: &mut Cx<'_>) {
        let losses = std::mem::take(&mut self.losses);
        losses.into_iter().for_each(|call| cx.reply(call, HostReply::Done(Status::SUCCESS)));
    }

    /// Ends it, and keeps its place for another process.
    pub(super) fn clear(&mut self, cx: &mut Cx<'_>, id: &ProcId) {
        self.next.get_or_insert_default();
        if let Some(orders) = self.orders_mut() {
            orders.kill();
        }
        if !self.is_pending() {
            cx.effect(Effect::SignalTree { proc: id.clone(), signal: SIGKILL });
        }
    }

    /// Does to it, or to the next process in its place, what was ordered. Returns whether that is now paused, if this has
    /// changed.
    pub(super) fn act(&mut self, cx: &mut Cx<'_>, id: &ProcId, action: &Action<'_>) -> Option<bool> {
        match (&mut self.next, &mut self.phase) {
            (Some(early), _) | (None, Phase::Preparing(early) | Phase::Starting(early)) => {
                early.enter(action)
            }
            (None, Phase::Running { orders, .. }) => orders.carry_out(cx, id, action),
            (None, Phase::Exited(_) | Phase::Settled(_) | Phase::Released(_) | Phase::Never(_)) => None,
        }
    }

    /// Whether it is due to be killed, having been asked to end.
    pub(super) fn must_be_killed(&self, now: Time) -> bool {
        !self.is_gone() && self.killed().is_some_and(|killed| killed.is_due(now))
    }

    /// Whether what it has left is due to be killed. Only once.
    pub(super) fn must_rest_be_killed(&mut self, now: Time) -> bool {
        let (Phase::Exited(exit) | Phase::Settled(exit) | Phase::Released(exit)) = &mut self.phase else {
            return false;
        };
        let is_due = exit.killed.is_some_and(|killed| killed.is_due(now));
        if is_due {
            exit.killed = Some(Killed::Forced);
        }
        is_due
    }

    fn orders(&self) -> Option<&Orders> {
        match &self.phase {
            Phase::Preparing(early) | Phase::Starting(early) => Some(early.orders()),
            Phase::Running { orders, .. } => Some(orders),
            _ => None,
        }
    }

    fn orders_mut(&mut self) -> Option<&mut Orders> {
        match &mut self.phase {
            Phase::Preparing(early) | Phase::Starting(early) => Some(early.orders_mut()),
            Phase::Running { orders, .. } => Some(orders),
            _ => None,
        }
    }

    pub(super) fn exit_of(&self) -> Option<&Exit> {
        match &self.phase {
            Phase::Exited(exit) | Phase::Settled(exit) | Phase::Released(exit) => Some(exit),
            _ => None,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.running().or_else(|| self.exit_of()?.pid)
    }

    /// Its pid, if it runs.
    pub(super) fn running(&self) -> Option<u32> {
        if let Phase::Running { pid, .. } = self.phase { Some(pid) } else { None }
    }

    pub(super) fn killed(&self) -> Option<Killed> {
        match &self.phase {
            Phase::Never(killed) => *killed,
            _ => self.exit_of().map_or_else(|| self.orders()?.killed(), |exit| exit.killed),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.orders().is_some_and(Orders::is_paused)
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.phase, Phase::Starting(_) | Phase::Running { .. })
    }

    /// Whether our server prepares its environment.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.phase, Phase::Preparing(_))
    }

    /// Whether the shell has the order to start it.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting(_))
    }

    /// Whether it was reaped, or never started.
    pub(super) fn is_gone(&self) -> bool {
        !self.is_pending() && self.running().is_none()
    }

    /// Whether it may still run for the first time.
    pub(super) fn is_pending(&self) -> bool {
        self.is_preparing() || self.is_starting()
    }

    /// Whether everything is known of its end.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Settled(_) | Phase::Released(_) | Phase::Never(_))
    }

    /// Whether it has ended, and its streams with it.
    pub(super) fn is_finished(&self) -> bool {
        self.has_ended() && !self.streams.0.contains(&Stream::Open)
    }

    /// Whether it will send nothing more. A process that has lost its connection is not over while it may still turn out to
    /// have died.
    pub(super) fn is_over(&self) -> bool {
        self.never_comes() || matches!(self.phase, Phase::Never(_))
    }

    /// Whether its absence from collectives is to be reported to the members that wait for it. If its end ends the job, that is
    /// delayed.
    pub(super) fn never_comes(&self) -> bool {
        let has_lost = self.pmix == Pmix::Lost && self.losses.is_empty();
        has_lost || self.pmix == Pmix::Finalized || matches!(self.phase, Phase::Released(_))
    }

    pub(super) fn lost_connection(&self) -> bool {
        matches!(self.pmix, Pmix::Connected | Pmix::Lost)
    }

    pub(super) fn state(&self) -> ProcState {
        match (&self.phase, self.pmix) {
            (Phase::Preparing(_), _) => ProcState::PREPPED,
            (Phase::Starting(_), _) => ProcState::LAUNCH_UNDERWAY,
            (Phase::Running { .. }, Pmix::Connected | Pmix::Leaving) => ProcState::CONNECTED,
            (Phase::Running { .. }, _) => ProcState::RUNNING,
            _ => {
                let status = self.exit_of().map(|exit| exit.status);
                ended_state(status, self.killed().is_some(), self.lost_connection())
            }
        }
    }
}

impl Streams {
    pub(super) fn is_open(&self, channel: IofChannel) -> bool {
        self.with_channels().any(|(of, stream)| of == channel && stream == Stream::Open)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = IofChannel> {
        self.with_channels().filter(|(_, stream)| *stream == Stream::Open).map(|(channel, _)| channel)
    }

    /// A stream has ended. `unsaid`: that is to be reported later. `false`: it was not open.
    pub(super) fn close(&mut self, channel: IofChannel, unsaid: bool) -> bool {
        let mut open = self.0.iter_mut().zip(CHANNELS);
        let Some((stream, _)) = open.find(|(stream, of)| *of == channel && **stream == Stream::Open) else {
            return false;
        };
        *stream = if unsaid { Stream::Unsaid } else { Stream::Shut };
        true
    }

    /// The ends that are to be reported now.
    pub(super) fn say(&mut self) -> Vec<IofChannel> {
        let mut said = Vec::new();
        for (stream, channel) in self.0.iter_mut().zip(CHANNELS).filter(|(one, _)| **one == Stream::Unsaid) {
            *stream = Stream::Shut;
            said.push(channel);
        }
        said
    }

    fn with_channels(&self) -> impl Iterator<Item = (IofChannel, Stream)> {
        CHANNELS.into_iter().zip(self.0)
    }
}

const CHANNELS: [IofChannel; 3] = [IofChannel::STDOUT, IofChannel::STDERR, IofChannel::STDDIAG];

//! The processes of this node, from the request to start one until all of it is gone.
//!
//! Owns the processes that wait to be started, those that run, and the process groups that are not empty yet. Effects for a process that still waits
//! are kept for it, in order. Never decides to end a process. Reports to the node by [`Input`]s.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use phalanx_dvm::{Effect, ExitStatus, Input, ProcStart, SpawnFailure, SpawnStep};
use phalanx_spec::IofChannel;
use phalanx_wire::{Nspace, ProcId, Text};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process_group, test_kill_process_group, wait,
};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::drive::Wake;
use crate::hunt::{Caught, Hunts};
use crate::reading::Watch;
use crate::session::Session;
use crate::spawn::{BATCH, Batch, Spawner, Started};
use crate::stdio::{Pipes, Reader, StreamEvent, Writer, WriterState, Written};
use crate::strays;
use crate::trees;
use crate::warden::GroupSlot;

/// Events for the node, in order.
#[derive(Debug, Default)]
pub(crate) struct Happenings(VecDeque<Happening>);

#[derive(Debug)]
pub(crate) enum Happening {
    Input(Input<'static>),
    Stream(StreamEvent),
}

impl Happenings {
    pub(crate) fn push(&mut self, input: Input<'static>) {
        self.0.push_back(Happening::Input(input));
    }

    pub(crate) fn pop(&mut self) -> Option<Happening> {
        self.0.pop_front()
    }
}

/// All processes of this node.
#[derive(Debug)]
pub(crate) struct Procs {
    spawner: Spawner,
    waiting: VecDeque<ProcStart>,
    /// Effects for processes that wait to be started.
    held: BTreeMap<ProcId, Vec<Effect>>,
    table: BTreeMap<ProcId, Proc>,
    /// Children that have not been reaped.
    by_pid: HashMap<Pid, Option<ProcId>>,
    batches: BTreeMap<u64, InFlight>,
    next_batch: u64,
    /// Signals for processes with all their descendants.
    trees: Vec<trees::Wish>,
    hunts: Hunts,
    streams: mpsc::Sender<StreamEvent>,
    pipes: Pipes,
    wakes: mpsc::Sender<Wake>,
}

#[derive(Debug)]
struct Proc {
    /// Also the id of its process group.
    pid: Pid,
    phase: Phase,
    /// `None`: no process is left in the group that we may end.
    group: Option<GroupSlot>,
    /// See [`ProcStart::may_leave`].
    may_leave: bool,
    stdin: Option<Writer>,
    /// While it is awaited that the process waits for input.
    watch: Option<Watch>,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
    diag: Option<Reader>,
    /// Events of its streams from before the success of its start was known.
    early: Vec<StreamEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Cloned; whether its exec succeeds is not known yet.
    Starting {
        batch: u64,
        at: usize,
    },
    Running,
    Exited,
}

#[derive(Debug)]
struct InFlight {
    batch: Batch,
    members: Vec<ProcId>,
}

impl Procs {
    pub(crate) fn new(
        spawner: Spawner,
        streams: mpsc::Sender<StreamEvent>,
        wakes: mpsc::Sender<Wake>,
    ) -> Procs {
        Procs {
            spawner,
            waiting: VecDeque::new(),
            held: BTreeMap::new(),
            table: BTreeMap::new(),
            by_pid: HashMap::new(),
            batches: BTreeMap::new(),
            next_batch: 0,
            trees: Vec::new(),
            hunts: Hunts::default(),
            streams,
            pipes: Pipes::default(),
            wakes,
        }
    }

    pub(crate) fn spawn(&mut self, start: ProcStart) {
        self.held.insert(start.proc.clone(), Vec::new());
        self.waiting.push_back(start);
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Starts as many of the waiting processes as one turn of the loop may.
    pub(crate) fn start_some(&mut self, session: &mut Session, news: &mut Happenings) {
        let count = self.waiting.len().min(BATCH);
        let starts: Vec<_> = self.waiting.drain(..count).collect();
        if starts.is_empty() {
            return;
        }
        if starts.iter().any(|start| !start.may_leave) {
            session.before_first_rank(|pid| self.by_pid.contains_key(&pid));
        }
        let procs: Vec<ProcId> = starts.iter().map(|start| start.proc.clone()).collect();
        let mut results = Vec::with_capacity(count);
        match self.spawner.start(starts, &mut results) {
            Ok((batch, resolved)) => self.enter(batch, resolved, results, session, news),
            Err(errno) => {
                for proc in procs {
                    self.fail(proc, no_pipe(errno), news);
                }
            }
        }
    }

    fn enter(
        &mut self,
        batch: Batch,
        resolved: OwnedFd,
        results: Vec<(ProcId, Result<Started, SpawnFailure>)>,
        session: &mut Session,
        news: &mut Happenings,
    ) {
        let id = self.next_batch;
        self.next_batch += 1;
        let mut members = Vec::with_capacity(results.len());
        for (proc, result) in results {
            let started = match result {
                Ok(started) => started,
                Err(failure) => {
                    self.fail(proc, failure, news);
                    continue;
                }
            };
            let held = self.held.remove(&proc).unwrap_or_default();
            let phase = Phase::Starting { batch: id, at: members.len() };
            members.push(proc.clone());
            self.by_pid.insert(started.pid, Some(proc.clone()));
            let entry = self.equip(&proc, started, phase, session, news);
            // A restarted process had a group of its own.
            if let Some(slot) = self.table.insert(proc, entry).and_then(|before| before.group) {
                session.groups().remove(slot);
            }
            for effect in held {
                self.carry_out(effect, news);
            }
        }
        self.batches.insert(id, InFlight { batch, members });
        let wakes = self.wakes.clone();
        tokio::task::spawn_local(async move {
            end_of(resolved).await;
            let _ = wakes.send(Wake::BatchResolved(id)).await;
        });
    }

    fn equip(
        &self,
        proc: &ProcId,
        started: Started,
        phase: Phase,
        session: &mut Session,
        news: &mut Happenings,
    ) -> Proc {
        let mut reader = |channel, pipe| {
            let reader = Reader::start(proc.clone(), channel, pipe, self.pipes.clone(), self.streams.clone());
            reader.inspect_err(|e| {
                tracing::warn!("cannot read what {proc} writes: {e}");
                news.push(Input::OutputClosed { proc: proc.clone(), channel });
            })
        };
        let stdout = reader(IofChannel::STDOUT, started.stdout).ok();
        let stderr = reader(IofChannel::STDERR, started.stderr).ok();
        let diag = started.diag.and_then(|pipe| reader(IofChannel::STDDIAG, pipe).ok());
        let stdin = started.stdin.and_then(|pipe| Writer::new(pipe, self.pipes.clone()).ok());
        let group = Some(session.groups().add(started.pid, started.asked_first));
        let (pid, may_leave) = (started.pid, started.may_leave);
        Proc { pid, phase, group, may_leave, stdin, watch: None, stdout, stderr, diag, early: Vec::new() }
    }

    /// Carries out an effect that names a process.
    pub(crate) fn carry_out(&mut self, effect: Effect, news: &mut Happenings) {
        let proc = match &effect {
            Effect::Signal { proc, .. }
            | Effect::SignalTree { proc, .. }
            | Effect::Credit { proc, .. }
            | Effect::Stdin { proc, .. }
            | Effect::StdinEnd { proc } => proc.clone(),
            _ => return,
        };
        if let Some(held) = self.held.get_mut(&proc) {
            return held.push(effect);
        }
        let Some(entry) = self.table.get_mut(&proc) else {
            if matches!(effect, Effect::SignalTree { signal, .. } if signal == Signal::STOP.as_raw()) {
                news.push(Input::TreeStopped { proc, escaped: false });
            }
            return;
        };
        match effect {
            Effect::Signal { signal, .. } => entry.signal(signal),
            Effect::SignalTree { signal, .. } => {
                let Some(signal) = Signal::from_named_raw(signal) else { return };
                let wish = entry.wish(proc, signal);
                self.trees.push(wish);
            }
            Effect::Credit { channel, bytes, .. } => entry.credit(channel, bytes),
            Effect::Stdin { data, .. } => match &mut entry.stdin {
                Some(writer) if data.is_empty() => {
                    let news = Wake::StdinWanted(proc);
                    entry.watch = Some(Watch::start(entry.pid, writer.pipe(), self.wakes.clone(), news));
                }
                Some(writer) => {
                    writer.push(data);
                    self.write_stdin(&proc, news);
                }
                None => news.push(Input::StdinRefused { proc }),
            },
            Effect::StdinEnd { .. } => {
                if let Some(writer) = &mut entry.stdin {
                    writer.end();
                    self.write_stdin(&proc, news);
                }
            }
            _ => {}
        }
    }

    /// Signals what is left of the trees. Returns whether there were any.
    pub(crate) fn signal_trees(&mut self, news: &mut Happenings) -> bool {
        let mut wishes = std::mem::take(&mut self.trees);
        let has_any = !wishes.is_empty();
        wishes.retain(|wish| {
            let proc = wish.proc.clone();
            if wish.signal == Signal::STOP {
                self.hunts.begin(proc);
            } else if self.hunts.end(&proc) {
                news.push(Input::TreeStopped { proc, escaped: false });
            }
            wish.signal != Signal::STOP
        });
        trees::signal(&wishes);
        has_any
    }

    /// When [`Procs::stop_more`] is due: processes are being stopped.
    pub(crate) fn stops_at(&self) -> Option<Instant> {
        self.hunts.due()
    }

    /// Stops processes that descend from those that are to stand still.
    pub(crate) fn stop_more(&mut self, news: &mut Happenings) {
        let table = &self.table;
        let caught = self.hunts.step(|proc| match table.get(proc) {
            Some(entry) => entry.wish(proc.clone(), Signal::STOP),
            None => trees::Wish { proc: proc.clone(), pid: None, signal: Signal::STOP, group: None },
        });
        for Caught { proc, escaped } in caught {
            news.push(Input::TreeStopped { proc, escaped });
        }
    }

    /// Reports an event of a stream once its process is known to run. Events of failed starts and forgotten jobs are dropped.
    pub(crate) fn stream_event(&mut self, event: StreamEvent, news: &mut Happenings) {
        let (StreamEvent::Output { proc, .. } | StreamEvent::OutputClosed { proc, .. }) = &event;
        match self.table.get_mut(proc) {
            Some(Proc { phase: Phase::Starting { .. }, early, .. }) => early.push(event),
            Some(_) => news.0.push_back(Happening::Stream(event)),
            None => {}
        }
    }

    /// There may be room in a process's standard input.
    pub(crate) fn stdin_writable(&mut self, proc: &ProcId, news: &mut Happenings) {
        if let Some(writer) = self.table.get_mut(proc).and_then(|entry| entry.stdin.as_mut()) {
            writer.waited();
            self.write_stdin(proc, news);
        }
    }

    /// A process waits for input.
    pub(crate) fn stdin_wanted(&mut self, proc: ProcId, news: &mut Happenings) {
        if self.table.get_mut(&proc).is_some_and(|entry| entry.watch.take().is_some()) {
            news.push(Input::StdinTaken { proc, bytes: 0 });
        }
    }

    fn write_stdin(&mut self, proc: &ProcId, news: &mut Happenings) {
        let Some(entry) = self.table.get_mut(proc) else { return };
        let Some(writer) = &mut entry.stdin else { return };
        let Written { bytes, then } = writer.flush();
        if bytes > 0 {
            news.push(Input::StdinTaken { proc: proc.clone(), bytes });
        }
        if let Some(room) = writer.wait() {
            let (wakes, proc) = (self.wakes.clone(), proc.clone());
            tokio::task::spawn_local(async move {
                room.await;
                let _ = wakes.send(Wake::StdinWritable(proc)).await;
            });
        }
        match then {
            WriterState::Open => {}
            WriterState::Ended => entry.stdin = None,
            WriterState::Refused => {
                entry.stdin = None;
                news.push(Input::StdinRefused { proc: proc.clone() });
            }
        }
    }

    /// All children of a batch have either executed their program or given up.
    pub(crate) fn batch_resolved(&mut self, id: u64, session: &mut Session, news: &mut Happenings) {
        let Some(InFlight { mut batch, members }) = self.batches.remove(&id) else { return };
        batch.resolve();
        for proc in members {
            self.settle(&proc, id, &batch, session, news);
        }
        self.spawner.recycle(batch);
    }

    /// Reports how the start of a process went, unless that was reported before.
    fn settle(
        &mut self,
        proc: &ProcId,
        id: u64,
        batch: &Batch,
        session: &mut Session,
        news: &mut Happenings,
    ) {
        let Some(entry) = self.table.get_mut(proc) else { return };
        let Phase::Starting { batch: of, at } = entry.phase else { return };
        if of != id {
            return;
        }
        match batch.failure(at) {
            None => {
                entry.phase = Phase::Running;
                let pid = entry.pid.as_raw_pid().cast_unsigned();
                let program = batch.program(at);
                news.push(Input::Spawned { proc: proc.clone(), pid, program });
                news.0.extend(entry.early.drain(..).map(Happening::Stream));
            }
            Some(failure) => {
                if let Some(known) = self.by_pid.get_mut(&entry.pid) {
                    *known = None;
                }
                if let Some(slot) = entry.group.take() {
                    session.groups().remove(slot);
                }
                self.table.remove(proc);
                news.push(Input::SpawnFailed { proc: proc.clone(), failure });
            }
        }
    }

    fn fail(&mut self, proc: ProcId, failure: SpawnFailure, news: &mut Happenings) {
        self.held.remove(&proc);
        news.push(Input::SpawnFailed { proc, failure });
    }

    /// Reaps every child that has ended.
    pub(crate) fn reap(&mut self, session: &mut Session, news: &mut Happenings) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.ended(pid, status, session, news),
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn ended(&mut self, pid: Pid, status: WaitStatus, session: &mut Session, news: &mut Happenings) {
        let proc = match self.by_pid.remove(&pid) {
            Some(Some(proc)) => proc,
            // It never executed its program, or its job was forgotten.
            Some(None) => return,
            None if pid == session.warden() => {
                return tracing::warn!("the process that cleans up after us has ended");
            }
            None => return session.orphan_ended(pid),
        };
        // The start of a dead child is settled, even while the rest of its batch is not.
        if let Some(Phase::Starting { batch: id, .. }) = self.table.get(&proc).map(|entry| entry.phase)
            && let Some(in_flight) = self.batches.remove(&id)
        {
            self.settle(&proc, id, &in_flight.batch, session, news);
            self.batches.insert(id, in_flight);
        }
        let Some(entry) = self.table.get_mut(&proc) else { return };
        entry.phase = Phase::Exited;
        entry.watch = None;
        let read = entry.stdin.take().map_or(0, |writer| writer.read_of_first());
        if read > 0 {
            news.push(Input::StdinTaken { proc: proc.clone(), bytes: read });
        }
        for reader in [&entry.stdout, &entry.stderr, &entry.diag].into_iter().flatten() {
            reader.rank_exited();
        }
        // Usually the group is empty. Otherwise its number stays in use.
        if (entry.may_leave || test_kill_process_group(pid).is_err())
            && let Some(slot) = entry.group.take()
        {
            session.groups().remove(slot);
        }
        news.push(Input::Exited { proc, status: exit_status(status) });
    }

    /// Kills what is left of a job, and forgets the job.
    pub(crate) fn forget(&mut self, nspace: &Nspace, scratch: &Text, session: &mut Session) {
        self.waiting.retain(|start| start.proc.nspace != *nspace);
        self.held.retain(|proc, _| proc.nspace != *nspace);
        self.hunts.retain(|proc| proc.nspace != *nspace);
        self.table.retain(|proc, entry| {
            let stays = proc.nspace != *nspace;
            if !stays {
                entry.signal(Signal::KILL.as_raw());
                if let Some(slot) = entry.group.take() {
                    session.groups().remove(slot);
                }
                if let Some(known) = self.by_pid.get_mut(&entry.pid) {
                    *known = None;
                }
            }
            stays
        });
        if strays::are_possible(|pid| pid == session.warden() || self.by_pid.contains_key(&pid)) {
            strays::kill_marked(format!("PHALANX_JOB={nspace}").as_bytes());
        }
        session.discard(Path::new(OsStr::from_bytes(scratch.as_bytes())));
    }

    /// Kills everything. Returns whether there was anything to kill.
    pub(crate) fn kill_all(&mut self) -> bool {
        self.waiting.clear();
        for entry in self.table.values() {
            entry.signal(Signal::KILL.as_raw());
        }
        self.table.values().any(|entry| entry.group.is_some())
    }
}

impl Proc {
    /// A signal for it and all its descendants.
    fn wish(&self, proc: ProcId, signal: Signal) -> trees::Wish {
        // A program may take a second polite signal for impatience, so each process gets one.
        let group = Some(self.pid).filter(|_| self.group.is_some() && signal != Signal::TERM);
        let pid = Some(self.pid).filter(|_| self.phase != Phase::Exited);
        trees::Wish { proc, pid, signal, group }
    }

    /// Signals the whole group, unless it is empty.
    fn signal(&self, signal: i32) {
        if self.group.is_none() {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn credit(&self, channel: IofChannel, bytes: usize) {
        let reader = match channel {
            IofChannel::STDOUT => &self.stdout,
            IofChannel::STDERR => &self.stderr,
            IofChannel::STDDIAG => &self.diag,
            _ => return,
        };
        if let Some(reader) = reader {
            reader.credit(bytes);
        }
    }
}

/// Waits until the other end of this pipe is closed everywhere.
async fn end_of(pipe: OwnedFd) {
    if rustix::io::ioctl_fionbio(&pipe, true).is_err() {
        return;
    }
    let Ok(pipe) = pipe::Receiver::from_owned_fd_unchecked(pipe) else { return };
    loop {
        if pipe.readable().await.is_err() {
            return;
        }
        match pipe.try_read(&mut [0]) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

fn exit_status(status: WaitStatus) -> ExitStatus {
    match status.terminating_signal() {
        Some(number) => ExitStatus::Signal { number, core_dumped: status.as_raw() & CORE_DUMPED != 0 },
        None => ExitStatus::Code(status.exit_status().unwrap_or_default()),
    }
}

fn no_pipe(errno: Errno) -> SpawnFailure {
    SpawnFailure {
        step: SpawnStep::Pipe,
        subject: "the status of a start".to_owned(),
        errno: errno.raw_os_error(),
    }
}

/// WCOREFLAG.
const CORE_DUMPED: i32 = 0x80;

//! The one task that owns a node: it passes events to the node and carries out the node's decisions.
//!
//! Events reach it through bounded channels, from tasks that wait when it is busy; it never waits for any of them. A user that does not take reports
//! holds up only the processes that write what it does not read: streams have their credit, and a connection that causes further reports is not read
//! from until the user has caught up. Effects are carried out in order, but starting processes takes turns with everything else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use phalanx_core::{CloseReason, ConnId, FileLook, Time, Waiting};
use phalanx_dvm::{Effect, Input, Report, TaskId};
use phalanx_shell::collected::Written;
use phalanx_shell::listen::Listener;
use phalanx_shell::look::look_at;
use phalanx_wire::{Nspace, ProcId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;

use crate::announce::Announcer;
use crate::backlog::{Backlog, lengthens};
use crate::cleanup::Cleanups;
use crate::conn::{Conn, ConnEvent};
use crate::foreign;
use crate::handle::{Explanation, NodeChannels, Request};
use crate::link::LinkEvent;
use crate::listen::{self, WatchedListener};
use crate::logs;
use crate::neighbours::Neighbours;
use crate::procs::{Happening, Happenings, Procs};
use crate::session::Session;
use crate::spawn::Spawner;
use crate::startup::Inherited;
use crate::stdin::{Feed, StdinEvent, StdinSource};
use crate::stdio::StreamEvent;
use crate::usage;

/// Makes the decisions: [`phalanx_dvm::Node`], or a script in a test.
pub trait Decide {
    fn handle(&mut self, now: Time, input: Input<'_>, effects: &mut VecDeque<Effect>);
    /// When an [`Input::Tick`] is due if nothing else happens before.
    fn deadline(&self) -> Option<Time>;
    /// Whether reading from this connection must pause. Asked again after each input.
    fn is_full(&self, conn: ConnId) -> bool;
    fn explain(&self) -> Vec<Waiting>;
}

/// An awaited event has come.
#[derive(Debug)]
pub(crate) enum Wake {
    ConnWritable(ConnId),
    /// The peer of a closing connection has used up its time.
    ConnOverdue(ConnId),
    StdinWritable(ProcId),
    StdinWanted(ProcId),
    BatchResolved(u64),
    Looked {
        look: u64,
        file: Option<FileLook>,
    },
    Logged {
        task: TaskId,
        result: Result<(), String>,
    },
}

/// What the owner woke up for.
enum Event {
    Request(Request),
    Children,
    Wake(Wake),
    /// The user has taken this many bytes of output.
    Taken(usize),
    Time,
    /// Tools may be looking for our address.
    Announce,
    /// Processes are being stopped: the next step.
    Stop,
    Conn(ConnEvent),
    Stream(StreamEvent),
    Stdin(StdinEvent),
    Link(LinkEvent),
    /// Nothing that concerns the node.
    Nothing,
}

/// The owner of a node and of everything that the node acts on.
pub(crate) struct Owner<D> {
    decide: D,
    began: Instant,
    effects: VecDeque<Effect>,
    news: Happenings,
    stopping: bool,
    /// Notified when this process may be stopped.
    standing: Option<oneshot::Sender<()>>,
    /// It may, once all processes stand that are being stopped.
    may_stand: bool,

    session: Session,
    announcer: Announcer,
    neighbours: Neighbours,
    procs: Procs,
    cleanups: Cleanups,
    files: Written,
    conns: BTreeMap<ConnId, Conn>,
    next_conn: u64,
    /// Connections with a changed queue.
    written: BTreeSet<ConnId>,
    /// Connections that are not read from.
    held: BTreeSet<ConnId>,
    /// Those of them that have caused reports while the backlog was long.
    talkative: BTreeSet<ConnId>,
    feeds: BTreeMap<Nspace, Feed>,
    /// The sources of standard input of jobs that have no namespace yet, by request.
    sources: BTreeMap<u64, StdinSource>,
    /// Reports that the user has no room for.
    backlog: Backlog,

    channels: NodeChannels,
    children: Signal,
    wakes: (mpsc::Sender<Wake>, mpsc::Receiver<Wake>),
    conn_events: (mpsc::Sender<ConnEvent>, mpsc::Receiver<ConnEvent>),
    streams: mpsc::Receiver<StreamEvent>,
    stdin: (mpsc::Sender<StdinEvent>, mpsc::Receiver<StdinEvent>),
}

impl<D: Decide> Owner<D> {
    pub(crate) fn new(
        decide: D,
        inherited: Inherited,
        mut session: Session,
        announcer: Announcer,
        (listener, neighbours): (Listener, Neighbours),
        channels: NodeChannels,
    ) -> Result<Owner<D>> {
        // Before the first child exists.
        let children = signal(SignalKind::child()).context("cannot wait for processes")?;
        let spawner = Spawner::new(inherited, &session.marker())?;
        let wakes = mpsc::channel(QUEUE);
        let conn_events = mpsc::channel(QUEUE);
        let (streams_in, streams) = mpsc::channel(QUEUE);
        let listener = WatchedListener::new(listener).context("cannot wait for connections")?;
        tokio::task::spawn_local(listen::accept(listener, conn_events.0.clone()));
        let mut cleanups = Cleanups::default();
        announcer.note(&mut session, &mut cleanups);
        Ok(Owner {
            decide,
            began: Instant::now(),
            effects: VecDeque::new(),
            news: Happenings::default(),
            stopping: false,
            standing: None,
            may_stand: false,
            procs: Procs::new(spawner, streams_in, wakes.0.clone()),
            session,
            announcer,
            neighbours,
            cleanups,
            files: Written::default(),
            conns: BTreeMap::new(),
            next_conn: 1,
            written: BTreeSet::new(),
            held: BTreeSet::new(),
            talkative: BTreeSet::new(),
            feeds: BTreeMap::new(),
            sources: BTreeMap::new(),
            backlog: Backlog::default(),
            channels,
            children,
            wakes,
            conn_events,
            streams,
            stdin: mpsc::channel(STDIN_QUEUE),
        })
    }

    /// Runs until the node is over and all of it is gone.
    pub(crate) async fn run(mut self) {
        let timer = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(timer);
        let pulse = self.session.pulse();
        self.input(Input::Tick);
        loop {
            pulse.beat();
            self.procs.start_some(&mut self.session, &mut self.news);
            self.settle();
            if self.stopping {
                break;
            }
            match self.next(timer.as_mut()).await {
                Event::Request(request) => self.request(request),
                Event::Children => self.procs.reap(&mut self.session, &mut self.news),
                Event::Wake(wake) => self.wake(wake),
                Event::Taken(bytes) => self.input(Input::OutputTaken { bytes }),
                Event::Time => self.input(Input::Tick),
                Event::Announce => drop(self.announce()),
                Event::Stop => self.procs.stop_more(&mut self.news),
                Event::Conn(event) => self.conn_event(event),
                Event::Stream(event) => self.procs.stream_event(event, &mut self.news),
                Event::Stdin(event) => self.stdin_event(event),
                Event::Link(event) => self.link_event(event),
                Event::Nothing => {}
            }
        }
        drop(self.announcer);
        self.neighbours.end().await;
        // If a job was not brought to its end, there may be more to kill than we know: the warden does that.
        if !self.procs.kill_all() {
            self.session.end();
        }
    }

    /// The next thing that happens.
    async fn next(&mut self, mut timer: Pin<&mut Sleep>) -> Event {
        let deadline = self.decide.deadline().map(|at| (self.began + Duration::from_nanos(at.0)).into());
        if let Some(deadline) = deadline.filter(|at| *at != timer.deadline()) {
            timer.as_mut().reset(deadline);
        }
        let announce = self.announcer.deadline();
        let stop = self.procs.stops_at().map(Into::into);
        tokio::select! {
            Some(request) = self.channels.requests.recv() => Event::Request(request),
            Some(()) = self.children.recv() => Event::Children,
            Some(wake) = self.wakes.1.recv() => Event::Wake(wake),
            bytes = self.channels.taken.wait() => Event::Taken(bytes),
            () = timer, if deadline.is_some() => Event::Time,
            () = sleep_until(announce) => Event::Announce,
            () = sleep_until(stop) => Event::Stop,
            permit = self.channels.reports.reserve(), if !self.backlog.is_empty() => {
                match (permit, self.backlog.pop()) {
                    (Ok(permit), Some(report)) => permit.send(report),
                    // The user takes no more reports.
                    _ => self.backlog = Backlog::default(),
                }
                Event::Nothing
            }
            Some(event) = self.conn_events.1.recv() => Event::Conn(event),
            Some(event) = self.streams.recv() => Event::Stream(event),
            Some(event) = self.stdin.1.recv() => Event::Stdin(event),
            event = self.neighbours.next() => Event::Link(event),
            // Lets other tasks run while processes wait to be started.
            () = tokio::task::yield_now(), if self.procs.has_waiting() => Event::Nothing,
        }
    }

    /// Carries out effects, and feeds back their results, until there are none.
    fn settle(&mut self) {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                self.carry_out(effect);
            } else if let Some(piece) = self.news.pop() {
                match piece {
                    Happening::Input(input) => self.input(input),
                    Happening::Stream(event) => self.told_by_stream(event),
                }
            } else if self.procs.signal_trees(&mut self.news) {
                // Signals for trees are collected and sent together.
            } else if let Some(conn) = self.written.pop_first() {
                if let Some(queued) = self.conns.get(&conn).map(Conn::queued) {
                    self.input(Input::Writable { conn, queued });
                }
            } else {
                self.try_stand();
                return self.read_again();
            }
        }
    }

    /// Once this process stands, it stops no others.
    fn try_stand(&mut self) {
        if self.may_stand && self.procs.stops_at().is_none() {
            self.may_stand = false;
            self.standing.take().into_iter().for_each(|reply| self.neighbours.tell_when_said(reply));
        }
    }

    /// Resumes reading from connections for which there is room again.
    fn read_again(&mut self) {
        let Owner { decide, conns, held, talkative, backlog, .. } = self;
        if !backlog.is_long() {
            talkative.clear();
        }
        for conn in held.extract_if(.., |conn| !decide.is_full(*conn) && !talkative.contains(conn)) {
            if let Some(entry) = conns.get_mut(&conn) {
                entry.hold(false);
            }
        }
    }

    fn input(&mut self, input: Input<'_>) {
        let now = self.now();
        self.decide.handle(now, input, &mut self.effects);
    }

    fn now(&self) -> Time {
        Time::default().after(self.began.elapsed())
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, frame } => {
                if let Some(entry) = self.conns.get_mut(&conn) {
                    entry.push(frame);
                    self.flush(conn);
                }
            }
            Effect::Close { conn } => self.close(conn),
            Effect::WriteFile { path, at, bytes } => {
                if self.session.dir_if_possible().is_some() {
                    self.files.write(path, at, &bytes);
                }
            }
            Effect::RemoveFile { path } => self.files.remove(&path),
            Effect::LookAt { look, path, reads } => {
                let wakes = self.wakes.0.clone();
                let told = move |file| drop(wakes.blocking_send(Wake::Looked { look, file }));
                if !look_at(path, reads, told) {
                    self.news.push(Input::Looked { look, file: None });
                }
            }
            Effect::MakeScratch { path } => self.session.make(Path::new(OsStr::from_bytes(path.as_bytes()))),
            Effect::Spawn(start) => self.procs.spawn(*start),
            effect @ (Effect::Signal { .. }
            | Effect::SignalTree { .. }
            | Effect::Credit { .. }
            | Effect::Stdin { .. }
            | Effect::StdinEnd { .. }) => self.procs.carry_out(effect, &mut self.news),
            Effect::RegisterCleanup { nspace, path, what } => {
                self.cleanups.register(self.session.dir_if_possible(), &nspace, path, what);
            }
            Effect::Cleanup { nspace, paths } => self.cleanups.clean(&nspace, &paths),
            Effect::StdinCredit { nspace, bytes } => self.feeds.entry(nspace).or_default().credit(bytes),
            Effect::StdinRead { nspace, bytes } => {
                self.feeds.get(&nspace).inspect(|feed| feed.read(bytes));
            }
            Effect::Report(report) => self.report(report),
            Effect::Forget { nspace, scratch } => {
                self.feeds.remove(&nspace);
                self.procs.forget(&nspace, &scratch, &mut self.session);
                self.cleanups.job_ended(&nspace);
            }
            Effect::Inspect { proc, pid } => {
                if let Some(library) = foreign::loaded(pid, proc.nspace.as_str()) {
                    self.news.push(Input::Inspected { proc, library });
                }
            }
            Effect::Measure { survey, pids } => {
                let mut measured = Box::new(usage::measure(&pids));
                if let Some(node) = &mut measured.node {
                    node.link = self.neighbours.above();
                }
                self.news.push(Input::Measured { survey, measured });
            }
            Effect::Log { task, line } => {
                let (wakes, of) = (self.wakes.0.clone(), task.clone());
                let told = move |result| drop(wakes.blocking_send(Wake::Logged { task: of, result }));
                if let Err(why) = logs::write(line, told) {
                    self.news.push(Input::Logged { task, result: Err(why) });
                }
            }
            Effect::MayBeStopped => self.may_stand = true,
            Effect::Stop => self.stopping = true,
            effect @ (Effect::Connect { .. } | Effect::Link { .. } | Effect::Unlink { .. }) => {
                self.neighbours.carry_out(effect, &mut self.news);
            }
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Submit { request, job, stdin } => {
                self.sources.insert(request, stdin);
                self.input(Input::Submit { request, job });
            }
            Request::Control { nspace, action } => self.input(Input::Control { nspace, action }),
            Request::Withdraw => self.input(Input::Withdraw),
            Request::StandStill { reply } => {
                (self.standing, self.may_stand) = (Some(reply), false);
                self.input(Input::StandStill);
            }
            Request::StandNoLonger => {
                self.standing = None;
                self.input(Input::StandNoLonger);
            }
            Request::Shutdown => self.input(Input::Shutdown),
            // The caller may be gone by now.
            Request::Announce { reply } => {
                let _ = reply.send(self.announce());
            }
            Request::Explain { reply } => {
                drop(reply.send(Explanation { now: self.now(), waiting: self.decide.explain() }));
            }
        }
    }

    fn report(&mut self, report: Report) {
        match &report {
            Report::Accepted { request, nspace, .. } => {
                let source = self.sources.remove(request).unwrap_or(StdinSource::Empty);
                let feed = self.feeds.entry(nspace.clone()).or_default();
                feed.start(nspace.clone(), source, self.stdin.0.clone());
            }
            Report::Refused { request, .. } => drop(self.sources.remove(request)),
            Report::Ending { nspace } => return self.channels.endings.tell(nspace),
            Report::Ended(end) => self.channels.endings.forget(&end.nspace),
            _ => {}
        }
        if !self.backlog.is_empty() {
            return self.backlog.push(report);
        }
        match self.channels.reports.try_send(report) {
            Err(mpsc::error::TrySendError::Full(report)) => self.backlog.push(report),
            // The user takes no more reports.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }

    /// If the first attempt fails, a report notes it.
    fn announce(&mut self) -> Result<(), String> {
        let is_first = self.announcer.deadline().is_some();
        let announced = self.announcer.announce(&mut self.session);
        if is_first && let Err(error) = &announced {
            let text = format!("tools cannot find this launcher: {error}");
            self.report(Report::Note { nspace: None, text });
        }
        announced
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::ConnWritable(conn) => {
                if let Some(entry) = self.conns.get_mut(&conn) {
                    entry.waited();
                    self.flush(conn);
                }
            }
            Wake::ConnOverdue(conn) => {
                if let Some(entry) = self.conns.remove(&conn) {
                    entry.drop_now();
                }
            }
            Wake::StdinWritable(proc) => self.procs.stdin_writable(&proc, &mut self.news),
            Wake::StdinWanted(proc) => self.procs.stdin_wanted(proc, &mut self.news),
            Wake::Logged { task, result } => self.input(Input::Logged { task, result }),
            Wake::Looked { look, file } => self.input(Input::Looked { look, file }),
            Wake::BatchResolved(id) => self.procs.batch_resolved(id, &mut self.session, &mut self.news),
        }
    }

    fn conn_event(&mut self, event: ConnEvent) {
        match event {
            ConnEvent::Accepted(accepted) => {
                drop(self.announce());
                let conn = ConnId(self.next_conn);
                self.next_conn += 1;
                let peer = accepted.peer;
                self.conns.insert(conn, Conn::start(conn, accepted, self.conn_events.0.clone()));
                self.input(Input::Opened { conn, peer });
            }
            // Data that was read before we closed no longer matters.
            ConnEvent::Bytes { conn, .. } | ConnEvent::Closed { conn, .. }
                if self.conns.get(&conn).is_none_or(Conn::is_closing) => {}
            ConnEvent::Bytes { conn, data } => {
                self.input(Input::Bytes { conn, data: &data });
                let talks = self.backlog.is_long() && self.effects.iter().any(lengthens);
                if let Some(entry) = self.conns.get_mut(&conn) {
                    entry.seen(data.len());
                    if talks {
                        self.talkative.insert(conn);
                    }
                    if talks || self.decide.is_full(conn) {
                        entry.hold(true);
                        self.held.insert(conn);
                    }
                }
            }
            ConnEvent::Closed { conn, reason } => self.lost(conn, reason),
        }
    }

    fn told_by_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Output { proc, channel, data } => {
                self.input(Input::Output { proc, channel, data });
            }
            StreamEvent::OutputClosed { proc, channel } => self.input(Input::OutputClosed { proc, channel }),
        }
    }

    fn link_event(&mut self, event: LinkEvent) {
        let now = self.now();
        let Owner { neighbours, decide, effects, .. } = self;
        neighbours.told(event, |input| decide.handle(now, input, effects));
    }

    fn stdin_event(&mut self, event: StdinEvent) {
        match event {
            StdinEvent::Data { nspace, data } => self.input(Input::Stdin { nspace, data }),
            StdinEvent::End { nspace, error } => {
                if let Some(text) = error {
                    self.report(Report::Note { nspace: Some(nspace.clone()), text });
                }
                self.input(Input::StdinEnd { nspace });
            }
        }
    }

    /// Writes the queue of a connection, and arranges for the rest.
    fn flush(&mut self, conn: ConnId) {
        let Some(entry) = self.conns.get_mut(&conn) else { return };
        if entry.flush().is_err() {
            return self.lost(conn, CloseReason::Error);
        }
        if let Some(room) = entry.wait() {
            let wakes = self.wakes.0.clone();
            tokio::task::spawn_local(async move {
                room.await;
                let _ = wakes.send(Wake::ConnWritable(conn)).await;
            });
        }
        if !entry.is_closing() {
            self.written.insert(conn);
        } else if entry.queued() == 0
            && let Some(entry) = self.conns.remove(&conn)
        {
            entry.linger();
        }
    }

    /// Ends a connection when its queue has left, or when its peer has used up its time.
    fn close(&mut self, conn: ConnId) {
        let Some(entry) = self.conns.get_mut(&conn) else { return };
        entry.close();
        self.news.push(Input::Closed { conn, reason: CloseReason::Local });
        if entry.queued() > 0 {
            let wakes = self.wakes.0.clone();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(CLOSE_WAIT).await;
                let _ = wakes.send(Wake::ConnOverdue(conn)).await;
            });
        }
        self.flush(conn);
    }

    fn lost(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(entry) = self.conns.remove(&conn) {
            let told = entry.is_closing();
            entry.drop_now();
            if !told {
                self.news.push(Input::Closed { conn, reason });
            }
        }
    }
}

/// Never returns without a moment.
async fn sleep_until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

const QUEUE: usize = 256;
const STDIN_QUEUE: usize = 4;
const CLOSE_WAIT: Duration = Duration::from_secs(2);

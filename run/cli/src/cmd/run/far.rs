//! A job in a DVM that is already running: px is a tool of its server, spawns the job, reads its output and feeds its input.
//!
//! The library calls us on its own thread. What it brings waits in a bounded queue for the user's side. When that is full, the library waits, then
//! its server, and in the end the ranks. Calls that may take long have a thread each.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use phalanx_core::output::Tag;
use phalanx_dvm::{Control, Placed, Report, STANDS_STILL};
use phalanx_node::Signals;
use phalanx_wire::{Nspace, ProcId};
use pmix::{Event, Info, InfoList, IofChannel, Status, Tool, Value, Verdict, keys};
use tokio::sync::{Notify, oneshot};

use crate::args::tools::ServerArgs;
use crate::cmd::run::report::ExitReport;
use crate::cmd::run::runner::{JobReports, Runner};
use crate::cmd::run::user::User;
use crate::detached::Keep;
use crate::failure::Failure;
use crate::keepalive::Keepalive;
use crate::resolve::Run;
use crate::tool;

mod below;
mod ending;
mod input;
mod map;
mod rest;
mod support;

use support::Needs;

/// A job in another process's DVM, seen from here.
pub(crate) struct Far {
    tool: Arc<Tool>,
    shared: Arc<Shared>,
}

/// Shared by the threads of the library, of calls, and of the user.
#[derive(Default)]
struct Shared {
    state: Mutex<Received>,
    /// There is room in the queue, or the job has ended.
    changed: Condvar,
    news: Notify,
    /// Notified when `ending` is set.
    ending: Notify,
}

#[derive(Default)]
struct Received {
    reports: VecDeque<Report>,
    bytes: usize,
    /// How many reports were taken.
    taken: u64,
    /// Pending requests that must not wait for the queue to be read.
    urgent: u32,
    /// Nothing more comes from the server.
    over: bool,
    /// The job that we run.
    top: Option<Nspace>,
    /// The report of an answer that has come, or of an end that is known, follows whatever the server does.
    concluding: bool,
    /// Messages of the server before the job ran.
    said: String,
    running: bool,
    /// Pids of ranks, if output is to be tagged with them.
    pids: BTreeMap<ProcId, u32>,
    /// Jobs that have ended, with the contents of the event.
    ends: Vec<(Nspace, Vec<Info>)>,
    /// Only the rest of the job's output follows.
    ending: bool,
    /// The signal by which the user has requested the end.
    asked_to_end: Option<i32>,
}

/// Where the ranks would go, without starting the job.
pub(crate) fn dry_run(run: &Run, server: &ServerArgs) -> Result<Placed, Failure> {
    let tool = tool::attach(server, run.voice.json)?;
    if let Some(error) = Needs::of(run).lacking(&tool) {
        return Err(Failure::told(&error));
    }
    map::of_wish(&tool, &run.request).map_err(|error| Failure::told(&error))
}

/// Runs the job, from the connection to the exit code.
pub(crate) async fn job(
    run: &Run,
    server: &ServerArgs,
    (keep, report): (Option<Rc<Keep>>, Option<ExitReport>),
) -> Result<u8, Failure> {
    let mut signals = Signals::new().map_err(|e| Failure::new("cannot watch for signals").because(e))?;
    let far = Arc::new(Far::connect(server, run.voice.json)?);
    far.begin(run);
    let mut user = User::new(run, Runner::Server(far.clone()), keep, report, Keepalive::of_environment(None));
    let end = user.follow(&mut JobReports::Server(&far), &mut signals).await;
    let code = user.conclude(end, &mut signals).await;
    far.shared.close();
    code
}

impl Far {
    fn connect(server: &ServerArgs, as_json: bool) -> Result<Far, Failure> {
        let tool = tool::attach_as(server, &[Info::new(keys::LAUNCHER, true)], as_json)?;
        let servers =
            tool.servers().map_err(|error| tool::failed("cannot tell which server it is", &error))?;
        let server = servers.into_iter().next().map(|attached| attached.server);
        let shared = Arc::new(Shared::default());
        let to = shared.clone();
        let output = move |from: &ProcId, channel: IofChannel, data: &[u8], _: &[Info]| {
            let is_server = server.as_ref().is_some_and(|server| server.nspace == from.nspace);
            match (is_server, data.is_empty()) {
                (true, _) => to.said(&String::from_utf8_lossy(data)),
                (false, true) => to.push(Report::OutputEnd { proc: from.clone(), channel }),
                (false, false) => {
                    to.push(Report::Output { proc: from.clone(), pid: None, channel, data: data.into() });
                }
            }
        };
        let watched = tool.on_unasked_output(output).and_then(|()| {
            let to = shared.clone();
            tool.register_event_handler(&[Status::EVENT_JOB_END], &[], move |event: &Event, _: &[Info]| {
                to.ended(&event.info);
                Verdict { status: Status::SUCCESS, results: Vec::new() }
            })?;
            let to = shared.clone();
            tool.register_event_handler(&[Status::ERR_LOST_CONNECTION], &[], move |_: &Event, _: &[Info]| {
                to.close();
                Verdict { status: Status::SUCCESS, results: Vec::new() }
            })
        });
        watched.map_err(|error| tool::failed("cannot follow jobs of the server", &error))?;
        Ok(Far { tool: Arc::new(tool), shared })
    }

    /// The server's address.
    pub(crate) fn server(&self) -> Option<String> {
        let attached = self.tool.servers().ok()?.into_iter().next()?;
        Some(attached.uri.to_string())
    }

    /// Starts the job and waits for its end, on a thread that ends with the process at the latest.
    fn begin(&self, run: &Run) {
        let (mut job, apps) = run.request.to_spawn();
        job.push(Info::new(keys::NOTIFY_COMPLETION, true));
        let (tool, shared) = (self.tool.clone(), self.shared.clone());
        let feed = input::Feed::of(run);
        let limit = run.request.timeout;
        let over_at = limit.and_then(|limit| Instant::now().checked_add(limit));
        let (wanted, is_shown) = (Needs::of(run), !run.display.is_empty());
        let names_pids = run.output.tag == Tag::Detailed;
        // A server that refuses the job may end before the refusal is reported.
        self.shared.state().concluding = true;
        thread::spawn(move || {
            if let Some(error) = wanted.lacking(&tool) {
                return shared.push(Report::Refused { request: 0, error });
            }
            let nspace = match tool.spawn(&job, &apps) {
                Ok(nspace) => nspace,
                Err(error) => return ending::not_started(&tool, &shared, &error),
            };
            let placed = map::of_job(&tool, &nspace).unwrap_or_else(|error| {
                if is_shown {
                    shared.said(&format!("cannot show where the ranks of {nspace} are: {error}"));
                }
                Placed::default()
            });
            if names_pids {
                shared.state().pids = ending::pids(&tool, &nspace);
            }
            shared.accepted(&nspace, placed);
            rest::watch(tool.clone(), shared.clone(), nspace.clone(), limit);
            let reading = feed.and_then(|feed| feed.start(&tool, &nspace));
            let told = shared.wait_for_end(&nspace);
            if let Some(reading) = reading {
                reading.finish();
            }
            if let Some(told) = told {
                // Read here and not while holding the lock: the library's thread needs the lock, too.
                let asked_to_end = shared.asked_to_end();
                let limit = limit.map(|limit| (limit, over_at.is_some_and(|at| Instant::now() >= at)));
                let end = ending::of(&tool, &nspace, &told, limit, asked_to_end);
                below::follow(&tool, &shared, end);
            }
        });
    }

    /// The first report is the job's name, unless too much else comes before it.
    pub(crate) async fn recv(&self) -> Option<Report> {
        loop {
            {
                let mut state = self.shared.state();
                let held = !state.running && !state.over && state.bytes < MOST_WAITING;
                let is_output =
                    |report: &mut Report| matches!(report, Report::Output { .. } | Report::OutputEnd { .. });
                if let Some(mut report) = state.reports.pop_front_if(|report| !(held && is_output(report))) {
                    if let Report::Output { proc, pid, .. } = &mut report {
                        *pid = state.pids.get(proc).copied();
                    }
                    state.bytes -= size(&report);
                    state.taken += 1;
                    self.shared.changed.notify_all();
                    return Some(report);
                }
                if state.over && !state.concluding {
                    return None;
                }
            }
            self.shared.news.notified().await;
        }
    }

    /// Waits until the job is about to end.
    pub(crate) async fn ending(&self) {
        while !self.shared.state().ending {
            self.shared.ending.notified().await;
        }
    }

    pub(crate) async fn control(&self, nspace: &Nspace, action: Control) {
        let directive = match action {
            Control::Signal(number) => Info::new(keys::JOB_CTRL_SIGNAL, number),
            Control::Suspend => Info::new(keys::JOB_CTRL_PAUSE, true),
            Control::Resume => Info::new(keys::JOB_CTRL_RESUME, true),
            Control::Terminate { .. } => Info::new(keys::JOB_CTRL_TERMINATE, true),
            Control::Kill => Info::new(keys::JOB_CTRL_KILL, true),
        };
        let mut directives = vec![directive];
        if matches!(action, Control::Suspend | Control::Resume) {
            directives.push(Info::new(STANDS_STILL, true));
        }
        {
            let mut state = self.shared.state();
            state.urgent += 1;
            if let Control::Terminate { signal } = action {
                state.asked_to_end.get_or_insert(signal);
            }
            self.shared.changed.notify_all();
        }
        let (tool, target) = (self.tool.clone(), ProcId::all(nspace));
        let (done, wait) = oneshot::channel();
        thread::spawn(move || {
            // A job that has ended meanwhile needs nothing.
            if let Err(error) = tool.job_control(&[target], &directives) {
                tracing::debug!(%error, "the server did not act on the job");
            }
            let _ = done.send(());
        });
        let _ = wait.await;
        self.shared.state().urgent -= 1;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Received> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, unless an urgent request needs this thread, which also serves the connection to the server.
    fn push(&self, report: Report) {
        let full = |state: &mut Received| state.bytes >= MOST_WAITING && state.urgent == 0 && !state.over;
        let mut state = self.changed.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        state.bytes += size(&report);
        state.reports.push_back(report);
        drop(state);
        self.news.notify_one();
    }

    /// A message of the server. Before the job runs, it may be the reason why it does not.
    fn said(&self, text: &str) {
        if self.state().running {
            return self.push(Report::Note { nspace: None, text: text.trim_end().to_owned() });
        }
        let mut state = self.state();
        if state.said.len() < MOST_SAID {
            state.said.push_str(text);
        }
    }

    /// The signal by which the user has requested the end.
    fn asked_to_end(&self) -> Option<i32> {
        self.state().asked_to_end
    }

    /// Everything that is known has been reported.
    fn told_all(&self) {
        self.state().concluding = false;
        self.news.notify_one();
    }

    fn accepted(&self, nspace: &Nspace, placed: Placed) {
        let report = Report::Accepted { request: 0, nspace: nspace.clone(), placed: Arc::new(placed) };
        let mut state = self.state();
        state.running = true;
        state.top = Some(nspace.clone());
        state.concluding = state.ends.iter().any(|(ended, _)| ended == nspace);
        state.bytes += size(&report);
        let said = std::mem::take(&mut state.said);
        let notes = said.lines().rev().map(|line| Report::Note { nspace: None, text: line.to_owned() });
        for note in notes {
            state.bytes += size(&note);
            state.reports.push_front(note);
        }
        // Its first output may be here already, and is tagged with the job's name.
        state.reports.push_front(report);
        drop(state);
        self.news.notify_one();
    }

    fn ended(&self, info: &[Info]) {
        let Some(Value::Proc(whole)) = info.find(keys::EVENT_AFFECTED_PROC) else { return };
        let mut state = self.state();
        state.concluding |= state.top.as_ref() == Some(&whole.nspace);
        state.ends.push((whole.nspace.clone(), info.to_vec()));
        drop(state);
        self.changed.notify_all();
    }

    /// None: the server is lost.
    fn wait_for_end(&self, nspace: &Nspace) -> Option<Vec<Info>> {
        let waits =
            |state: &mut Received| !state.over && !state.ends.iter().any(|(ended, _)| ended == nspace);
        let state = self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        state.ends.iter().find(|(ended, _)| ended == nspace).map(|(_, told)| told.clone())
    }

    /// Waits until another job has ended, for a while. `false`: the server is lost.
    fn wait_for_another_end(&self, longest: Duration) -> bool {
        let state = self.state();
        let before = state.ends.len();
        let waits = |state: &mut Received| !state.over && state.ends.len() == before;
        let waited = self.changed.wait_timeout_while(state, longest, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.over
    }

    fn close(&self) {
        self.state().over = true;
        self.changed.notify_all();
        self.news.notify_one();
    }
}

fn size(report: &Report) -> usize {
    match report {
        Report::Output { data, .. } => data.len() + 64,
        _ => 64,
    }
}

const MOST_WAITING: usize = 256 << 10;
const MOST_SAID: usize = 16 << 10;

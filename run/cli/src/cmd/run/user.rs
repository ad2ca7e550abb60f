//! The user's side of one job: shows the ranks' output, passes on signals, and prints how the job ended.
//!
//! Reports are taken only when there is room for what they bring: that is what slows ranks down when their output is not read.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phalanx_core::output::{Channel, Stream};
use phalanx_dvm::map::{NodeResources, Placement};
use phalanx_dvm::{Control, JobEnd, JobVerdict, Limits, Placed, Report};
use phalanx_node::{SignalEvent, Signals, stop_self};
use phalanx_wire::{InfoList, Nspace, plain};
use pmix::keys;
use rustix::io::Errno;

use crate::cmd::run::below::Below;
use crate::cmd::run::foreign;
use crate::cmd::run::plan;
use crate::cmd::run::report::ExitReport;
use crate::cmd::run::runner::{JobReports, Runner};
use crate::cmd::run::status::Status;
use crate::detached::Keep;
use crate::failure::{EXIT_FAILURE, EXIT_SIGHUP, EXIT_SIGPIPE, Failure};
use crate::keepalive::Keepalive;
use crate::outer;
use crate::output::Output;
use crate::render::{ending, hint, words};
use crate::resolve::Run;
use crate::standstill::Standstill;

/// The user's side of one job.
pub(crate) struct User<'a> {
    run: &'a Run,
    runner: Runner,
    /// The files that keep the output, if the job is detached.
    keep: Option<Rc<Keep>>,
    keepalive: Keepalive<'a>,
    output: Output,
    status: Status,
    nspace: Option<Nspace>,
    /// Living descendants of the job.
    below: Below,
    /// How often we were asked to end the job.
    asked_to_end: u32,
    /// By SIGHUP only: jobs with `PMIX_NOHUP` go on.
    hung_up: bool,
    /// Since when the job is about to end: from then on, waiting for readers of output is limited.
    ending: Option<Instant>,
    /// The action to apply as soon as the job has a name.
    postponed: Option<Control>,
    /// When a job that the user has withdrawn is given up if it has neither begun nor been refused.
    given_up_at: Option<Instant>,
    standstill: Standstill,
    /// Notes of the runtime that were shown.
    noted: BTreeSet<String>,
    /// The exit code for the case that px cannot write any more.
    unwritable: Option<u8>,
    /// An error occurred that the job knows nothing of.
    trouble: bool,
    /// A descendant has appeared after the end was requested.
    late_below: bool,
    /// The job was to go on without the terminal, but could not be found there.
    unfindable: bool,
    /// The outer job that has ended the rank that started us.
    outer: Option<Nspace>,
    /// A user was watching at the beginning.
    on_terminal: bool,
    report: Option<ExitReport>,
}

impl<'a> User<'a> {
    pub(crate) fn new(
        run: &'a Run,
        runner: Runner,
        keep: Option<Rc<Keep>>,
        report: Option<ExitReport>,
        keepalive: Keepalive<'a>,
    ) -> User<'a> {
        let ranks = run.request.apps.iter().map(|app| app.procs).sum();
        let voice = run.voice;
        let mut output = Output::new(run.output.clone(), ranks);
        if let Some(keep) = &keep {
            output.keep();
            keep.take_noted().into_iter().for_each(|noted| output.note_ranks(noted));
        }
        let on_terminal = output.has_person();
        let status = Status::new(on_terminal && !voice.quiet && !voice.json);
        User {
            run,
            runner,
            keep,
            keepalive,
            output,
            status,
            nspace: None,
            below: Below::default(),
            asked_to_end: 0,
            hung_up: false,
            ending: None,
            postponed: None,
            given_up_at: None,
            standstill: Standstill::default(),
            noted: BTreeSet::new(),
            unwritable: None,
            trouble: false,
            late_below: false,
            unfindable: false,
            outer: None,
            on_terminal,
            report,
        }
    }

    /// Runs until the job has ended, or the node is gone.
    pub(crate) async fn follow(
        &mut self,
        reports: &mut JobReports<'_>,
        signals: &mut Signals,
    ) -> Result<JobEnd, Failure> {
        loop {
            let deadlines = [self.output.deadline(), self.status.deadline(), self.below.deadline()];
            let deadline = deadlines.into_iter().flatten().min();
            let (full, empty) = (self.output.is_full(), self.output.is_empty());
            let may_end = self.ending.is_none() && !self.below.is_top_over();
            let impatient = self.ending.and_then(|since| self.output.patience_over(since, self.patience()));
            tokio::select! {
                biased;
                signal = signals.next() => self.on_signal(signal).await,
                () = self.keepalive.lost() => self.end_job(SIGTERM).await,
                () = ending(&self.runner, self.nspace.as_ref()), if may_end => self.on_ending(),
                written = self.output.flush(), if !empty => self.on_written(written).await,
                report = reports.recv(), if !full => match report {
                    Some(report) => {
                        let was_named = self.nspace.is_some();
                        if let Some(end) = self.on_report(report)? {
                            return Ok(end);
                        }
                        if self.nspace.is_some() != was_named {
                            if let Some(action) = self.postponed.take() {
                                self.control(action).await;
                            }
                            if self.standstill.is_asked() {
                                self.suspend().await;
                            }
                        }
                        if std::mem::take(&mut self.late_below) {
                            self.control(self.how_to_end(SIGTERM)).await;
                        }
                        if std::mem::take(&mut self.unfindable) {
                            self.end_job(SIGTERM).await;
                        }
                    }
                    None => return Err(Failure::new(reports.loss())),
                },
                // Comes after earlier reports: there may be a job by now, with ranks to pause.
                () = self.standstill.may_stop() => self.stop().await,
                () = sleep_until(self.given_up_at), if self.nspace.is_none() => {
                    return Err(self.not_started("its server had not started it yet"));
                }
                () = sleep_until(impatient) => self.give_up_readers(self.patience()),
                () = sleep_until(deadline) => {
                    let now = Instant::now();
                    self.output.tick(now);
                    self.status.tick(now, &mut self.output);
                    if let Some(text) = self.below.overdue(now) {
                        self.say(&hint::failure(&Failure::new(text), self.run.voice.json));
                        self.on_ending();
                        self.control(Control::Terminate { signal: SIGTERM }).await;
                    }
                }
            }
        }
    }

    fn on_report(&mut self, report: Report) -> Result<Option<JobEnd>, Failure> {
        let now = Instant::now();
        self.let_go(&report);
        match report {
            Report::Starting { done, of } => {
                self.status.progress(now, "starting", (done, of, "daemons"), &mut self.output);
            }
            // The job gets a report of its own in either case.
            Report::Ready | Report::NotReady { .. } => {}
            Report::Refused { error, .. } if self.asked_to_end > 0 => return Err(self.not_started(&error)),
            Report::Refused { error, .. } => return Err(Failure::told(&error)),
            Report::Accepted { nspace, placed, .. } => self.on_accepted(nspace, &placed),
            Report::Progress { phase, done, of, .. } => {
                self.status.progress(now, phase, (done, of, "ranks"), &mut self.output);
            }
            Report::Output { proc, pid, channel, data } => {
                self.status.make_way(now, &mut self.output);
                self.output.data(now, (&Stream { proc, channel: Channel::of(channel) }, pid), &data);
                self.file_trouble();
            }
            Report::OutputEnd { proc, channel } => {
                self.output.end(now, &Stream { proc, channel: Channel::of(channel) });
                self.file_trouble();
            }
            Report::Logged { proc, channel, text } => {
                self.status.make_way(now, &mut self.output);
                self.output.aside(now, &Stream { proc, channel: Channel::of(channel) }, &text);
                self.file_trouble();
            }
            Report::Note { text, .. } => self.note_once(text),
            // Arrives another way, past the reports.
            Report::Ending { .. } => {}
            Report::Spawned { nspace, placed, parent, info, elsewhere } => {
                if parent.is_some() && (parent == self.nspace || self.below.has(parent.as_ref())) {
                    self.below.add(nspace.clone(), info.is_set(keys::NOHUP));
                    self.late_below = self.asked_to_end > 0;
                }
                let hosts = hosts(&placed);
                if let Err(failure) = self.output.add_job(&nspace, hosts, &info, elsewhere) {
                    self.say(&hint::failure(&failure, self.run.voice.json));
                }
            }
            Report::Ended(end) if self.nspace.as_ref() == Some(&end.nspace) => {
                let limit = self.run.request.timeout;
                let left = limit.map(|limit| (limit, now + limit.saturating_sub(end.duration)));
                let well = (end.exit_code == 0 && self.asked_to_end == 0) || self.hung_up;
                let end = self.below.top_ended(*end, left);
                if end.is_none() && well {
                    // The descendants go on, and so does their output.
                    self.ending = None;
                }
                return Ok(end);
            }
            Report::Ended(end) => {
                self.output.forget_job(&end.nspace);
                self.file_trouble();
                if self.below.has(Some(&end.nspace)) {
                    self.tell_of_below(&end);
                    return Ok(self.below.ended(&end.nspace));
                }
            }
        }
        Ok(None)
    }

    /// A descendant has ended. One that did not start concerns only its parent, which knows.
    fn tell_of_below(&mut self, end: &JobEnd) {
        let told = match &end.verdict {
            JobVerdict::Success | JobVerdict::NotStarted { .. } | JobVerdict::DvmStopped { .. } => return,
            // The user has requested it, and gets the message for the top job.
            JobVerdict::Cancelled { .. } if !self.below.is_top_over() => return,
            JobVerdict::ParentEnded { .. } => false,
            // Jobs of the same family may end it.
            JobVerdict::Killed { by, .. } => !self.is_of_family(&by.nspace),
            _ => true,
        };
        if told {
            self.below.fail(end.exit_code);
        }
        let lines = end.lines().into_iter().enumerate();
        for (index, line) in lines {
            let line = format!("job {}: {line}", end.nspace);
            self.say(&match index {
                0 if told => hint::failure(&Failure::new(line), self.run.voice.json),
                _ => hint::note(&line, self.run.voice.json),
            });
        }
    }

    fn is_of_family(&self, nspace: &Nspace) -> bool {
        self.nspace.as_ref() == Some(nspace) || self.below.has(Some(nspace))
    }

    /// The job runs: the terminal need not wait any longer.
    fn let_go(&mut self, report: &Report) {
        let Some(keep) = &self.keep else { return };
        let here = || self.nspace.as_ref().map(|nspace| (nspace, self.output.ranks()));
        let (runs, job) = match report {
            Report::Progress { phase: "starting", done, of, .. } => (done == of, here()),
            Report::Output { .. } | Report::OutputEnd { .. } => (true, here()),
            Report::Accepted { nspace, placed, .. } => {
                (matches!(self.runner, Runner::Server(_)), Some((nspace, placed.map.procs.len())))
            }
            _ => return,
        };
        if let (true, Some((nspace, ranks))) = (runs, job)
            && keep.let_go(nspace, ranks, self.runner.server(), self.run.voice.json).is_err()
        {
            // Reported at the end, in place of a signal that was never sent.
            self.unwritable = Some(EXIT_FAILURE);
            self.unfindable = true;
        }
    }

    fn on_accepted(&mut self, nspace: Nspace, placed: &Placed) {
        let Run { voice, display, request, .. } = self.run;
        self.output.set_job(&nspace, hosts(placed));
        if voice.verbose > 0 && !voice.json {
            let (ranks, nodes) = (placed.map.procs.len(), placed.map.nodes.len());
            self.note(&format!(
                "job {nspace}: {} on {}",
                words::count(ranks, "rank"),
                words::count(nodes, "node")
            ));
        }
        let shown = plan::show(display, &placed.nodes, &placed.map, request, voice.json);
        if !shown.is_empty() {
            self.say(&plain::lines(shown.trim_end_matches('\n')));
        }
        self.nspace = Some(nspace);
    }

    /// Shows a note, unless px is quiet.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.run.voice.quiet {
            self.say(&hint::note(text, self.run.voice.json));
        }
    }

    /// A note often holds for every further job that the ranks start: it is shown once.
    fn note_once(&mut self, text: String) {
        if !self.noted.contains(&text) {
            self.note(&text);
            if self.noted.len() < MOST_NOTED {
                self.noted.insert(text);
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.status.clear(&mut self.output);
        self.output.say(text);
    }

    fn file_trouble(&mut self) {
        if let Some(failure) = self.output.take_trouble() {
            self.trouble = true;
            self.say(&hint::failure(&failure, self.run.voice.json));
        }
    }

    async fn on_signal(&mut self, signal: SignalEvent) {
        self.hung_up &= signal == SignalEvent::Hangup || !signal.is_wish_to_end();
        match signal {
            SignalEvent::Interrupt => self.end_job(SIGINT).await,
            SignalEvent::Terminate => {
                if self.asked_to_end == 0 {
                    self.outer = outer::job_that_ends_us().and_then(|job| Nspace::new(&job).ok());
                }
                self.end_job(SIGTERM).await;
            }
            SignalEvent::Hangup => {
                self.hung_up |= self.asked_to_end == 0;
                self.end_job(SIGHUP).await;
            }
            SignalEvent::Quit => self.end_job(SIGQUIT).await,
            SignalEvent::Suspend if self.standstill.is_asked() => {}
            SignalEvent::Suspend => self.suspend().await,
            SignalEvent::Resume => {
                self.go_on().await;
                if self.nspace.is_some() {
                    self.control(Control::Resume).await;
                }
            }
            SignalEvent::Forward(number) => self.control(Control::Signal(number)).await,
            SignalEvent::Resize => {}
        }
    }

    /// Stops the ranks first, then this process. A job without a name has no ranks yet, and gets none meanwhile.
    async fn suspend(&mut self) {
        let named = self.nspace.is_some();
        if named {
            self.control(Control::Suspend).await;
        }
        // Completes after the ranks have been stopped: requests are carried out in order.
        self.standstill.ask(self.runner.stand_still(named).await);
    }

    async fn stop(&mut self) {
        if let Err(error) = self.standstill.stop(stop_self) {
            self.note(&format!("cannot stop: {error}"));
            self.go_on().await;
        }
    }

    async fn go_on(&mut self) {
        if self.standstill.go_on() {
            self.runner.stand_no_longer().await;
        }
    }

    /// Ends the job orderly the first time, then at once.
    async fn end_job(&mut self, signal: i32) {
        self.asked_to_end += 1;
        self.on_ending();
        let action = self.how_to_end(signal);
        if self.asked_to_end == 1 && signal == SIGINT && self.output.has_person() {
            self.note("ending the job; Ctrl-C again kills it");
        }
        self.control(action).await;
    }

    fn how_to_end(&self, signal: i32) -> Control {
        if self.asked_to_end > 1 { Control::Kill } else { Control::Terminate { signal } }
    }

    /// From now on, only the rest of the output follows.
    fn on_ending(&mut self) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.output.make_room();
        }
    }

    /// How long a reader may take nothing of the rest: as long as the ranks have to end, but only briefly after a second request to end.
    fn patience(&self) -> Duration {
        let grace = self.run.request.kill_after.unwrap_or_else(|| Limits::default().kill_grace);
        if self.asked_to_end > 1 { grace.min(AT_ONCE) } else { grace }
    }

    fn give_up_readers(&mut self, idle: Duration) {
        if let Some(since) = Instant::now().checked_sub(idle) {
            self.output.give_up(since);
        }
    }

    async fn control(&mut self, action: Control) {
        let ends = matches!(action, Control::Terminate { .. } | Control::Kill);
        match &self.nspace {
            Some(nspace) if ends && self.hung_up => {
                for job in std::iter::once(nspace).chain(self.below.hung_up()) {
                    self.runner.control(job, action).await;
                }
            }
            Some(nspace) => {
                for job in std::iter::once(nspace).chain(self.below.living()) {
                    self.runner.control(job, action).await;
                }
            }
            None => {
                if let Control::Terminate { .. } | Control::Kill = action {
                    let limit = self.runner.withdraw().await;
                    self.given_up_at = self.given_up_at.or(limit.map(|limit| Instant::now() + limit));
                }
                self.postponed = Some(action);
            }
        }
    }

    /// The user has ended the job before it had begun.
    fn not_started(&self, why: &str) -> Failure {
        let signal = match self.postponed {
            Some(Control::Terminate { signal }) => signal,
            _ => SIGTERM,
        };
        let failure = Failure::new("the job was not started").because(why);
        Failure { exit_code: u8::try_from(128 + signal).unwrap_or(EXIT_FAILURE), ..failure }
    }

    /// A reader that is gone ends the job, as SIGPIPE would have ended the program without us. A detached job goes on.
    async fn on_written(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.cannot_write(error);
            if self.asked_to_end == 0 && self.keep.is_none() {
                self.end_job(SIGPIPE).await;
            }
        }
    }

    fn cannot_write(&mut self, error: std::io::Error) {
        if let Some(keep) = &self.keep {
            return keep.cannot_go_on(&error);
        }
        let gone = error.kind() == ErrorKind::BrokenPipe;
        // A hung-up terminal is not a terminal any more; SIGHUP only reaches its foreground processes.
        let hung_up = self.on_terminal && error.raw_os_error() == Some(Errno::IO.raw_os_error());
        self.unwritable.get_or_insert(match (gone, hung_up) {
            (true, _) => EXIT_SIGPIPE,
            (_, true) => EXIT_SIGHUP,
            _ => EXIT_FAILURE,
        });
        if !gone && !hung_up {
            let failure = Failure::new("cannot write output").because(error);
            self.say(&hint::failure(&failure, self.run.voice.json));
        }
    }

    /// Shows what is left, prints how the job ended, and returns the exit code.
    pub(crate) async fn conclude(
        mut self,
        end: Result<JobEnd, Failure>,
        signals: &mut Signals,
    ) -> Result<u8, Failure> {
        self.go_on().await;
        self.status.clear(&mut self.output);
        self.output.finish();
        self.file_trouble();
        let end = end.map(|end| self.of_outer(end));
        let mut code = match &end {
            Ok(end) => self.tell(end),
            Err(_) => EXIT_FAILURE,
        };
        self.on_ending();
        self.write_rest(signals).await;
        if self.say_undelivered() {
            self.write_rest(signals).await;
        }
        if self.trouble && code == 0 {
            code = EXIT_FAILURE;
        }
        end.map(|_| self.unwritable.unwrap_or(code))
    }

    /// If an outer job has ended this one by a signal, the user did not request it.
    fn of_outer(&mut self, mut end: JobEnd) -> JobEnd {
        if matches!(end.verdict, JobVerdict::Cancelled { signal: SIGTERM })
            && let Some(parent) = self.outer.take()
        {
            end.verdict = JobVerdict::ParentEnded { parent };
        }
        end
    }

    /// Waits until everything is written, or its readers were given up.
    async fn write_rest(&mut self, signals: &mut Signals) {
        self.output.make_room();
        while !self.output.is_empty() {
            let impatient = self.ending.and_then(|since| self.output.patience_over(since, self.patience()));
            tokio::select! {
                biased;
                // A signal to end also means that the rest is not wanted.
                signal = signals.next() => if signal.is_wish_to_end() {
                    self.give_up_readers(Duration::ZERO);
                },
                written = self.output.flush() => if let Err(error) = written {
                    self.cannot_write(error);
                },
                () = sleep_until(impatient) => self.give_up_readers(self.patience()),
            }
        }
    }

    /// Reports output that could not be delivered, if any.
    fn say_undelivered(&mut self) -> bool {
        let bytes = self.output.undelivered();
        if bytes == 0 {
            return false;
        }
        if let Some(keep) = &self.keep {
            keep.misses(bytes);
            return false;
        }
        self.trouble = true;
        let what = format!("could not deliver {bytes} bytes of output");
        let failure = Failure::new(what).because("its reader has stopped reading");
        self.say(&hint::failure(&failure, self.run.voice.json));
        true
    }

    /// Prints how the job ended, unless the reason is that its messages have no reader.
    fn tell(&mut self, end: &JobEnd) -> u8 {
        let voice = self.run.voice;
        let silent = self.unwritable.is_some();
        if voice.json && !silent {
            self.output.say(&plain::line(&ending::json(end).to_string()));
        } else if end.exit_code != 0 && !silent {
            self.output.say(&described(end));
        } else if voice.verbose > 0 && !silent {
            let (ranks, time) = (words::count(end.procs.len(), "rank"), words::duration(end.duration));
            self.output.say(&hint::note(&format!("{ranks} ended well after {time}"), false));
        }
        if let Some(remark) = foreign::remark(self.run, end).filter(|_| !silent) {
            self.note(&remark);
        }
        if let Some(to) = self.report.take() {
            let report = format!("{}\n", plain::line(&ending::json(end).to_string()));
            if matches!(to, ExitReport::StandardOutput) {
                self.output.print(&report);
            } else if let Err(failure) = to.write(&report, self.patience()) {
                self.trouble = true;
                self.output.say(&hint::failure(&failure, voice.json));
            }
        }
        let code = if end.exit_code == 0 { self.below.exit_code() } else { end.exit_code };
        match code {
            0 => 0,
            // A code is one byte; a failure must not look like success.
            code => u8::try_from(code & 0xff).ok().filter(|code| *code != 0).unwrap_or(1),
        }
    }
}

/// Why a job has failed.
fn described(end: &JobEnd) -> String {
    let lines = end.lines();
    match (&end.verdict, lines.as_slice()) {
        (JobVerdict::WithoutPmix { .. }, [what, advice]) => {
            hint::failure(&Failure::new(what.clone()).hint(advice.clone()), false)
        }
        _ => {
            let described = lines.iter().enumerate().map(|(index, line)| match index {
                0 => hint::failure(&Failure::new(line.clone()), false),
                _ => hint::note(line, false),
            });
            described.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Where each rank runs.
pub(crate) fn hosts(placed: &Placed) -> Vec<Arc<str>> {
    let node = |placement: &Placement| placed.nodes.get(placement.node as usize);
    let host = |placement| node(placement).map_or("", |node: &NodeResources| &node.name).into();
    placed.map.procs.iter().map(host).collect()
}

/// Waits until the job is about to end; a job without a name never is.
async fn ending(runner: &Runner, job: Option<&Nspace>) {
    match job {
        Some(nspace) => runner.ending(nspace).await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// A second request to end means that the user does not want to wait.
const AT_ONCE: Duration = Duration::from_millis(500);
/// How many notes are remembered, so that each is shown once.
const MOST_NOTED: usize = 64;
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;

//! Commands that run beside processes: to checkpoint programs that do not use PMIx, to read stacks, to provision nodes, and to send
//! mails.
//!
//! To the shell a command is a process in a namespace of its own. The reason of a failure is the last line of its output.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Nspace, ProcId, Text};

use crate::effect::{Effect, ProcStart, StdinPlan};
use crate::environment::environment;
use crate::local::job::Jobs;
use crate::local::stacks;
use crate::local::timer::Timer;
use crate::local::turn::{Cx, ToLocal};
use crate::msg::{ExitStatus, Found, Mail, Members, OpId, Part, Results, SpawnFailure, Stacks, TaskId};
use crate::ranges::Ranges;
use crate::signals::SIGKILL;

/// The running commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    last: u64,
    running: BTreeMap<ProcId, Command>,
    batches: Vec<Batch>,
}

#[derive(Debug)]
struct Command {
    task: TaskId,
    /// The rank that it is for; none if it is for no process.
    of: Option<ProcId>,
    /// The end of its output.
    said: Vec<u8>,
    /// Its standard output, if that is its product.
    product: Option<Vec<u8>>,
    open: [bool; 2],
    phase: Phase,
}

/// What a command waits for.
#[derive(Debug)]
enum Phase {
    /// For its exit.
    Running,
    /// Its time limit has passed. For its exit after it was killed.
    Late,
    /// For the rest of its output.
    Ended(Result<(), Fault>),
}

/// Why a command has not done what it was started for.
#[derive(Debug)]
enum Fault {
    Code(i32),
    Signal(i32),
    NotStarted(SpawnFailure),
    JobEnded,
    Late,
}

/// The results of one task so far.
#[derive(Debug)]
struct Batch {
    task: TaskId,
    /// Commands that run.
    open: usize,
    waiting: VecDeque<(Option<ProcId>, Line)>,
    gathered: Gathered,
}

/// What the commands of a task have yielded.
#[derive(Debug)]
enum Gathered {
    Results(Results),
    Stacks(Stacks),
}

/// A command line and its surroundings.
#[derive(Debug)]
struct Line {
    shell: Text,
    env: Vec<Text>,
    cwd: Option<Text>,
    limit: Duration,
    /// Standard output is the product, and not only the reason of a failure.
    produces: bool,
    /// All of its standard input.
    input: Option<Arc<[u8]>>,
}

impl Commands {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.running.values().any(|one| one.of.as_ref().is_some_and(|of| of.nspace == *nspace))
    }

    fn has(&self, proc: &ProcId) -> bool {
        self.running.contains_key(proc)
    }
}

impl Commands {
    /// Takes a checkpoint of each target with the command of its job.
    pub(super) fn take_checkpoints(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        task: &TaskId,
        targets: &Members,
        (name, limit): (&Text, Duration),
    ) {
        let Members { nspace, ranks } = targets;
        let mut results = Results::default();
        let mut lines = VecDeque::new();
        if let Some(job) = jobs.get(nspace) {
            let (desc, count) = (&job.desc, job.procs.len());
            for (rank, proc) in job.procs.iter().filter(|(rank, _)| ranks.contains(rank.0)) {
                let of = ProcId::new(nspace, *rank);
                let (Some(pid), Some(app), Some(shell)) =
                    (proc.running(), desc.app(*rank), &desc.checkpoint_command)
                else {
                    results.set(&Ranges::single(rank.0), Status::ERR_NOT_FOUND);
                    continue;
                };
                let life = job.lives.get(&rank.0);
                let mut env = environment(desc, app, *rank, (&cx.config.hostname, count), life, Vec::new());
                env.push(format!("PHALANX_PID={pid}").into());
                env.push(Text::from_bytes(&[b"PHALANX_CHECKPOINT=", name.as_bytes()].concat()));
                let (shell, cwd) = (shell.clone(), app.cwd.clone());
                lines.push_back((Some(of), Line { shell, env, cwd, limit, produces: false, input: None }));
            }
        }
        self.begin(cx, task, lines, Gathered::Results(results));
    }

    /// Reads the stacks of these ranks, some at a time.
    pub(super) fn read_stacks(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        task: &TaskId,
        (nspace, ranks): (&Nspace, Option<&Ranges>),
    ) {
        let procs = jobs.get(nspace).into_iter().flat_map(|job| &job.procs);
        let (mut stacks, mut lines) = (Stacks::default(), VecDeque::new());
        for (rank, proc) in procs.filter(|(rank, _)| ranks.is_none_or(|ranks| ranks.contains(rank.0))) {
            let Some(pid) = proc.running() else {
                stacks.miss("it does not run".to_owned(), &Ranges::single(rank.0));
                continue;
            };
            let mut env = cx.config.env.clone();
            env.push(format!("PHALANX_PID={pid}").into());
            let (shell, limit) = (stacks::READER.into(), stacks::LIMIT);
            let line = Line { shell, env, cwd: None, limit, produces: true, input: None };
            lines.push_back((Some(ProcId::new(nspace, *rank)), line));
        }
        self.begin(cx, task, lines, Gathered::Stacks(stacks));
    }

    /// Runs the site's program that provisions nodes.
    pub(super) fn provision(
        &mut self,
        cx: &mut Cx<'_>,
        task: &TaskId,
        nodes: &Text,
        image: Option<&Text>,
        limit: Duration,
    ) {
        let mut results = Results::default();
        let Some(shell) = cx.config.rules.provision.clone() else {
            results.set(&Ranges::single(0), Status::ERR_NOT_SUPPORTED);
            return self.begin(cx, task, VecDeque::new(), Gathered::Results(results));
        };
        let mut env = cx.config.env.clone();
        env.push(Text::from_bytes(&[b"PHALANX_PROVISION_NODES=", nodes.as_bytes()].concat()));
        if let Some(image) = image {
            env.push(Text::from_bytes(&[b"PHALANX_PROVISION_IMAGE=", image.as_bytes()].concat()));
        }
        let line = Line { shell, env, cwd: None, limit, produces: false, input: None };
        self.begin(cx, task, [(None, line)].into(), Gathered::Results(results));
    }

    /// Sends a mail with the site's command, or else with sendmail.
    pub(super) fn send_mail(&mut self, cx: &mut Cx<'_>, task: &TaskId, mail: &Mail, limit: Duration) {
        let shell = cx.config.rules.mail.clone().unwrap_or_else(|| SENDMAIL.into());
        let mut env = cx.config.env.clone();
        if let Some(server) = &mail.server {
            env.push(Text::from_bytes(&[b"PHALANX_MAIL_SERVER=", server.as_bytes()].concat()));
        }
        env.extend(mail.port.map(|port| format!("PHALANX_MAIL_PORT={port}").into()));
        let input = Some(mail.text.as_bytes().into());
        let line = Line { shell, env, cwd: None, limit, produces: false, input };
        self.begin(cx, task, [(None, line)].into(), Gathered::Results(Results::default()));
    }

    fn begin(
        &mut self,
        cx: &mut Cx<'_>,
        task: &TaskId,
        waiting: VecDeque<(Option<ProcId>, Line)>,
        gathered: Gathered,
    ) {
        self.batches.push(Batch { task: task.clone(), open: 0, waiting, gathered });
        self.go_on(cx, task);
    }

    /// Starts commands of this task that have waited, or ends it.
    fn go_on(&mut self, cx: &mut Cx<'_>, task: &TaskId) {
        let mut next = Vec::new();
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.task == *task) {
            // Ranks take a checkpoint together. The readers of stacks are large.
            let most = match batch.gathered {
                Gathered::Results(_) => usize::MAX,
                Gathered::Stacks(_) => MOST_READERS,
            };
            let room = most.saturating_sub(batch.open).min(batch.waiting.len());
            next.extend(batch.waiting.drain(..room));
            batch.open += next.len();
        }
        next.into_iter().for_each(|(of, line)| self.run(cx, task, of, line));
        let is_done = |batch: &mut Batch| batch.task == *task && batch.open == 0;
        for batch in self.batches.extract_if(.., is_done) {
            let part = match batch.gathered {
                Gathered::Results(results) => Part::Results(results),
                Gathered::Stacks(stacks) => Part::Found(Box::new(Found { stacks, ..Found::default() })),
            };
            cx.join(OpId::Task(batch.task), part);
        }
    }

    fn run(&mut self, cx: &mut Cx<'_>, task: &TaskId, of: Option<ProcId>, line: Line) {
        self.last += 1;
        let name = format!("{}-command-{}-{}", cx.config.dvm, cx.config.id.0, self.last);
        let Ok(nspace) = Nspace::new(&name) else { return };
        let proc = ProcId::new(&nspace, Rank(0));
        let command = Command {
            task: task.clone(),
            of,
            said: Vec::new(),
            product: line.produces.then(Vec::new),
            open: [true; 2],
            phase: Phase::Running,
        };
        self.running.insert(proc.clone(), command);
        cx.timers.set(cx.now.after(line.limit), Timer::Command(proc.clone()));
        cx.effect(Effect::Spawn(Box::new(ProcStart {
            proc: proc.clone(),
            argv: [Text::from("/bin/sh"), "-c".into(), line.shell].into(),
            env: line.env,
            cwd: line.cwd,
            cpus: None,
            stdin: if line.input.is_some() { StdinPlan::Pipe } else { StdinPlan::Null },
            diag: false,
            asked_first: false,
            may_leave: false,
        })));
        for channel in CHANNELS {
            cx.effect(Effect::Credit { proc: proc.clone(), channel, bytes: AHEAD });
        }
        if let Some(data) = line.input {
            cx.effect(Effect::Stdin { proc: proc.clone(), data });
            cx.effect(Effect::StdinEnd { proc });
        }
    }

    /// Handles an event of a command; returns an event of a process.
    pub(super) fn not_of_these(&mut self, cx: &mut Cx<'_>, input: ToLocal) -> Option<ToLocal> {
        match &input {
            // A command that leaves its input unread has its reasons, and its exit code shows them.
            ToLocal::Spawned { proc, .. }
            | ToLocal::StdinTaken { proc, .. }
            | ToLocal::StdinRefused { proc }
                if self.has(proc) => {}
            ToLocal::SpawnFailed { proc, failure } if self.has(proc) => {
                self.on_ended(cx, proc, Err(Fault::NotStarted(failure.clone())), [false; 2]);
            }
            ToLocal::Exited { proc, status } if self.has(proc) => {
                let open = self.running.get(proc).map_or([false; 2], |one| one.open);
                let how = match *status {
                    status if status.is_success() => Ok(()),
                    ExitStatus::Code(code) => Err(Fault::Code(code)),
                    ExitStatus::Signal { number, .. } => Err(Fault::Signal(number)),
                };
                self.on_ended(cx, proc, how, open);
            }
            ToLocal::Output { proc, channel, data } if self.has(proc) => {
                if let Some(one) = self.running.get_mut(proc) {
                    one.wrote(*channel, data);
                }
                let (proc, channel) = (proc.clone(), *channel);
                cx.effect(Effect::Credit { proc, channel, bytes: crate::msg::charge(data.len()) });
            }
            ToLocal::OutputClosed { proc, channel } if self.has(proc) => {
                if let Some(one) = self.running.get_mut(proc) {
                    for (open, _) in one.open.iter_mut().zip(CHANNELS).filter(|(_, of)| of == channel) {
                        *open = false;
                    }
                }
                self.try_command(cx, proc);
            }
            _ => return Some(input),
        }
        None
    }

    fn on_ended(&mut self, cx: &mut Cx<'_>, proc: &ProcId, how: Result<(), Fault>, open: [bool; 2]) {
        let Some(one) = self.running.get_mut(proc) else { return };
        one.phase = match &one.phase {
            Phase::Late | Phase::Ended(Err(Fault::Late)) => Phase::Ended(Err(Fault::Late)),
            Phase::Running | Phase::Ended(_) => Phase::Ended(how),
        };
        one.open = open;
        // What it has left in the background may hold its output open.
        cx.timers.set(cx.now.after(LAST_WORDS), Timer::Command(proc.clone()));
        self.try_command(cx, proc);
    }

    /// The time limit of the command, or of its last output, has passed.
    pub(super) fn on_due(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Some(one) = self.running.get_mut(proc) else { return };
        match one.phase {
            Phase::Ended(_) => one.open = [false; 2],
            Phase::Running | Phase::Late => {
                one.phase = Phase::Late;
                cx.effect(Effect::SignalTree { proc: proc.clone(), signal: SIGKILL });
            }
        }
        self.try_command(cx, proc);
    }

    fn try_command(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let Entry::Occupied(entry) = self.running.entry(proc.clone()) else { return };
        let Command { phase: Phase::Ended(how), open: [false, false], .. } = entry.get() else { return };
        let failure = how.as_ref().err().map(|fault| (fault.status(), fault.text(&entry.get().said)));
        let Command { task, of, said, product, .. } = entry.remove();
        cx.timers.cancel(|timer| *timer == Timer::Command(proc.clone()));
        cx.effect(Effect::Forget { nspace: proc.nspace.clone(), scratch: Text::from("") });
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.task == task) {
            batch.open -= 1;
            let rank = of.as_ref().map_or(0, |of| of.rank.0);
            let ranks = Ranges::single(rank);
            match (&mut batch.gathered, failure) {
                (Gathered::Results(results), None) => results.set(&ranks, Status::SUCCESS),
                (Gathered::Results(results), Some((status, why))) => {
                    results.set(&ranks, status);
                    results.explain(status, why);
                }
                (Gathered::Stacks(stacks), failure) => {
                    let failure = failure.map(|(_, why)| why).or_else(|| last_line(&said));
                    stacks::add(stacks, rank, &product.unwrap_or_default(), failure);
                }
            }
        }
        self.go_on(cx, &task);
    }

    /// The job is over: ends its commands.
    pub(super) fn end_those_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let of_job = |of: &Option<ProcId>| of.as_ref().is_some_and(|of| of.nspace == *nspace);
        self.batches.iter_mut().for_each(|batch| batch.waiting.retain(|(of, _)| !of_job(of)));
        let ended: Vec<ProcId> =
            self.running.iter().filter(|(_, one)| of_job(&one.of)).map(|(proc, _)| proc.clone()).collect();
        for proc in ended {
            cx.effect(Effect::SignalTree { proc: proc.clone(), signal: SIGKILL });
            self.on_ended(cx, &proc, Err(Fault::JobEnded), [false; 2]);
        }
    }
}

impl Command {
    fn wrote(&mut self, channel: IofChannel, data: &[u8]) {
        if let Some(product) = self.product.as_mut().filter(|_| channel == IofChannel::STDOUT) {
            let room = MOST_PRODUCED.saturating_sub(product.len());
            return product.extend_from_slice(data.get(..room).unwrap_or(data));
        }
        self.said.extend_from_slice(data);
        let surplus = self.said.len().saturating_sub(MOST_SAID);
        self.said.drain(..surplus);
    }
}

impl Fault {
    fn status(&self) -> Status {
        match self {
            Fault::Late => Status::ERR_TIMEOUT,
            Fault::Code(_) | Fault::Signal(_) | Fault::NotStarted(_) | Fault::JobEnded => Status::ERROR,
        }
    }

    /// `said`: the end of the command's output.
    fn text(&self, said: &[u8]) -> String {
        let how = match self {
            Fault::Late => return "its command was not done in time".to_owned(),
            Fault::Code(code) => format!("its command exited with code {code}"),
            Fault::Signal(number) => format!("its command died of signal {number}"),
            Fault::NotStarted(failure) => failure.to_string(),
            Fault::JobEnded => "its job has ended".to_owned(),
        };
        last_line(said).map_or(how.clone(), |last| format!("{how}: {last}"))
    }
}

fn last_line(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    said.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Sends the mail on standard input to the recipients in its header. It is outside the search path of ordinary users.
const SENDMAIL: &str = "PATH=\"${PATH:-/usr/bin:/bin}:/usr/sbin:/usr/lib\"; export PATH; exec sendmail -t -i";
const CHANNELS: [IofChannel; 2] = [IofChannel::STDOUT, IofChannel::STDERR];
/// What a command may write ahead of us.
const AHEAD: usize = 64 << 10;
/// How much of its output is kept.
const MOST_SAID: usize = 4 << 10;
/// How much of a product is kept.
const MOST_PRODUCED: usize = 1 << 20;
/// How many readers of stacks run at once.
const MOST_READERS: usize = 8;
const LAST_WORDS: Duration = Duration::from_millis(500);

//! A launcher that decides as little as possible: it starts the requested processes, passes output on, and reports the end when every process has
//! exited and every stream has ended.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use phalanx_core::{ConnId, PeerCred, Time, Waiting};
use phalanx_dvm::{
    AppSpec, Cleanup, Control, Effect, ExitStatus, Input, JobEnd, JobRequest, JobVerdict, ProcEnd, ProcStart,
    Report, SpawnFailure, StdinPlan, StdinTarget, charge,
};
use phalanx_node::{Decide, Inherited, Running, Session, SessionOptions, StdinSource, block_on};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId, Text};

/// The output of one process and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) failure: Option<String>,
}

impl Seen {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("UTF-8").trim_end()
    }

    pub(crate) fn code(&self) -> i32 {
        match self.status {
            Some(ExitStatus::Code(code)) => code,
            other => panic!("no exit code: {other:?}, {:?}", self.failure),
        }
    }
}

type Answering = fn(ConnId, &[u8], &mut VecDeque<Effect>);
type Greet = fn(ConnId, Option<PeerCred>, &mut VecDeque<Effect>);

/// The decisions. Tests vary the fields.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) window: usize,
    pub(crate) scratch: Option<String>,
    pub(crate) fails_at_control: bool,
    pub(crate) asked_first: bool,
    /// What each process registers for removal as soon as it runs. Files are due when one of the processes has ended.
    pub(crate) cleanup: Vec<(Text, Cleanup)>,
    pub(crate) cpus: Option<phalanx_topo::CpuSet>,
    /// Answers bytes of connections.
    pub(crate) answer: Option<Answering>,
    pub(crate) opened: Option<Greet>,
    pub(crate) procs: BTreeMap<ProcId, Proc>,
    pub(crate) nspace: Option<Nspace>,
    /// Bytes that the user has not taken, in order, and the credit to return for them.
    pub(crate) owed: VecDeque<(ProcId, IofChannel, usize, usize)>,
    pub(crate) next_job: u32,
}

pub(crate) struct Proc {
    open: usize,
    credit: usize,
    end: Option<ProcEnd>,
}

impl Decide for Script {
    fn handle(&mut self, _: Time, input: Input<'_>, effects: &mut VecDeque<Effect>) {
        match input {
            Input::Submit { request, job } => self.submit(request, *job, effects),
            Input::Spawned { proc, pid, .. } => {
                self.end_of(&proc).pid = Some(pid);
                for (path, what) in self.cleanup.clone() {
                    effects.push_back(Effect::RegisterCleanup { nspace: proc.nspace.clone(), path, what });
                }
            }
            Input::SpawnFailed { proc, failure } => {
                self.procs.get_mut(&proc).expect("known").open = 0;
                self.end_of(&proc).node = shown(&failure);
                self.end_of(&proc).killed_by_us = true;
            }
            Input::Exited { proc, status } => {
                let files = self.cleanup.iter().filter(|(_, what)| *what == Cleanup::File);
                let paths = files.map(|(path, _)| path.clone()).collect();
                effects.push_back(Effect::Cleanup { nspace: proc.nspace.clone(), paths });
                let end = self.end_of(&proc);
                assert!(end.pid.is_some(), "{proc} exited before it was spawned");
                assert!(end.status.replace(status).is_none(), "{proc} exited twice");
            }
            Input::Output { proc, channel, data } => {
                let known = self.procs.get_mut(&proc).expect("known");
                let cost = charge(data.len());
                known.credit = known.credit.checked_sub(cost).expect("no more than the credit");
                self.owed.push_back((proc.clone(), channel, data.len(), cost));
                effects.push_back(Effect::Report(Report::Output { proc, pid: None, channel, data }));
            }
            Input::OutputClosed { proc, .. } => {
                let known = self.procs.get_mut(&proc).expect("known");
                known.open = known.open.checked_sub(1).expect("each stream ends once");
            }
            Input::OutputTaken { mut bytes } => {
                while bytes > 0 {
                    let (proc, channel, owed, cost) =
                        self.owed.pop_front().expect("no more than was given out");
                    let now = owed.min(bytes);
                    bytes -= now;
                    if owed > now {
                        self.owed.push_front((proc, channel, owed - now, cost));
                    } else if let Some(known) = self.procs.get_mut(&proc) {
                        known.credit += cost;
                        effects.push_back(Effect::Credit { proc, channel, bytes: cost });
                    }
                }
            }
            Input::Stdin { nspace, data } => {
                effects.push_back(Effect::Stdin { proc: ProcId::new(&nspace, Rank(0)), data });
            }
            Input::StdinEnd { nspace } => {
                effects.push_back(Effect::StdinEnd { proc: ProcId::new(&nspace, Rank(0)) });
            }
            Input::StdinTaken { proc, bytes } => {
                effects.push_back(Effect::StdinRead { nspace: proc.nspace.clone(), bytes });
                effects.push_back(Effect::StdinCredit { nspace: proc.nspace, bytes });
            }
            Input::Control { .. } if self.fails_at_control => panic!("as wanted"),
            Input::Control { action: Control::Signal(signal), .. } => {
                for proc in self.procs.keys() {
                    effects.push_back(Effect::Signal { proc: proc.clone(), signal });
                }
            }
            Input::Bytes { conn, data } => {
                if let Some(answer) = self.answer {
                    answer(conn, data, effects);
                }
            }
            Input::Opened { conn, peer } => {
                if let Some(opened) = self.opened {
                    opened(conn, peer, effects);
                }
                // The connection does not identify its process.
                for (proc, dir) in self.procs.keys().zip(self.scratch.iter().cycle()) {
                    effects.push_back(Effect::MakeScratch { path: format!("{dir}/{}", proc.rank.0).into() });
                }
            }
            Input::Shutdown => effects.push_back(Effect::Stop),
            _ => {}
        }
        self.end_if_over(effects);
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn is_full(&self, _: ConnId) -> bool {
        false
    }

    fn explain(&self) -> Vec<Waiting> {
        Vec::new()
    }
}

impl Script {
    fn submit(&mut self, request: u64, job: JobRequest, effects: &mut VecDeque<Effect>) {
        self.next_job += 1;
        let nspace = Nspace::new(&format!("job@{}", self.next_job)).expect("a name");
        self.nspace = Some(nspace.clone());
        effects.push_back(Effect::Report(Report::Accepted {
            request,
            nspace: nspace.clone(),
            placed: Default::default(),
        }));
        let window = if self.window == 0 { 64 << 10 } else { self.window };
        let app = &job.apps[0];
        for rank in 0..app.procs.unwrap_or(1) {
            let proc = ProcId::new(&nspace, Rank(rank));
            let mut env = job.env.clone();
            env.extend(app.env.iter().cloned());
            env.push(format!("RANK={rank}").into());
            let with_input = rank == 0 && job.stdin != StdinTarget::None;
            effects.push_back(Effect::Spawn(Box::new(ProcStart {
                proc: proc.clone(),
                argv: app.argv.clone().into(),
                env,
                cwd: app.cwd.clone(),
                cpus: self.cpus.clone(),
                diag: false,
                asked_first: self.asked_first,
                may_leave: false,
                stdin: if with_input { StdinPlan::Pipe } else { StdinPlan::Null },
            })));
            for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
                effects.push_back(Effect::Credit { proc: proc.clone(), channel, bytes: window });
            }
            if with_input {
                effects.push_back(Effect::StdinCredit { nspace: nspace.clone(), bytes: 16 << 10 });
            }
            self.procs.insert(proc, Proc { open: 2, credit: 2 * window, end: None });
        }
    }

    fn end_of(&mut self, proc: &ProcId) -> &mut ProcEnd {
        self.procs.get_mut(proc).expect("known").end.get_or_insert_with(|| ProcEnd {
            proc: proc.clone(),
            node: String::new(),
            pid: None,
            status: None,
            after: Duration::ZERO,
            killed_by_us: false,
            lost_connection: false,
        })
    }

    fn end_if_over(&mut self, effects: &mut VecDeque<Effect>) {
        let over = |proc: &Proc| {
            let ended = proc.end.as_ref().is_some_and(|end| end.status.is_some() || end.killed_by_us);
            ended && proc.open == 0
        };
        let Some(nspace) = self.nspace.take_if(|_| self.procs.values().all(over)) else { return };
        let procs = std::mem::take(&mut self.procs).into_values().filter_map(|proc| proc.end).collect();
        effects.push_back(Effect::Forget {
            nspace: nspace.clone(),
            scratch: Text::from(self.scratch.clone().unwrap_or_default()),
        });
        effects.push_back(Effect::Report(Report::Ended(Box::new(JobEnd {
            waited: Vec::new(),
            restarts: Vec::new(),
            nspace,
            verdict: JobVerdict::Success,
            tool: None,
            enders: Vec::new(),
            exit_code: 0,
            first: None,
            procs,
            duration: Duration::ZERO,
            connected: false,
            mpi: None,
            phases: Default::default(),
        }))));
    }
}

fn shown(failure: &SpawnFailure) -> String {
    format!("{:?} {} {}", failure.step, failure.subject, failure.errno)
}

/// One app of `procs` processes.
pub(crate) fn job(procs: u32, argv: &[&str]) -> JobRequest {
    let argv = argv.iter().map(|word| Text::from(*word)).collect();
    let env = ["PATH=/usr/bin:/bin", "HOME=/nowhere"].map(Text::from).into();
    let app = AppSpec { argv, procs: Some(procs), ..AppSpec::default() };
    JobRequest { apps: vec![app], env, stdin: StdinTarget::None, ..JobRequest::default() }
}

pub(crate) fn shell(procs: u32, script: &str) -> JobRequest {
    job(procs, &["sh", "-c", script])
}

/// Starts a launcher in this process.
pub(crate) fn begin() -> (Inherited, Session) {
    let inherited = Inherited::take().expect("to inherit");
    (inherited, Session::begin(&SessionOptions::default()).expect("a session"))
}

/// Runs a program against a node that `script` controls, and ends the node.
pub(crate) fn with_node<T>(script: Script, program: impl AsyncFnOnce(&mut Running, SocketAddr) -> T) -> T {
    let (inherited, session) = begin();
    with_node_in(inherited, session, script, program)
}

pub(crate) fn with_node_in<T>(
    inherited: Inherited,
    session: Session,
    script: Script,
    program: impl AsyncFnOnce(&mut Running, SocketAddr) -> T,
) -> T {
    block_on(async {
        let mut address = None;
        let decide = |site: &phalanx_node::Site<'_>| {
            address = Some(site.address);
            script
        };
        let mut running = Running::start(
            inherited,
            session,
            &phalanx_shell::reach::Reach::Node.door().expect("loopback"),
            |_| None,
            decide,
        )
        .expect("a node");
        let result = program(&mut running, address.expect("an address")).await;
        running.handle.shutdown().await.expect("to be there");
        while running.reports.recv().await.is_some() {}
        running.finish().await.expect("an orderly end");
        result
    })
    .expect("a loop")
}

/// Runs a job to its end, and returns the result of each process, by rank.
pub(crate) async fn run(running: &mut Running, job: JobRequest, stdin: StdinSource) -> Vec<Seen> {
    running.handle.submit(job, stdin).await.expect("to be there");
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    loop {
        match running.reports.recv().await.expect("the end of the job first") {
            Report::Output { proc, channel, data, .. } => {
                let seen = seen.entry(proc.rank.0).or_default();
                let stream = if channel == IofChannel::STDOUT { &mut seen.stdout } else { &mut seen.stderr };
                stream.extend_from_slice(&data);
            }
            Report::Ended(end) => {
                for proc in end.procs {
                    let seen = seen.entry(proc.proc.rank.0).or_default();
                    seen.status = proc.status;
                    seen.failure = proc.killed_by_us.then_some(proc.node);
                }
                return seen.into_values().collect();
            }
            _ => {}
        }
    }
}

/// Removes a variable from our own environment.
pub(crate) fn forget_variable(name: &str) {
    // SAFETY: the scenario has begun with one thread and has started no other.
    unsafe { std::env::remove_var(name) };
}

/// Makes a descriptor our standard input.
pub(crate) fn put_on_stdin(fd: &impl std::os::fd::AsRawFd) {
    // SAFETY: nothing in the scenario owns descriptor 0.
    assert_eq!(unsafe { libc::dup2(fd.as_raw_fd(), 0) }, 0);
}

/// A script for a rank that connects as a PMIx client would, and then finds its directory.
pub(crate) fn connect_and_wait_for(address: SocketAddr, scratch: &str) -> String {
    format!(
        "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"{address}\") or die' || exit 99; \
         until touch \"{scratch}\"/$RANK/file 2> /dev/null; do :; done"
    )
}

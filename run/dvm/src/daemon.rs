//! The decision state of one daemon and the switch that takes each happening to the file that decides it.
//!
//! It knows nothing of PMIx messages: its server's upcalls come in as [`Happening::HostCall`], its calls of the server
//! go out as [`Act::Call`]. `node.rs` joins the two. The root is an ordinary daemon with one more table.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{CallId, HostCallId, HostOp, HostReply, Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Key, Nspace, ProcId};

use crate::boot::Boot;
use crate::cargo::Load;
use crate::config::NodeConfig;
use crate::dmodex::Modexes;
use crate::effect::{Effect, Input};
use crate::fence::Rounds;
use crate::host::FUNCTIONS;
use crate::id::NodeId;
use crate::iof::Delivering;
use crate::msg::{Down, NodeTable, Survey, TapName, Up};
use crate::overlay::{Arrived, Out, Overlay, Setup};
use crate::procs::Job;
use crate::report::Report;
use crate::root::{FromRoot, Root, ToRoot};
use crate::signals::SIGKILL;
use crate::timers::{Timer, Timers};

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) config: NodeConfig,
    pub(crate) me: NodeId,
    pub(crate) overlay: Overlay<Load>,
    pub(crate) rounds: Rounds,
    /// Output for those who pulled it here, with our server.
    pub(crate) delivering: Delivering,
    pub(crate) modexes: Modexes,
    pub(crate) boot: Boot,
    pub(crate) table: Arc<NodeTable>,
    pub(crate) jobs: BTreeMap<Nspace, Job>,
    pub(crate) timers: Timers<Timer>,
    pub(crate) inbox: VecDeque<Local>,
    /// Ours is node 0.
    root: Option<Box<Root>>,
    /// The DVM is over for this daemon.
    pub(crate) over: bool,
    calls: BTreeMap<CallId, Call>,
    last_call: u64,
    /// Upcalls that wait for the root.
    requests: BTreeMap<u64, (HostCallId, Option<ProcId>)>,
    last_request: u64,
    /// Directives that the user was told of, because a function was refused for them.
    pub(crate) unknown: BTreeSet<(&'static str, Key)>,
}

/// What a daemon tells itself; handled before the turn ends.
#[derive(Debug)]
pub(crate) enum Local {
    /// A process that ended must not be waited for any longer.
    Over(ProcId),
}

#[derive(Debug)]
pub(crate) enum Happening<'a> {
    Input(Input<'a>),
    HostCall { id: HostCallId, op: HostOp },
    Returned { id: CallId, result: ServerReturn },
}

#[derive(Debug)]
pub(crate) enum Act {
    Effect(Effect),
    Reply { id: HostCallId, reply: HostReply },
    Call { id: CallId, call: ServerCall },
}

/// What a call of our server was for.
#[derive(Debug)]
pub(crate) enum Call {
    Register(Nspace),
    SetupFork(ProcId),
    Modex {
        asker: NodeId,
        id: u64,
    },
    Explain(Survey),
    /// A piece of output for a reader here.
    Output {
        to: TapName,
        piece: u64,
        bytes: usize,
    },
    /// Nothing depends on the answer.
    Told(&'static str),
}

/// One turn: when it is, and what is to be done.
pub(crate) struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) out: &'a mut VecDeque<Act>,
}

impl Cx<'_> {
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.push_back(Act::Effect(effect));
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.effect(Effect::Report(report));
    }

    pub(crate) fn reply(&mut self, id: HostCallId, reply: HostReply) {
        self.out.push_back(Act::Reply { id, reply });
    }
}

impl Daemon {
    pub(crate) fn new(config: NodeConfig) -> Daemon {
        let me = config.id;
        Daemon {
            overlay: Overlay::new(setup(&config)),
            delivering: Delivering::default(),
            root: (me == NodeId::ROOT).then(|| Box::new(Root::new(config.clone(), FUNCTIONS))),
            config,
            me,
            rounds: Rounds::default(),
            modexes: Modexes::default(),
            boot: Boot::default(),
            table: Arc::default(),
            jobs: BTreeMap::new(),
            timers: Timers::default(),
            inbox: VecDeque::new(),
            over: false,
            calls: BTreeMap::new(),
            last_call: 0,
            requests: BTreeMap::new(),
            last_request: 0,
            unknown: BTreeSet::new(),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        let root = self.root.as_ref().and_then(|root| root.deadline());
        [self.timers.next(), self.overlay.deadline(), root].into_iter().flatten().min()
    }

    pub(crate) fn handle(&mut self, now: Time, happening: Happening<'_>, out: &mut VecDeque<Act>) {
        let cx = &mut Cx { now, out };
        self.begin_boot(cx);
        match happening {
            Happening::Input(input) => self.on_input(cx, input),
            Happening::HostCall { id, op } => self.on_host_call(cx, id, op),
            Happening::Returned { id, result } => self.on_returned(cx, id, result),
        }
        self.drain(cx);
        self.overlay.tick(now);
        self.drain(cx);
        while let Some(timer) = self.timers.pop_due(now) {
            self.on_timer(cx, timer);
            self.drain(cx);
        }
        while self.root.as_ref().and_then(|root| root.deadline()).is_some_and(|due| due <= now) {
            self.tell_root(cx, ToRoot::Tick);
            self.drain(cx);
        }
    }

    /// Has the root decide, if it is here, and does what it wants done.
    pub(crate) fn tell_root(&mut self, cx: &mut Cx<'_>, what: ToRoot) {
        let Some(root) = &mut self.root else { return };
        let mut out = VecDeque::new();
        root.handle(cx.now, what, &mut out);
        out.into_iter().for_each(|wish| self.on_from_root(cx, wish));
    }

    fn on_from_root(&mut self, cx: &mut Cx<'_>, wish: FromRoot) {
        match wish {
            FromRoot::Cast(to, body) => self.overlay.cast(cx.now, to, body),
            FromRoot::Await(op, among) => self.overlay.reconsider(cx.now, op, &among),
            FromRoot::Taken(landing) => self.overlay.taken(cx.now, landing),
            FromRoot::Lend(landing) => self.overlay.lend(cx.now, landing),
            FromRoot::TellTaken { at_once } => self.overlay.tell_taken(cx.now, at_once),
            FromRoot::Report(report) => cx.report(report),
            FromRoot::StdinCredit { nspace, bytes } => cx.effect(Effect::StdinCredit { nspace, bytes }),
        }
    }

    fn on_input(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::LinkUp { peer } => self.overlay.on_link_up(cx.now, peer),
            Input::LinkMsg { peer, msg } => self.overlay.on_link_msg(cx.now, peer, msg),
            Input::LinkDown { peer } => self.overlay.on_link_down(cx.now, peer),
            Input::Submit { request, .. } if self.root.is_none() => {
                let error = "jobs are accepted by the root daemon".to_owned();
                cx.report(Report::Refused { request, error });
            }
            Input::Submit { request, job } => self.tell_root(cx, ToRoot::Submit { request, job }),
            Input::Control { nspace, action } => self.tell_root(cx, ToRoot::Control { nspace, action }),
            Input::Shutdown => self.tell_root(cx, ToRoot::Shutdown),
            Input::Spawned { proc, pid } => self.on_spawned(cx, &proc, pid),
            Input::SpawnFailed { proc, failure } => self.on_spawn_failed(cx, proc, failure),
            Input::Exited { proc, status } => self.on_exited(cx, &proc, status),
            Input::Output { proc, channel, data } => self.on_output(cx, proc, channel, data),
            Input::OutputClosed { proc, channel } => self.on_output_closed(cx, &proc, channel),
            Input::OutputTaken { bytes } => self.tell_root(cx, ToRoot::OutputTaken { bytes }),
            Input::Stdin { nspace, data } => self.tell_root(cx, ToRoot::Stdin { nspace, data }),
            Input::StdinEnd { nspace } => self.tell_root(cx, ToRoot::StdinEnd { nspace }),
            Input::StdinTaken { proc, bytes } => self.on_stdin_taken(cx, &proc, bytes),
            Input::StdinRefused { proc } => self.on_stdin_refused(cx, &proc),
            Input::Inspected { proc, library } => self.on_inspected(cx, proc, library),
            Input::Measured { survey, measured } => self.on_measured(cx, survey, *measured),
            // Connections belong to the server; time is looked at after every input.
            Input::Opened { .. } | Input::Bytes { .. } | Input::Writable { .. } | Input::Closed { .. } => {}
            Input::Tick => {}
        }
    }

    /// What has travelled comes first, in order; then what it has led to here.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        loop {
            if let Some(out) = self.overlay.pop() {
                self.on_overlay(cx, out);
            } else if let Some(local) = self.inbox.pop_front() {
                match local {
                    Local::Over(proc) => self.give_up(cx, &proc),
                }
            } else {
                let mut out = VecDeque::new();
                if !self.root.as_mut().is_some_and(|root| root.go_on(cx.now, &mut out)) {
                    return;
                }
                out.into_iter().for_each(|wish| self.on_from_root(cx, wish));
            }
        }
    }

    fn on_overlay(&mut self, cx: &mut Cx<'_>, out: Out<Load>) {
        match out {
            Out::Send { to, msg } => cx.effect(Effect::Link { to, msg }),
            Out::Unlink { to } => cx.effect(Effect::Unlink { to }),
            Out::Connect { to, address } => {
                cx.effect(Effect::Connect { to, address: address.to_string() });
            }
            Out::Arrived(arrived) => self.on_arrived(cx, arrived),
        }
    }

    fn on_arrived(&mut self, cx: &mut Cx<'_>, arrived: Arrived<Load>) {
        match arrived {
            Arrived::Cards(reports) => self.tell_root(cx, ToRoot::Reports(reports)),
            Arrived::Cast { addressed, body } => self.on_down(cx, addressed, &body),
            Arrived::Post { origin, body } => self.tell_root(cx, ToRoot::Post { origin, up: body }),
            Arrived::Part(gather) => {
                if let Some(among) = self.participants(&gather.op) {
                    self.overlay.take_part(cx.now, gather, &among);
                }
            }
            Arrived::Advanced(op) => {
                if let Some(arrived) = self.overlay.arrived_parts(&op) {
                    self.tell_root(cx, ToRoot::Advanced { op, arrived });
                }
            }
            Arrived::Gathered { op, among, missing, part } => {
                self.tell_root(cx, ToRoot::Gathered { op, among, missing, part });
            }
            Arrived::Side { from, body } => self.on_side(cx, from, body),
            Arrived::Bulk { landing, body } => self.tell_root(cx, ToRoot::Output { landing, piece: body }),
            Arrived::Taken(chunks) => self.on_taken(cx, chunks),
            Arrived::Without(node) => {
                self.tell_root(cx, ToRoot::Without(node));
                self.modex_without(cx, node);
            }
            Arrived::Lost { node, why } => self.tell_root(cx, ToRoot::Lost { node, why }),
            Arrived::Alone { why } => {
                tracing::error!(why, "giving up");
                self.stop(cx);
            }
        }
    }

    /// Tells the root.
    pub(crate) fn post(&mut self, cx: &mut Cx<'_>, body: Up) {
        self.overlay.post(cx.now, body);
    }

    /// A cast that came by. Some are looked at by every daemon on the way.
    fn on_down(&mut self, cx: &mut Cx<'_>, addressed: bool, body: &Down) {
        match body {
            Down::Done { op, outcome } => self.on_done(cx, op, outcome),
            _ if !addressed => {}
            Down::Table(table) => self.on_table(table),
            Down::SendTopology => self.send_topology(cx),
            Down::Start(desc) => self.on_start(cx, desc),
            Down::Control { nspace, ranks, action } => self.act_on(cx, nspace, ranks.as_ref(), *action),
            Down::Cleanup { op, request } => self.on_cleanup(cx, op, request),
            Down::Survey(survey) => self.on_survey(cx, survey),
            Down::Dead { nspace, ranks } => self.on_dead(cx, nspace, ranks),
            Down::Watch { nspace, ranks } => self.watch(cx, nspace, ranks),
            Down::Forget { nspace } => {
                self.on_forget(cx, nspace);
                self.tell_root(cx, ToRoot::Forgotten(nspace.clone()));
            }
            Down::Reply { request, reply } => self.on_reply(cx, *request, reply),
            Down::Say { to, text } => self.say_to_tool(cx, to, text),
            Down::Output(output) => self.give_output(cx, output),
            Down::Stdin { nspace, ranks, data } => self.give_stdin(cx, nspace, ranks, data),
            Down::StdinEnd { nspace, ranks } => self.end_stdin(cx, nspace, ranks),
            Down::Event { event, except } => self.deliver_event(cx, event, *except),
            Down::Announce { event, concerned } => self.announce(cx, event, concerned.as_deref()),
            Down::Stop => self.stop(cx),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Connected(nspace) => self.tell_connected(cx, &nspace),
            Timer::Settle(nspace) => self.settle_all(cx, &nspace),
            Timer::Over(proc) => self.give_up(cx, &proc),
            Timer::Inspect(nspace) => self.on_inspection_due(cx, &nspace),
            Timer::Kill(nspace) => self.on_kill_due(cx, &nspace),
            Timer::Reap(nspace) => self.on_reap_due(cx, &nspace),
            Timer::Exited(nspace) => self.tell_exited(cx, &nspace),
            Timer::Drain(nspace) => self.on_drain_over(cx, &nspace),
            Timer::Retry => self.ask_again(cx),
        }
    }

    /// Asks our server for something.
    pub(crate) fn call(&mut self, cx: &mut Cx<'_>, call: ServerCall, purpose: Call) {
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.calls.insert(id, purpose);
        cx.out.push_back(Act::Call { id, call });
    }

    fn on_returned(&mut self, cx: &mut Cx<'_>, id: CallId, result: ServerReturn) {
        match (self.calls.remove(&id), result) {
            (Some(Call::Register(nspace)), ServerReturn::Done(status)) => {
                self.on_registered(cx, &nspace, status);
            }
            (Some(Call::SetupFork(proc)), ServerReturn::Environment(env)) => self.start_proc(cx, &proc, env),
            (Some(Call::Modex { asker, id }), ServerReturn::Modex(result)) => {
                self.answer_modex(cx, asker, id, result);
            }
            (Some(Call::Modex { asker, id }), ServerReturn::Done(status)) => {
                self.answer_modex(cx, asker, id, Err(status));
            }
            (Some(Call::Explain(survey)), ServerReturn::Waiting(waiting)) => {
                self.on_explained(cx, survey, waiting);
            }
            // A server that cannot tell waits for nothing that it could tell of.
            (Some(Call::Explain(survey)), _) => self.on_explained(cx, survey, Vec::new()),
            (Some(Call::Output { to, piece, bytes }), result) => {
                self.output_left(cx, to, piece, bytes, &result);
            }
            (Some(Call::Told(what)), ServerReturn::Done(status)) if !status.is_success() => {
                tracing::warn!(what, %status, "the server refused");
            }
            (Some(Call::Told(_)), _) => {}
            (Some(call), result) => {
                tracing::error!(?call, ?result, "the server gave an answer of another kind")
            }
            (None, result) => tracing::error!(?result, "the server answered what was not asked"),
        }
    }

    /// Hands an upcall to the root, which answers it.
    pub(crate) fn ask_root(&mut self, cx: &mut Cx<'_>, id: HostCallId, op: HostOp) {
        self.last_request += 1;
        let request = self.last_request;
        self.requests.insert(request, (id, op.asked_by().cloned()));
        self.post(cx, Up::Host { request, op });
    }

    fn on_reply(&mut self, cx: &mut Cx<'_>, request: u64, reply: &HostReply) {
        if let Some((id, _)) = self.requests.remove(&request) {
            cx.reply(id, reply.clone());
        }
    }

    /// Nobody waits for these any more: the job of those who have asked is over. What the root says to them comes too late.
    pub(crate) fn drop_requests_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let of_job = |_: &u64, (_, by): &mut (HostCallId, Option<ProcId>)| is_of(by.as_ref(), nspace);
        for (_, (id, _)) in self.requests.extract_if(.., of_job) {
            cx.reply(id, HostReply::Done(Status::ERR_LOST_CONNECTION));
        }
    }

    pub(crate) fn has_requests_of(&self, nspace: &Nspace) -> bool {
        self.requests.values().any(|(_, by)| is_of(by.as_ref(), nspace))
    }

    /// Whether our server has still to answer something for this job.
    pub(crate) fn has_calls_for(&self, nspace: &Nspace) -> bool {
        self.calls.values().any(|call| match call {
            Call::Register(of) => of == nspace,
            Call::SetupFork(proc) => proc.nspace == *nspace,
            Call::Output { to, .. } => to.is_for(nspace),
            Call::Modex { .. } | Call::Explain(_) | Call::Told(_) => false,
        })
    }

    /// This daemon is done: what it started must not outlive it.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>) {
        if self.over {
            return;
        }
        self.over = true;
        self.overlay.stop();
        for (nspace, job) in std::mem::take(&mut self.jobs) {
            for (rank, _) in job.procs.iter().filter(|(_, proc)| proc.is_alive()) {
                cx.effect(Effect::Signal { proc: ProcId::new(&nspace, *rank), signal: SIGKILL });
            }
            if !job.procs.is_empty() {
                cx.effect(Effect::Forget { nspace, scratch: job.desc.scratch.clone() });
            }
        }
        cx.effect(Effect::Stop);
    }

    pub(crate) fn explain(&self) -> Vec<Waiting> {
        let mut waiting = self.explain_gathers();
        waiting.extend(self.explain_modexes());
        waiting.extend(self.root.iter().flat_map(|root| root.explain()));
        waiting.extend(self.explain_boot());
        waiting
    }
}

/// How many processes an explanation names: as many as people read.
pub(crate) const ENOUGH: usize = 100;

/// What the overlay is told of itself.
fn setup(config: &NodeConfig) -> Setup {
    Setup {
        me: config.id,
        size: config.size,
        radix: config.radix,
        address: config.address.clone(),
        lineage: config.lineage.clone(),
        heartbeat: config.limits.heartbeat,
        silence: config.limits.silence,
        reconnect: config.limits.reconnect,
        window: config.limits.output_link,
    }
}

fn is_of(proc: Option<&ProcId>, nspace: &Nspace) -> bool {
    proc.is_some_and(|proc| proc.nspace == *nspace)
}

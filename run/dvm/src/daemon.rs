//! Joins the rooms of one daemon: passes their outputs on to each other, in order, until all are quiet.
//!
//! Besides, it checks upcalls with the gate, refuses jobs at daemons other than the root, and lets the starter see reports and
//! losses before the root does. Every daemon has the overlay and the local room; node 0 has the root, and the starter if it
//! starts other daemons. The rooms communicate as if they were on different nodes. The PMIx server is not known here: its
//! upcalls come in as [`Happening::HostCall`], calls to it go out as [`Act::Call`]. `node.rs` joins the two.

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{CallId, HostCall, HostOp, HostReply, Time, Waiting};
use phalanx_spec::Status;

use crate::cargo::Load;
use crate::config::NodeConfig;
use crate::effect::{Effect, Input};
use crate::gate::{Gate, Unsupported};
use crate::id::NodeId;
use crate::local::{FromLocal, Local, ToLocal};
use crate::msg::{Down, ExitStatus, OpId, Up};
use crate::overlay::{Arrived, Out, Overlay, Setup, Tree};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::FUNCTIONS;
use crate::root::{FromRoot, Root, ToRoot};
use crate::signals::{SIGKILL, SIGTERM};
use crate::start::{FromStarter, StartPlan, Starter};

#[derive(Debug)]
pub(crate) struct Daemon {
    config: NodeConfig,
    overlay: Overlay<Load>,
    local: Local,
    /// At node 0.
    root: Option<Box<Root>>,
    /// At node 0, if it starts others.
    starter: Option<Box<Starter>>,
    gate: Gate,
    boot: Boot,
    from_local: VecDeque<FromLocal>,
    from_root: VecDeque<FromRoot>,
    from_starter: VecDeque<FromStarter>,
    /// What has arrived for the root while the starter is in doubt whether the allocation has ended.
    held: VecDeque<Arrived<Load>>,
    /// The DVM is over for this daemon.
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
enum Boot {
    /// Nothing has happened yet.
    Unborn,
    /// Since when.
    Booting(Time),
    Up,
}

#[derive(Debug)]
pub(crate) enum Happening<'a> {
    Input(Input<'a>),
    HostCall { call: HostCall, op: HostOp },
    Returned { id: CallId, result: ServerReturn },
}

#[derive(Debug)]
pub(crate) enum Act {
    Effect(Effect),
    Reply { call: HostCall, reply: HostReply },
    Call { id: CallId, call: ServerCall },
}

/// One turn: the current time and the outbox.
struct Cx<'a> {
    now: Time,
    out: &'a mut VecDeque<Act>,
}

impl Cx<'_> {
    fn effect(&mut self, effect: Effect) {
        self.out.push_back(Act::Effect(effect));
    }
}

impl Daemon {
    pub(crate) fn new(config: NodeConfig) -> Daemon {
        let is_root = config.id == NodeId::ROOT;
        Daemon {
            overlay: Overlay::new(setup(&config)),
            local: Local::new(config.clone()),
            root: is_root.then(|| Box::new(Root::new(config.clone(), FUNCTIONS))),
            config,
            starter: None,
            gate: Gate::default(),
            boot: Boot::Unborn,
            from_local: VecDeque::new(),
            from_root: VecDeque::new(),
            from_starter: VecDeque::new(),
            held: VecDeque::new(),
            is_over: false,
        }
    }

    /// Makes this daemon start the others.
    pub(crate) fn start_others(&mut self, plan: StartPlan) {
        let inner = Tree::new(self.config.size, self.config.radix).inner();
        self.starter = Some(Box::new(Starter::new(plan, &self.config, inner)));
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        let starter = self.starter.as_ref().and_then(|starter| starter.deadline());
        if self.is_over {
            return starter;
        }
        let root = self.root.as_ref().and_then(|root| root.deadline());
        [self.local.deadline(), self.overlay.deadline(), root, starter].into_iter().flatten().min()
    }

    pub(crate) fn handle(&mut self, now: Time, happening: Happening<'_>, out: &mut VecDeque<Act>) {
        let cx = &mut Cx { now, out };
        if let Boot::Unborn = self.boot {
            self.boot = Boot::Booting(now);
            self.tell_root(now, ToRoot::Begin);
            self.overlay.hand_in(now, self.local.report());
            if let Some(starter) = &mut self.starter {
                starter.begin(now, &mut self.from_starter);
            }
        }
        match happening {
            Happening::Input(input) => self.on_input(cx, input),
            Happening::HostCall { call, op } => self.on_host_call(cx, call, op),
            Happening::Returned { id, result } => self.tell_local(now, ToLocal::Returned { id, result }),
        }
        self.settle(cx);
        if let Some(starter) = &mut self.starter {
            starter.tick(now, &mut self.from_starter);
        }
        self.overlay.tick(now);
        self.settle(cx);
        while self.local.deadline().is_some_and(|due| due <= now) {
            self.tell_local(now, ToLocal::Tick);
            self.settle(cx);
        }
        while self.root.as_ref().and_then(|root| root.deadline()).is_some_and(|due| due <= now) {
            self.tell_root(now, ToRoot::Tick);
            self.settle(cx);
        }
    }

    /// Passes outputs from room to room until all rooms are quiet; then handles what was put off, and starts over.
    fn settle(&mut self, cx: &mut Cx<'_>) {
        loop {
            if let Some(wish) = self.from_local.pop_front() {
                self.on_from_local(cx, wish);
            } else if let Some(wish) = self.from_root.pop_front() {
                self.on_from_root(cx, wish);
            } else if let Some(wish) = self.from_starter.pop_front() {
                self.on_from_starter(cx, wish);
            } else if let Some(arrived) = self.no_longer_held() {
                self.deliver(cx, arrived);
            } else if let Some(out) = self.overlay.pop() {
                self.on_overlay(cx, out);
            } else if !self.go_on(cx.now) {
                return;
            }
        }
    }

    fn go_on(&mut self, now: Time) -> bool {
        self.local.go_on(now, &mut self.from_local)
            || self.root.as_mut().is_some_and(|root| root.go_on(now, &mut self.from_root))
    }

    fn tell_local(&mut self, now: Time, what: ToLocal) {
        self.local.handle(now, what, &mut self.from_local);
    }

    /// Does nothing at other nodes than the root.
    fn tell_root(&mut self, now: Time, what: ToRoot) {
        if let Some(root) = &mut self.root {
            root.handle(now, what, &mut self.from_root);
        }
    }

    fn on_input(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        let now = cx.now;
        let Some(input) = self.not_of_agents(now, input) else { return };
        match input {
            Input::LinkUp { peer } => self.overlay.on_link_up(now, peer),
            Input::LinkBytes { peer, bytes } => self.overlay.on_link_bytes(now, peer, bytes),
            Input::LinkAcked { peer, ago } => self.overlay.on_link_acked(now, peer, ago),
            Input::LinkDown { peer, why } => {
                self.overlay.on_link_down(now, peer, &why);
                self.starter.iter_mut().for_each(|starter| starter.on_unlinked(now, peer));
            }
            Input::Submit { request, .. } if self.root.is_none() => {
                let error = "jobs are accepted by the root daemon".to_owned();
                cx.effect(Effect::Report(Report::Refused { request, error }));
            }
            Input::Submit { request, job } => self.tell_root(now, ToRoot::Submit { request, job }),
            Input::Withdraw => {
                let far = self.starter.as_ref().and_then(|starter| starter.unfinished(now));
                let why = far.unwrap_or_else(|| "it was withdrawn before it could start".to_owned());
                self.tell_root(now, ToRoot::Withdraw { why });
            }
            Input::StandStill => self.stand_still(cx),
            Input::StandNoLonger => self.stand_no_longer(now),
            Input::Control { nspace, action } => self.tell_root(now, ToRoot::Control { nspace, action }),
            Input::Shutdown if self.root.is_none() => {
                if !self.is_over {
                    self.overlay.leave(now, LEAVES);
                    self.settle(cx);
                }
                self.stop(cx);
            }
            Input::Shutdown => self.tell_root(now, ToRoot::Shutdown),
            Input::OutputTaken { bytes } => self.tell_root(now, ToRoot::OutputTaken { bytes }),
            Input::Stdin { nspace, data } => self.tell_root(now, ToRoot::Stdin { nspace, data }),
            Input::StdinEnd { nspace } => self.tell_root(now, ToRoot::StdinEnd { nspace }),
            Input::Spawned { proc, pid, program } => {
                self.tell_local(now, ToLocal::Spawned { proc, pid, program });
            }
            Input::SpawnFailed { proc, failure } => {
                self.tell_local(now, ToLocal::SpawnFailed { proc, failure });
            }
            Input::Exited { proc, status } => self.tell_local(now, ToLocal::Exited { proc, status }),
            Input::Output { proc, channel, data } => {
                self.tell_local(now, ToLocal::Output { proc, channel, data });
            }
            Input::OutputClosed { proc, channel } => {
                self.tell_local(now, ToLocal::OutputClosed { proc, channel });
            }
            Input::StdinTaken { proc, bytes } => self.tell_local(now, ToLocal::StdinTaken { proc, bytes }),
            Input::StdinRefused { proc } => self.tell_local(now, ToLocal::StdinRefused { proc }),
            Input::TreeStopped { proc, escaped } => {
                self.tell_local(now, ToLocal::TreeStopped { proc, escaped });
            }
            Input::Inspected { proc, library } => self.tell_local(now, ToLocal::Inspected { proc, library }),
            Input::Measured { survey, measured } => {
                self.tell_local(now, ToLocal::Measured { survey, measured });
            }
            Input::Logged { task, result } => self.tell_local(now, ToLocal::Logged { task, result }),
            // Connections belong to the server; timers are checked after every input.
            Input::Opened { .. } | Input::Bytes { .. } | Input::Writable { .. } | Input::Closed { .. } => {}
            // For our server.
            Input::Looked { .. } | Input::Tick => {}
        }
    }

    fn stand_still(&mut self, cx: &mut Cx<'_>) {
        self.tell_root(cx.now, ToRoot::StandStill);
        self.overlay.stand_still(cx.now);
        match &mut self.starter {
            Some(starter) => starter.stand_still(cx.now, &mut self.from_starter),
            None => cx.effect(Effect::MayBeStopped),
        }
    }

    fn stand_no_longer(&mut self, now: Time) {
        self.overlay.go_on(now);
        if let Some(starter) = &mut self.starter {
            starter.stand_no_longer(now, &mut self.from_starter);
        }
        self.tell_root(now, ToRoot::StandNoLonger);
    }

    /// Handles inputs about the commands that start other daemons; returns all others.
    fn not_of_agents<'a>(&mut self, now: Time, input: Input<'a>) -> Option<Input<'a>> {
        let Some(starter) = &mut self.starter else { return Some(input) };
        let out = &mut self.from_starter;
        match input {
            Input::SpawnFailed { proc, failure } if starter.has(&proc) => {
                starter.on_spawn_failed(now, &proc, &failure, out);
            }
            Input::Exited { proc, status } if starter.has(&proc) => {
                starter.on_exited(now, &proc, status, out);
            }
            Input::Output { proc, channel, data } if starter.has(&proc) => {
                starter.on_output(now, &proc, channel, &data, out);
            }
            Input::OutputClosed { proc, channel } if starter.has(&proc) => {
                starter.on_output_closed(now, &proc, channel, out);
            }
            Input::Spawned { proc, .. } | Input::StdinTaken { proc, .. } | Input::StdinRefused { proc }
                if starter.has(&proc) => {}
            input => return Some(input),
        }
        None
    }

    fn on_from_starter(&mut self, cx: &mut Cx<'_>, wish: FromStarter) {
        match wish {
            FromStarter::Effect(effect) => cx.effect(effect),
            FromStarter::Lost { node, why } => self.overlay.declare_lost(cx.now, node, &why),
            FromStarter::AllocationEnded { why } => self.tell_root(cx.now, ToRoot::AllocationEnded { why }),
            FromStarter::GoesOn => self.tell_root(cx.now, ToRoot::BootGoesOn),
            FromStarter::Failing => self.tell_root(cx.now, ToRoot::BootHopeless),
            FromStarter::Failed { error } => self.tell_root(cx.now, ToRoot::BootFailed { error }),
            FromStarter::Progress { done, of } => cx.effect(Effect::Report(Report::Starting { done, of })),
            FromStarter::Note(text) => cx.effect(Effect::Report(Report::Note { nspace: None, text })),
            FromStarter::Still => cx.effect(Effect::MayBeStopped),
            FromStarter::Over => cx.effect(Effect::Stop),
        }
    }

    /// An upcall of our server.
    fn on_host_call(&mut self, cx: &mut Cx<'_>, call: HostCall, mut op: HostOp) {
        if let Err(Unsupported { note, goes_on }) = self.gate.check(&mut op) {
            if let Some((about, text)) = note {
                self.overlay.post(cx.now, Up::Note { about, text });
            }
            if !goes_on {
                let reply = HostReply::Done(Status::ERR_NOT_SUPPORTED);
                return cx.out.push_back(Act::Reply { call, reply });
            }
        }
        self.tell_local(cx.now, ToLocal::Upcall { call, op });
    }

    fn on_from_local(&mut self, cx: &mut Cx<'_>, wish: FromLocal) {
        match wish {
            FromLocal::Post(up) => self.overlay.post(cx.now, up),
            FromLocal::Join(op, part) => {
                if let Some(among) = self.participants(&op) {
                    self.overlay.join(cx.now, op, &among, part);
                }
            }
            FromLocal::Send(to, side) => self.overlay.send_to(cx.now, to, side),
            FromLocal::Stream(piece) => self.overlay.stream(cx.now, piece),
            FromLocal::Explained { survey, waiting } => {
                let waiting = self.explain().into_iter().chain(waiting).collect();
                self.tell_local(cx.now, ToLocal::Waits { survey, waiting });
            }
            // The starter emits it once the other daemons have had time to end.
            FromLocal::Effect(Effect::Stop) if self.starter.is_some() => {}
            FromLocal::Effect(effect) => cx.effect(effect),
            FromLocal::Call { id, call } => cx.out.push_back(Act::Call { id, call }),
            FromLocal::Reply { call, reply } => cx.out.push_back(Act::Reply { call, reply }),
        }
    }

    fn on_from_root(&mut self, cx: &mut Cx<'_>, wish: FromRoot) {
        match wish {
            FromRoot::Cast(to, body) => self.overlay.cast(cx.now, to, body),
            FromRoot::Await(op, among) => self.overlay.reconsider(cx.now, op, &among),
            FromRoot::Taken(landing) => self.overlay.taken(cx.now, landing),
            FromRoot::Lend(landing) => self.overlay.lend(cx.now, landing),
            FromRoot::TellTaken { at_once } => self.overlay.tell_taken(cx.now, at_once),
            FromRoot::Report(report) => cx.effect(Effect::Report(report)),
            FromRoot::StdinCredit { nspace, bytes } => cx.effect(Effect::StdinCredit { nspace, bytes }),
            FromRoot::StdinRead { nspace, bytes } => cx.effect(Effect::StdinRead { nspace, bytes }),
        }
    }

    fn on_overlay(&mut self, cx: &mut Cx<'_>, out: Out<Load>) {
        match out {
            Out::Send { to, msg } => {
                let bytes = self.overlay.link_bytes(&msg);
                cx.effect(Effect::Link { to, bytes });
            }
            Out::Unlink { to } => cx.effect(Effect::Unlink { to }),
            Out::Connect { to, address } => {
                cx.effect(Effect::Connect { to, address: address.to_string() });
            }
            Out::Arrived(arrived) => self.on_arrived(cx, arrived),
        }
    }

    fn on_arrived(&mut self, cx: &mut Cx<'_>, arrived: Arrived<Load>) {
        if let Some(starter) = &mut self.starter {
            if may_follow_from_end_of_allocation(&arrived) {
                starter.doubt(cx.now, &mut self.from_starter);
            }
            if is_news_for_root(&arrived) && (starter.is_in_doubt() || !self.held.is_empty()) {
                return self.held.push_back(arrived);
            }
        }
        self.deliver(cx, arrived);
    }

    /// What was held back is delivered in order once there is no doubt, and the oldest of it if there is too much.
    fn no_longer_held(&mut self) -> Option<Arrived<Load>> {
        let is_in_doubt = self.starter.as_ref().is_some_and(|starter| starter.is_in_doubt());
        if is_in_doubt && self.held.len() <= MOST_HELD { None } else { self.held.pop_front() }
    }

    fn deliver(&mut self, cx: &mut Cx<'_>, arrived: Arrived<Load>) {
        let now = cx.now;
        match arrived {
            Arrived::Cards(mut reports) => {
                if let Some(starter) = &mut self.starter {
                    reports.retain(|(node, card)| {
                        starter.on_card(now, *node, &card.hostname, &mut self.from_starter)
                    });
                    // Before the root goes on with the others.
                    if starter.is_failing() {
                        self.tell_root(now, ToRoot::BootHopeless);
                    }
                }
                self.tell_root(now, ToRoot::Reports(reports));
            }
            Arrived::Cast { addressed, body } => self.on_cast(cx, addressed, body),
            Arrived::Post { origin, body } => self.tell_root(now, ToRoot::Post { origin, up: body }),
            Arrived::Part(gather) => {
                if let Some(among) = self.participants(&gather.op) {
                    self.overlay.take_part(now, gather, &among);
                }
            }
            Arrived::Advanced(op) => {
                if let Some(arrived) = self.overlay.arrived_parts(&op) {
                    self.tell_root(now, ToRoot::Advanced { op, arrived });
                }
            }
            Arrived::Gathered { op, among, missing, part } => {
                self.tell_root(now, ToRoot::Gathered { op, among, missing, part });
            }
            Arrived::Side { from, body } => self.tell_local(now, ToLocal::Side { from, side: body }),
            Arrived::Bulk { landing, body } => self.tell_root(now, ToRoot::Output { landing, piece: body }),
            Arrived::Taken(pieces) => self.tell_local(now, ToLocal::Taken(pieces)),
            Arrived::Without(node) => {
                // Before the root goes on without it.
                if let Some(starter) = &mut self.starter
                    && starter.needs(node)
                {
                    self.tell_root(now, ToRoot::BootHopeless);
                }
                self.tell_root(now, ToRoot::Without(node));
                self.tell_local(now, ToLocal::Without(node));
            }
            Arrived::Lost { node, why } => {
                if let Some(starter) = &mut self.starter {
                    starter.on_lost(now, node, &why, &mut self.from_starter);
                }
                self.tell_root(now, ToRoot::Lost { node, why });
            }
            Arrived::Alone { why } => {
                tracing::error!(why, "giving up");
                cx.effect(Effect::Report(Report::NotReady { error: why }));
                self.stop(cx);
            }
        }
    }

    /// A cast that came by. Every daemon on the way handles the ends of operations.
    fn on_cast(&mut self, cx: &mut Cx<'_>, addressed: bool, body: Arc<Down>) {
        match &*body {
            Down::Done { op, .. } => self.overlay.close(op),
            _ if !addressed => return,
            Down::Table(_) => {
                self.boot = Boot::Up;
                self.overlay.settle_cards();
                self.starter.iter_mut().for_each(|starter| starter.on_booted());
            }
            Down::Dead { nspace, ranks } => self.give_up(cx.now, |op| op.includes(nspace, ranks)),
            Down::Forget { nspace } => self.give_up(cx.now, |op| op.concerns(nspace)),
            Down::Stop => return self.stop(cx),
            _ => {}
        }
        self.tell_local(cx.now, ToLocal::Down(body.clone()));
        if let Down::Forget { nspace } = &*body {
            debug_assert!(!self.overlay.open_operations().any(|(op, ..)| op.concerns(nspace)));
            self.tell_root(cx.now, ToRoot::Forgotten(nspace.clone()));
        }
    }

    /// Gives up operations that cannot complete.
    fn give_up(&mut self, now: Time, concerned: impl Fn(&OpId) -> bool) {
        for op in self.overlay.give_up(concerned) {
            self.tell_local(now, ToLocal::GivenUp(op));
        }
    }

    /// The daemons that contribute to an operation: as when it began, or else by the current jobs.
    fn participants(&self, op: &OpId) -> Option<Ranges> {
        self.overlay.participants(op).cloned().or_else(|| self.local.daemons_of(op))
    }

    /// This daemon ends.
    fn stop(&mut self, cx: &mut Cx<'_>) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        self.overlay.stop();
        self.tell_local(cx.now, ToLocal::Stop);
        if let Some(starter) = &mut self.starter {
            starter.stop(cx.now, &mut self.from_starter);
        }
    }

    /// Everything that waits in any room.
    pub(crate) fn explain(&self) -> Vec<Waiting> {
        let mut waiting: Vec<Waiting> = self.explain_gathers().collect();
        waiting.extend(self.local.explain());
        waiting.extend(self.root.iter().flat_map(|root| root.explain()));
        let before = waiting.len();
        waiting.extend(self.starter.iter().flat_map(|starter| starter.explain()));
        // The starter, if there is one, has more details.
        if waiting.len() == before {
            waiting.extend(self.explain_boot());
        }
        waiting
    }

    fn explain_gathers(&self) -> impl Iterator<Item = Waiting> {
        // The root knows the purposes of tasks, and what waits for them.
        let open = self.overlay.open_operations().filter(|(op, ..)| !matches!(op, OpId::Task(_)));
        open.map(|(op, since, awaited)| Waiting {
            operation: op.name().into(),
            subject: op.subject(),
            asked_by: Vec::new(),
            missing: self.local.members_on(op, &awaited),
            since,
            deadline: None,
            unblocked_by: "the named processes' daemons sending their part, or being declared lost".into(),
        })
    }

    fn explain_boot(&self) -> Option<Waiting> {
        let Boot::Booting(since) = self.boot else { return None };
        // Other daemons know only those below them.
        self.root.as_ref().filter(|root| !root.has_failed_to_boot())?;
        Some(Waiting {
            operation: "boot".into(),
            subject: format!("daemons {}", self.overlay.absent()),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since,
            deadline: Some(since.after(self.config.limits.boot)),
            unblocked_by: "the named daemons reporting".into(),
        })
    }
}

/// Whether this also happens when the batch system ends the allocation.
fn may_follow_from_end_of_allocation(arrived: &Arrived<Load>) -> bool {
    match arrived {
        Arrived::Lost { .. } => true,
        Arrived::Post { body, .. } => match &**body {
            Up::Failed(end) => {
                let code = end.status.map_or(0, ExitStatus::shell_code);
                !end.killed_by_us && [128 + SIGTERM, 128 + SIGKILL].contains(&code)
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_news_for_root(arrived: &Arrived<Load>) -> bool {
    match arrived {
        Arrived::Post { .. }
        | Arrived::Advanced(_)
        | Arrived::Gathered { .. }
        | Arrived::Bulk { .. }
        | Arrived::Without(_)
        | Arrived::Lost { .. } => true,
        Arrived::Cards(_)
        | Arrived::Cast { .. }
        | Arrived::Part(_)
        | Arrived::Side { .. }
        | Arrived::Taken(_)
        | Arrived::Alone { .. } => false,
    }
}

/// The most messages that are held back during a doubt, which lasts a few seconds.
const MOST_HELD: usize = 1 << 16;
/// Why a daemon leaves a DVM that goes on.
const LEAVES: &str = "its daemon was told to end, or the command that runs it there has ended";

/// The overlay's part of the configuration.
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

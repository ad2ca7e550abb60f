//! Where progress is made: orders, bytes and time go into the machine, and its outputs are carried out.
//!
//! Nothing in here waits except for descriptors, and nothing calls the machine while it is at work: answers of the program's
//! callbacks come back through the queue.
//!
//! Our thread waits without holding this state, so that a thread of the program can come in and make a call itself: most
//! calls send one message, and waking another thread takes longer than sending it. If that thread waits for the answer it
//! receives as well (`receiver.rs`). Callbacks never run there.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use phalanx_core::{
    CallId, ClientDelivery, ConnId, DeliveryId, Event, HandlerId, HostCall, HostOp, Input, Machine, Outbox,
    Output, Time, UNTOLD,
};
use phalanx_wire::Info;

use super::epoll::{BELL, Interest, Poller, Ready};
use super::links::{Arrival, Links, Token};
use super::ours::OurThread;
use super::queue::Queue;
use super::receiver::Held;
use super::slot::Reply;
use super::thread;
use super::{Callback, EventDone, Explanation, HostAnswer, Order, OutputDone, Role, Setup, Upcalls};
use phalanx_shell::Trust;
use phalanx_shell::collected::Written;
use phalanx_shell::look::look_at;

/// Holds the progress state while no thread works on it; `None` when the engine has ended.
pub(super) type Shared<M> = Mutex<Option<Box<Progress<M>>>>;

pub(super) struct Progress<M: Role> {
    machine: M,
    queue: Arc<Queue<Order<M>>>,
    links: Links,
    /// What our thread waits on, once it has begun: the bell, and the links unless a caller receives.
    watch: Option<Arc<Poller>>,
    /// The calling thread that receives.
    receiver: Option<usize>,
    files: Written,
    /// None: the program makes progress.
    ours: Option<Arc<OurThread<M>>>,
    upcalls: Option<Upcalls>,
    began: Instant,
    calls: u64,
    waiting: BTreeMap<CallId, Reply<M::Return>>,
    handlers: BTreeMap<HandlerId, Callback>,
    buffer: Vec<u8>,
    next: Next,
    place: RunsOn,
    /// Outputs that came up on a thread of the program and belong on ours.
    put_off: VecDeque<Output<M::Return, ClientDelivery>>,
    /// Answers for waiting callers. They are sent after the lock is released, so that the callers' next calls find it free.
    answers: Vec<ReplyWith<M>>,
    /// When our thread comes back at the latest, if at all.
    back: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Turn,
    Stop,
}

/// Where the machine is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsOn {
    /// On our thread, or one that the program makes progress with: callbacks run.
    Inside,
    /// On the thread of a caller, which makes its call.
    Visit,
    /// On the thread of a caller, which receives.
    Receiver,
}

impl<M: Role> Progress<M> {
    pub(super) fn new(
        setup: Setup<M>,
        queue: Arc<Queue<Order<M>>>,
        trouble: Arc<Mutex<Option<io::Error>>>,
        ours: Option<Arc<OurThread<M>>>,
        trust: Arc<Mutex<Trust>>,
    ) -> io::Result<Progress<M>> {
        let links = Links::new(queue.bell(), setup.listener, trouble, trust)?;
        Ok(Progress {
            machine: setup.machine,
            queue,
            links,
            watch: None,
            receiver: None,
            files: Written::default(),
            ours,
            upcalls: setup.upcalls,
            began: Instant::now(),
            calls: 0,
            waiting: BTreeMap::new(),
            handlers: BTreeMap::new(),
            buffer: vec![0; READ_AT_FIRST],
            next: Next::Turn,
            place: RunsOn::Inside,
            put_off: VecDeque::new(),
            answers: Vec::new(),
            back: None,
        })
    }

    /// Makes progress until the engine ends.
    pub(super) fn run(shared: &Shared<M>, identity: usize) {
        let inside = thread::enter(identity);
        let mut ready = Vec::new();
        loop {
            let mut held = lock(shared);
            let Some(progress) = held.as_mut() else { break };
            let goes_on = progress.turn(&ready);
            let leaves = goes_on && progress.ours.as_ref().is_some_and(|ours| ours.leaves());
            if leaves {
                progress.hand_over();
            }
            let answers = std::mem::take(&mut progress.answers);
            let rest = progress.rest();
            drop(held);
            give(answers);
            if leaves {
                return;
            }
            if !goes_on {
                break;
            }
            let Some(now) = ready_of(rest) else { break };
            ready = now;
        }
        let ended = lock(shared).take();
        drop(ended);
        drop(inside);
    }

    /// From here on callers that count on our thread, or that receive for others, make progress themselves.
    pub(super) fn hand_over(&mut self) {
        if let Some(ours) = &self.ours {
            ours.hand_over();
        }
        // The receiver leaves by itself: relieving it here would let others end the interruption before it has woken.
        if self.is_received() {
            self.interrupt_receiver();
        }
        self.queue.rouse(Order::rouse);
        self.waiting.values().for_each(Reply::rouse);
    }

    /// One turn of a program that makes progress itself. None: the engine has ended.
    pub(super) fn turn_once(mut self: Box<Self>, longest: Option<Duration>) -> Option<Box<Self>> {
        let _inside = thread::enter(self.queue.identity());
        let rest = self.rest().map(|(poller, wait)| (poller, wait.into_iter().chain(longest).min()));
        let ready = ready_of(rest)?;
        let goes_on = self.turn(&ready);
        give(std::mem::take(&mut self.answers));
        goes_on.then_some(self)
    }

    /// The same where our thread has never begun: only the links matter.
    pub(super) fn receive_once(mut self: Box<Self>) -> Option<Box<Self>> {
        let _inside = thread::enter(self.queue.identity());
        let (poller, longest) = self.rest_of_receiver();
        let ready = poller.wait(longest);
        self.work_at(RunsOn::Inside, |progress| {
            progress.receive(ready);
            progress.on_time();
        });
        (self.next == Next::Turn).then_some(self)
    }

    /// Makes a call on the thread of its caller, which begins to receive if it can and has to wait. The call is given back if
    /// other work comes first.
    pub(super) fn visit(
        &mut self,
        call: M::Call,
        reply: WantedBy<M>,
        caller: Option<usize>,
    ) -> Result<(), Unmade<M>> {
        if self.next == Next::Stop || !self.put_off.is_empty() || !self.queue.is_empty() {
            return Err((call, reply));
        }
        self.work_at(RunsOn::Visit, |progress| {
            let id = progress.enter(call, reply);
            // Before anything is sent: the answer may arrive at once, and would wake our thread.
            if let Some(caller) = caller
                && progress.waiting.contains_key(&id)
                && progress.may_be_received_by(caller)
            {
                progress.begin_receiving(caller);
            }
            progress.settle();
        });
        Ok(())
    }

    /// Leaves to our thread what the visitor does not do itself.
    pub(super) fn leave(&mut self) {
        let is_late = match (self.deadline(), self.back) {
            (Some(deadline), Some(back)) => deadline < back,
            (deadline, None) => deadline.is_some(),
            (None, Some(_)) => false,
        };
        let is_called = is_late || self.next == Next::Stop || !self.put_off.is_empty();
        let hears_nobody = self.watch.is_none() && self.receiver.is_none();
        let is_missing = hears_nobody && (!self.waiting.is_empty() || self.machine.awaits_news());
        if let Some(ours) = &self.ours
            && (is_called || is_missing)
            && !ours.wake()
        {
            self.next = Next::Stop;
            self.put_off.clear();
            self.waiting.clear();
        }
    }

    pub(super) fn is_received(&self) -> bool {
        self.receiver.is_some()
    }

    pub(super) fn is_received_by(&self, thread: usize) -> bool {
        self.receiver == Some(thread)
    }

    /// Not with a host: it is called so often that our thread would be woken for each message. Nor if no thread would take the
    /// outputs that are put off.
    pub(super) fn may_be_received_by(&self, thread: usize) -> bool {
        let is_free = self.receiver.is_none_or(|receiver| receiver == thread);
        let is_taken_over = self.ours.as_ref().is_some_and(|ours| ours.is_handed_over());
        let is_free = is_free && self.upcalls.is_none() && !is_taken_over;
        is_free && self.next == Next::Turn && self.put_off.is_empty()
    }

    fn begin_receiving(&mut self, thread: usize) {
        if self.receiver.replace(thread).is_none() {
            self.watch_links(Interest::NOTHING);
        }
    }

    /// The poller on which the receiver waits, and for how long.
    pub(super) fn rest_of_receiver(&self) -> (Arc<Poller>, Option<Duration>) {
        (self.links.poller(), self.deadline().map(|deadline| deadline.since(self.now())))
    }

    /// Handles the input that the receiver has waited for.
    pub(super) fn received(&mut self, ready: io::Result<Vec<Ready>>) {
        self.work_at(RunsOn::Receiver, |progress| {
            progress.receive(ready);
            progress.on_time();
        });
    }

    /// Our thread receives again, if there is anything to be received.
    pub(super) fn end_receiving(&mut self) {
        self.dismiss_receiver();
        self.leave();
    }

    /// Handles input that has arrived, if no thread waits for it.
    pub(super) fn hear(&mut self) {
        if self.watch.is_some() || self.receiver.is_some() || self.next == Next::Stop {
            return;
        }
        let ready = self.links.ready();
        self.work_at(RunsOn::Visit, |progress| progress.receive(ready));
        self.leave();
    }

    /// Relieves the receiving thread, which notices this when it next checks.
    pub(super) fn dismiss_receiver(&mut self) {
        if self.receiver.take().is_some() {
            self.watch_links(Interest::READ);
        }
    }

    pub(super) fn interrupt_receiver(&self) {
        self.links.poller().interrupt();
    }

    fn watch_links(&mut self, interest: Interest) {
        if let Some(watch) = &self.watch
            && let Err(error) = watch.set(&*self.links.poller(), LINKS, interest)
        {
            tracing::error!(%error, "the progress engine cannot wait for input and ends");
            self.next = Next::Stop;
        }
    }

    /// Works on a thread of the program; panics are caught.
    fn work_at(&mut self, place: RunsOn, work: impl FnOnce(&mut Self)) {
        self.place = place;
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!("the progress engine has panicked and ends");
            self.next = Next::Stop;
        }
        self.place = RunsOn::Inside;
        give(std::mem::take(&mut self.answers));
    }

    /// The poller to wait on, and for how long.
    fn rest(&mut self) -> io::Result<(Arc<Poller>, Option<Duration>)> {
        self.back = self.deadline();
        let wait = self.back.map(|deadline| deadline.since(self.now()));
        let watch = match &self.watch {
            Some(watch) => watch.clone(),
            None => {
                let watch = Poller::new(self.queue.bell(), Interest::READ)?;
                let is_free = self.receiver.is_none();
                let interest = if is_free { Interest::READ } else { Interest::NOTHING };
                watch.add(&*self.links.poller(), LINKS, interest)?;
                self.watch.insert(Arc::new(watch)).clone()
            }
        };
        Ok((watch, wait))
    }

    fn deadline(&self) -> Option<Time> {
        self.machine.deadline().into_iter().chain(self.links.deadline()).min()
    }

    /// Returns whether another turn may follow.
    fn turn(&mut self, ready: &[Ready]) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.work(ready))) {
            Ok(()) => self.next == Next::Turn,
            Err(_) => {
                tracing::error!("the progress engine has panicked and ends");
                false
            }
        }
    }

    fn work(&mut self, ready: &[Ready]) {
        while let Some(output) = self.put_off.pop_front() {
            self.carry_out(output);
        }
        for ready in ready {
            match ready.token {
                BELL => self.obey_all(),
                // A caller began to receive in the meantime.
                _ if self.receiver.is_some() => {}
                _ => self.receive(self.links.ready()),
            }
            if self.next == Next::Stop {
                return;
            }
        }
        self.on_time();
    }

    fn receive(&mut self, ready: io::Result<Vec<Ready>>) {
        let ready = match ready {
            Ok(ready) => ready,
            Err(error) => {
                tracing::error!(%error, "the progress engine cannot wait for input and ends");
                self.next = Next::Stop;
                return;
            }
        };
        for ready in ready {
            match Token::of(&ready) {
                Token::Interruption => self.links.poller().calm(),
                Token::Listener => self.accept(),
                Token::Link(conn) => {
                    if ready.write {
                        self.on_writable(conn);
                    }
                    if ready.read {
                        self.on_readable(conn);
                    }
                }
            }
            if self.next == Next::Stop {
                return;
            }
        }
    }

    fn on_time(&mut self) {
        self.links.on_time(self.now());
        if self.machine.deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.feed(Input::Tick);
        }
    }

    fn obey_all(&mut self) {
        for order in self.queue.take() {
            match order {
                Order::Call { call, reply } => self.make(call, reply),
                Order::Answer { call, reply, after } => {
                    self.feed(Input::Host { call, reply });
                    drop(after);
                }
                Order::Looked { look, file } => self.feed(Input::Looked { look, file }),
                Order::Keep { handler, callback } => {
                    self.handlers.insert(handler, callback);
                }
                Order::Forget { handler } => {
                    self.handlers.remove(&handler);
                }
                Order::Explain { reply } => {
                    reply.send(Explanation { now: self.now(), waiting: self.machine.explain() });
                }
                Order::Mark { reply } => reply.send(()),
                Order::Stop => self.next = Next::Stop,
            }
            if self.next == Next::Stop {
                return;
            }
        }
    }

    fn make(&mut self, call: M::Call, reply: WantedBy<M>) {
        self.enter(call, reply);
        self.settle();
    }

    fn enter(&mut self, call: M::Call, reply: WantedBy<M>) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.waiting.extend(reply.map(|reply| (id, reply)));
        self.handle(Input::Call { id, call });
        id
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some((conn, peer)) = self.links.accept(self.now()) else { return };
            self.feed(Input::Opened { conn, peer });
        }
    }

    fn on_writable(&mut self, conn: ConnId) {
        if self.links.finish_connecting(conn) {
            self.feed(Input::Opened { conn, peer: None });
        }
        self.links.touch(conn);
        self.settle();
    }

    fn on_readable(&mut self, conn: ConnId) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..READS_AT_ONCE {
            let room = buffer.len();
            match self.links.read(conn, &mut buffer) {
                Arrival::Bytes(count) => {
                    let data = buffer.get(..count).unwrap_or_default();
                    self.feed(Input::Bytes { conn, data });
                    // Reports what handlers have taken before they get more.
                    if self.place == RunsOn::Inside && self.next == Next::Turn && !self.queue.is_empty() {
                        self.obey_all();
                    }
                    if self.machine.is_full(conn) {
                        self.links.hold(conn);
                        break;
                    }
                    if count < room || self.next == Next::Stop {
                        break;
                    }
                    // Most processes never get a long message, and there are many processes.
                    buffer.resize((2 * room).min(READ_AT_ONCE), 0);
                }
                Arrival::Discarded => {}
                Arrival::Nothing => break,
            }
        }
        self.buffer = buffer;
        self.settle();
    }

    fn feed(&mut self, input: Input<'_, M::Call>) {
        self.handle(input);
        self.settle();
    }

    /// Sends what can be sent and reports changes of connections to the machine, until nothing is left.
    fn settle(&mut self) {
        loop {
            if let Some((conn, reason)) = self.links.next_ended() {
                self.handle(Input::Closed { conn, reason });
            } else if let Some(conn) = self.links.next_touched() {
                if let Some(queued) = self.links.flush(conn) {
                    self.handle(Input::Writable { conn, queued });
                }
            } else {
                self.links.read_again(|conn| self.machine.is_full(conn));
                if !self.links.is_touched() {
                    return;
                }
            }
        }
    }

    fn handle(&mut self, input: Input<'_, M::Call>) {
        let mut out = Outbox::default();
        self.machine.handle(self.now(), input, &mut out);
        while let Some(output) = out.pop() {
            if self.is_put_off(&output) {
                self.put_off.push_back(output);
            } else {
                self.carry_out(output);
            }
        }
    }

    /// Callbacks do not run on callers' threads. A caller gets its answer only after the callbacks for earlier input have
    /// run.
    fn is_put_off(&self, output: &Output<M::Return, ClientDelivery>) -> bool {
        match self.place {
            RunsOn::Inside => false,
            RunsOn::Visit => self.runs_callback(output),
            RunsOn::Receiver => {
                let is_behind = !self.put_off.is_empty() && matches!(output, Output::Return { .. });
                is_behind || self.runs_callback(output)
            }
        }
    }

    fn runs_callback(&self, output: &Output<M::Return, ClientDelivery>) -> bool {
        match output {
            Output::Return { id, .. } => self.waiting.get(id).is_some_and(Reply::is_callback),
            Output::Deliver { .. } | Output::CallHost { .. } => true,
            Output::Connect { .. }
            | Output::Send { .. }
            | Output::Close { .. }
            | Output::WriteFile { .. }
            | Output::RemoveFile { .. }
            | Output::LookAt { .. } => false,
        }
    }

    fn carry_out(&mut self, output: Output<M::Return, ClientDelivery>) {
        match output {
            Output::Connect { conn, address } => self.links.connect(conn, &address),
            Output::Send { conn, frame } => self.links.push(conn, frame),
            Output::Close { conn } => self.links.close(conn, self.now()),
            Output::WriteFile { path, at, bytes } => self.files.write(path, at, &bytes),
            Output::RemoveFile { path } => self.files.remove(&path),
            Output::LookAt { look, path, reads } => {
                let queue = self.queue.clone();
                let told = move |file| drop(queue.push_now(Order::Looked { look, file }));
                if !look_at(path, reads, told) {
                    drop(self.queue.push_now(Order::Looked { look, file: None }));
                }
            }
            Output::Return { id, result } => match self.waiting.remove(&id) {
                Some(reply) if reply.is_callback() => reply.send(result),
                Some(reply) => self.answers.push((reply, result)),
                None => {}
            },
            Output::CallHost { call, op } => self.call_host(call, op),
            Output::Deliver { id, to, what: ClientDelivery::Event { event, results } } => {
                self.run_event_handler(to, &event, &results, id);
            }
            Output::Deliver { id, to, what: ClientDelivery::Output { source, channel, data, info } } => {
                let delivery = (id != UNTOLD).then_some(id);
                let done = OutputDone { to: self.queue.clone(), delivery };
                if let Some(Callback::Output(callback)) = self.handlers.get_mut(&to) {
                    let run = || callback(&source, channel, data.as_bytes(), &info, done);
                    if catch_unwind(AssertUnwindSafe(run)).is_err() {
                        tracing::error!(%source, "an output handler of the program has panicked");
                    }
                }
            }
        }
    }

    /// A host that has panicked has lost track of its promises: it is not called again, and all waiting callers see the
    /// engine's end.
    fn call_host(&mut self, call: HostCall, op: HostOp) {
        let Some(upcalls) = &mut self.upcalls else {
            return tracing::error!(?op, "a role without a host asks for one");
        };
        if self.next == Next::Stop {
            call.use_up();
            return;
        }
        let answer = HostAnswer { to: self.queue.clone(), call };
        if catch_unwind(AssertUnwindSafe(|| upcalls(op, answer))).is_err() {
            tracing::error!("the host has panicked: its server ends");
            self.next = Next::Stop;
        }
    }

    fn run_event_handler(&mut self, to: HandlerId, event: &Event, results: &[Info], delivery: DeliveryId) {
        let done = EventDone { to: self.queue.clone(), delivery: Some(delivery) };
        let Some(Callback::Event(callback)) = self.handlers.get_mut(&to) else { return };
        if catch_unwind(AssertUnwindSafe(|| callback(event, results, done))).is_err() {
            tracing::error!(code = %event.code, "an event handler of the program has panicked");
        }
    }

    fn now(&self) -> Time {
        Time::default().after(self.began.elapsed())
    }
}

impl<M: Role> Drop for Progress<M> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Receives the answer to a call.
type WantedBy<M> = Option<Reply<<M as Machine>::Return>>;

/// A call that has not been made.
pub(super) type Unmade<M> = (<M as Machine>::Call, WantedBy<M>);

type ReplyWith<M> = (Reply<<M as Machine>::Return>, <M as Machine>::Return);

fn give<T>(answers: Vec<(Reply<T>, T)>) {
    answers.into_iter().for_each(|(reply, answer)| reply.send(answer));
}

/// None: waiting failed.
fn ready_of(rest: io::Result<(Arc<Poller>, Option<Duration>)>) -> Option<Vec<Ready>> {
    let ready = rest.and_then(|(poller, wait)| poller.wait(wait));
    ready
        .inspect_err(|error| tracing::error!(%error, "the progress engine cannot wait for input and ends"))
        .ok()
}

/// A panic while holding the lock was already caught, and ends the engine.
pub(super) fn lock<M: Role>(shared: &Shared<M>) -> Held<'_, M> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

const LINKS: u64 = 1;
const READ_AT_FIRST: usize = 4 << 10;
const READ_AT_ONCE: usize = 64 << 10;
/// After this many, other links get their turn; remaining input makes this link ready again.
const READS_AT_ONCE: usize = 16;
const ACCEPTED_AT_ONCE: usize = 64;

//! Where progress is made: orders, bytes and time go into the machine, what it wants done is carried out.
//!
//! Nothing in here waits but for descriptors, and nothing calls the machine while the machine is at work: what a callback of
//! the program answers comes back through the queue.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use phalanx_core::{
    CallId, ClientDelivery, ConnId, DeliveryId, Event, HandlerId, HostCallId, HostOp, Input, Outbox, Output,
    Time,
};
use phalanx_wire::Info;

use super::links::{Arrival, Links, Token};
use super::queue::Queue;
use super::slot::Reply;
use super::thread;
use super::{Answer, Callback, EventDone, Explanation, Order, Role, Setup, Upcalls};

pub(super) struct Progress<M: Role> {
    machine: M,
    queue: Arc<Queue<Order<M>>>,
    links: Links,
    upcalls: Option<Upcalls>,
    began: Instant,
    calls: u64,
    waiting: BTreeMap<CallId, Reply<M::Return>>,
    handlers: BTreeMap<HandlerId, Callback>,
    buffer: Vec<u8>,
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Turn,
    Stop,
}

impl<M: Role> Progress<M> {
    pub(super) fn new(
        setup: Setup<M>,
        queue: Arc<Queue<Order<M>>>,
        trouble: Arc<Mutex<Option<io::Error>>>,
    ) -> io::Result<Progress<M>> {
        let links = Links::new(&*queue, setup.listener, trouble)?;
        Ok(Progress {
            machine: setup.machine,
            queue,
            links,
            upcalls: setup.upcalls,
            began: Instant::now(),
            calls: 0,
            waiting: BTreeMap::new(),
            handlers: BTreeMap::new(),
            buffer: vec![0; READ_AT_ONCE],
            next: Next::Turn,
        })
    }

    /// Makes progress until the engine ends.
    pub(super) fn run(mut self: Box<Self>) {
        let inside = thread::enter(self.queue.identity());
        while self.guarded_turn(None) {}
        drop(self);
        drop(inside);
    }

    /// One turn. None: the engine has ended.
    pub(super) fn turn_once(mut self: Box<Self>, longest: Duration) -> Option<Box<Self>> {
        let _inside = thread::enter(self.queue.identity());
        if self.guarded_turn(Some(longest)) { Some(self) } else { None }
    }

    fn guarded_turn(&mut self, longest: Option<Duration>) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.turn(longest))) {
            Ok(Ok(())) => self.next == Next::Turn,
            Ok(Err(error)) => {
                tracing::error!(%error, "the progress engine cannot wait for input and ends");
                false
            }
            Err(_) => {
                tracing::error!("the progress engine has panicked and ends");
                false
            }
        }
    }

    fn turn(&mut self, longest: Option<Duration>) -> io::Result<()> {
        let now = self.now();
        let deadline = self.machine.deadline().into_iter().chain(self.links.deadline()).min();
        let wait = deadline.map(|deadline| deadline.since(now)).into_iter().chain(longest).min();
        for ready in self.links.wait(wait)? {
            match ready.token {
                Token::Bell => self.obey_all(),
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
                return Ok(());
            }
        }
        self.links.on_time(self.now());
        if self.machine.deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.feed(Input::Tick);
        }
        Ok(())
    }

    fn obey_all(&mut self) {
        for order in self.queue.take() {
            match order {
                Order::Call { call, reply } => {
                    self.calls += 1;
                    let id = CallId(self.calls);
                    self.waiting.extend(reply.map(|reply| (id, reply)));
                    self.feed(Input::Call { id, call });
                }
                Order::Answer { id, reply, after } => {
                    self.feed(Input::Host { id, reply });
                    drop(after);
                }
                Order::Keep { handler, callback } => {
                    self.handlers.insert(handler, callback);
                }
                Order::Forget { handler } => {
                    self.handlers.remove(&handler);
                }
                Order::Explain { reply } => {
                    reply.send(Explanation { now: self.now(), waiting: self.machine.explain() });
                }
                Order::Stop => self.next = Next::Stop,
            }
            if self.next == Next::Stop {
                return;
            }
        }
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
                    if count < room {
                        break;
                    }
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

    /// Sends what can be sent and tells the machine what became of its connections, until there is nothing more to tell.
    fn settle(&mut self) {
        loop {
            if let Some((conn, reason)) = self.links.next_ended() {
                self.handle(Input::Closed { conn, reason });
            } else if let Some(conn) = self.links.next_touched() {
                if let Some(queued) = self.links.flush(conn) {
                    self.handle(Input::Writable { conn, queued });
                }
            } else {
                return;
            }
        }
    }

    fn handle(&mut self, input: Input<'_, M::Call>) {
        let mut out = Outbox::default();
        self.machine.handle(self.now(), input, &mut out);
        while let Some(output) = out.pop() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output<M::Return, ClientDelivery>) {
        match output {
            Output::Connect { conn, address } => self.links.connect(conn, &address),
            Output::Send { conn, frame } => self.links.push(conn, frame),
            Output::Close { conn } => self.links.close(conn, self.now()),
            Output::Return { id, result } => {
                if let Some(reply) = self.waiting.remove(&id) {
                    reply.send(result);
                }
            }
            Output::CallHost { id, op } => self.call_host(id, op),
            Output::Deliver { id, to, what: ClientDelivery::Event { event, results } } => {
                self.run_event_handler(to, &event, &results, id);
            }
            Output::Deliver { to, what: ClientDelivery::Output { source, channel, data, info }, .. } => {
                if let Some(Callback::Output(callback)) = self.handlers.get_mut(&to) {
                    let run = || callback(&source, channel, data.as_bytes(), &info);
                    if catch_unwind(AssertUnwindSafe(run)).is_err() {
                        tracing::error!(%source, "an output handler of the program has panicked");
                    }
                }
            }
        }
    }

    /// A host that has panicked knows no more what it has promised: it is not asked again, and all who wait here see that it
    /// is over.
    fn call_host(&mut self, id: HostCallId, op: HostOp) {
        let Some(upcalls) = &mut self.upcalls else {
            return tracing::error!(?op, "a role without a host asks for one");
        };
        if self.next == Next::Stop {
            return;
        }
        let answer = Answer { to: self.queue.clone(), id };
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

const READ_AT_ONCE: usize = 64 << 10;
/// Then others get their turn; what is left makes the link ready again.
const READS_AT_ONCE: usize = 16;
const ACCEPTED_AT_ONCE: usize = 64;

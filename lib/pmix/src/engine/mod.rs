//! The progress thread: runs one client machine, owns its socket, calls the program's handlers.
//!
//! [`Engine`] is the program's end: a call goes through the queue and waits in its slot. The thread turns calls, bytes and time
//! into inputs and carries outputs out. When it ends, for whatever reason, everybody who waits is told; a panic of ours ends
//! the client, never the process.

mod epoll;
mod net;
mod queue;
mod slot;
mod thread;

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Instant;

use phalanx_core::{
    CallId, Client, ClientCall, ClientDelivery, ClientReturn, CloseReason, ConnId, DeliveryId, Event,
    HandlerId, Input, Machine, Outbox, Output, Time, Verdict,
};
use phalanx_spec::{IofChannel, Status};
use phalanx_wire::{Info, ProcId, uri};

use crate::error::Error;
use epoll::Poller;
use net::Link;
use queue::Queue;
use slot::{Reply, callback, slot};

/// What of the program runs on the progress thread.
pub(crate) enum Callback {
    /// An event, what earlier handlers made of it, and where to say what this one has done.
    Event(EventHandler),
    /// What a process has written: who, where, which bytes, and infos.
    Output(OutputHandler),
}

type EventHandler = Box<dyn FnMut(&Event, &[Info], Done) + Send>;
type OutputHandler = Box<dyn FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send>;

/// Where a handler says what it made of an event: at once or later, on any thread. Dropped unused, it says that nothing was
/// done.
pub struct Done {
    queue: Arc<Queue<Order>>,
    delivery: Option<DeliveryId>,
}

impl Done {
    /// Lets the event go on to the next handler, or ends its way.
    pub fn complete(mut self, verdict: Verdict) {
        self.end(verdict);
    }

    fn end(&mut self, verdict: Verdict) {
        if let Some(delivery) = self.delivery.take() {
            let call = ClientCall::Handled { delivery, verdict };
            // When the client has ended meanwhile, nobody waits for this.
            let _ = self.queue.push_now(Order::Call { call, reply: None });
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.end(Verdict { status: Status::EVENT_NO_ACTION_TAKEN, results: Vec::new() });
    }
}

/// The way to the progress thread.
pub(crate) struct Engine {
    queue: Arc<Queue<Order>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
    trouble: Arc<Mutex<Option<io::Error>>>,
}

/// What a program's thread wants of the progress thread.
enum Order {
    Call { call: ClientCall, reply: Option<Reply<ClientReturn>> },
    Keep { handler: HandlerId, callback: Callback },
    Forget { handler: HandlerId },
    Stop,
}

impl Engine {
    pub(crate) fn start(machine: Client) -> io::Result<Engine> {
        let queue = Arc::new(Queue::new()?);
        let trouble = Arc::new(Mutex::new(None));
        let progress = Progress {
            poller: Poller::new()?,
            machine,
            queue: queue.clone(),
            link: None,
            began: Instant::now(),
            calls: 0,
            waiting: BTreeMap::new(),
            handlers: BTreeMap::new(),
            buffer: vec![0; READ_AT_ONCE],
            trouble: trouble.clone(),
        };
        progress.poller.add(&*queue, BELL, false)?;
        let thread = thread::spawn("pmix-progress", move || progress.run())?;
        let thread_id = thread.thread().id();
        Ok(Engine { queue, thread: Mutex::new(Some(thread)), thread_id, trouble })
    }

    /// Makes a call and waits for its end.
    pub(crate) fn call(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        if self.is_progress_thread() {
            return Err(Error::OnProgressThread);
        }
        let (reply, wait) = slot();
        self.order(Order::Call { call, reply: Some(reply) })?;
        wait.wait().ok_or(Error::Ended)
    }

    /// Makes a call; its end is told to `then`, on the progress thread. `then` must not block.
    pub(crate) fn call_then(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let reply = callback(move |answer: Option<ClientReturn>| {
            let run = AssertUnwindSafe(|| then(answer.ok_or(Error::Ended)));
            if catch_unwind(run).is_err() {
                tracing::error!("a callback of the program has panicked");
            }
        });
        self.order(Order::Call { call, reply: Some(reply) })
    }

    /// Keeps a callback, to be run when the machine delivers to that handler.
    pub(crate) fn keep(&self, handler: HandlerId, callback: Callback) -> Result<(), Error> {
        self.order(Order::Keep { handler, callback })
    }

    pub(crate) fn forget(&self, handler: HandlerId) -> Result<(), Error> {
        self.order(Order::Forget { handler })
    }

    /// Ends the thread. A handler cannot wait for the thread that runs it.
    pub(crate) fn stop(&self) {
        let _ = self.order(Order::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|_| !self.is_progress_thread()) {
            // Panics of the thread have been caught and reported inside.
            let _ = thread.join();
        }
    }

    /// Gives the thread up without touching it: in a forked child it does not exist.
    pub(crate) fn abandon(&self) {
        std::mem::forget(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// What the operating system last said about the connection.
    pub(crate) fn take_trouble(&self) -> Option<io::Error> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn is_progress_thread(&self) -> bool {
        std::thread::current().id() == self.thread_id
    }

    fn order(&self, order: Order) -> Result<(), Error> {
        let pushed =
            if self.is_progress_thread() { self.queue.push_now(order) } else { self.queue.push(order) };
        pushed.map_err(|order| {
            // The caller learns it from here, not from a callback as well.
            if let Order::Call { reply: Some(reply), .. } = order {
                reply.forget();
            }
            Error::Ended
        })
    }
}

type Out = Outbox<ClientReturn, ClientDelivery>;

/// What the thread owns.
struct Progress {
    machine: Client,
    poller: Poller,
    queue: Arc<Queue<Order>>,
    link: Option<(ConnId, Link)>,
    began: Instant,
    calls: u64,
    waiting: BTreeMap<CallId, Reply<ClientReturn>>,
    handlers: BTreeMap<HandlerId, Callback>,
    buffer: Vec<u8>,
    trouble: Arc<Mutex<Option<io::Error>>>,
}

enum Next {
    Turn,
    Stop,
}

impl Progress {
    fn run(mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.turn())) {
                Ok(Ok(Next::Turn)) => {}
                Ok(Ok(Next::Stop)) => break,
                Ok(Err(error)) => {
                    tracing::error!(%error, "the progress thread cannot wait for input and ends");
                    break;
                }
                Err(_) => {
                    tracing::error!("the progress thread has panicked and ends");
                    break;
                }
            }
        }
        self.queue.close();
    }

    fn turn(&mut self) -> io::Result<Next> {
        let deadline = self.machine.deadline();
        let now = self.now();
        for ready in self.poller.wait(deadline.map(|deadline| deadline.since(now)))? {
            match ready.token {
                BELL => {
                    for order in self.queue.take() {
                        if let Next::Stop = self.obey(order) {
                            return Ok(Next::Stop);
                        }
                    }
                }
                _ => {
                    if ready.write {
                        self.write();
                    }
                    if ready.read {
                        self.read();
                    }
                }
            }
        }
        if self.machine.deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.feed(Input::Tick);
        }
        Ok(Next::Turn)
    }

    fn obey(&mut self, order: Order) -> Next {
        match order {
            Order::Call { call, reply } => {
                self.calls += 1;
                let id = CallId(self.calls);
                self.waiting.extend(reply.map(|reply| (id, reply)));
                self.feed(Input::Call { id, call });
            }
            Order::Keep { handler, callback } => {
                self.handlers.insert(handler, callback);
            }
            Order::Forget { handler } => {
                self.handlers.remove(&handler);
            }
            Order::Stop => return Next::Stop,
        }
        Next::Turn
    }

    fn write(&mut self) {
        let Some((conn, link)) = &mut self.link else { return };
        let conn = *conn;
        match link.finish_connecting() {
            Ok(true) => self.feed(Input::Opened { conn, peer: None }),
            Ok(false) => {}
            Err(error) => return self.lose(error),
        }
        self.flush();
    }

    fn read(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..READS_AT_ONCE {
            let Some((conn, link)) = &self.link else { break };
            let conn = *conn;
            match link.read(&mut buffer) {
                Ok(Some(0)) => self.drop_link(CloseReason::Eof),
                Ok(Some(count)) => {
                    let data = buffer.get(..count).unwrap_or_default();
                    self.feed(Input::Bytes { conn, data });
                    if count < buffer.len() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => self.lose(error),
            }
        }
        self.buffer = buffer;
    }

    fn feed(&mut self, input: Input<'_, ClientCall>) {
        let mut out = Out::default();
        self.machine.handle(self.now(), input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Connect { conn, address } => self.connect(conn, &address),
                Output::Send { frame, .. } => {
                    if let Some((_, link)) = &mut self.link {
                        link.push(frame);
                    }
                }
                Output::Close { .. } => {
                    self.flush();
                    self.drop_link(CloseReason::Local);
                }
                Output::Return { id, result } => {
                    if let Some(reply) = self.waiting.remove(&id) {
                        reply.send(result);
                    }
                }
                Output::Deliver { id, to, what: ClientDelivery::Event { event, results } } => {
                    self.run_event_handler(to, &event, &results, id);
                }
                Output::Deliver {
                    to, what: ClientDelivery::Output { source, channel, data, info }, ..
                } => {
                    if let Some(Callback::Output(callback)) = self.handlers.get_mut(&to) {
                        let run = || callback(&source, channel, data.as_bytes(), &info);
                        if catch_unwind(AssertUnwindSafe(run)).is_err() {
                            tracing::error!(%source, "an output handler of the program has panicked");
                        }
                    }
                }
                Output::CallHost { op, .. } => tracing::error!(?op, "a client asked for a host"),
            }
        }
        self.flush();
    }

    fn run_event_handler(
        &mut self,
        handler: HandlerId,
        event: &Event,
        results: &[Info],
        delivery: DeliveryId,
    ) {
        let done = Done { queue: self.queue.clone(), delivery: Some(delivery) };
        let Some(Callback::Event(callback)) = self.handlers.get_mut(&handler) else { return };
        if catch_unwind(AssertUnwindSafe(|| callback(event, results, done))).is_err() {
            tracing::error!(code = %event.code, "an event handler of the program has panicked");
        }
    }

    fn connect(&mut self, conn: ConnId, address: &str) {
        let parsed = uri::parse_address(address).map_err(io::Error::other);
        let link = parsed.and_then(Link::connect).and_then(|link| {
            self.poller.add(&link, LINK, true)?;
            Ok(link)
        });
        match link {
            Ok(link) => self.link = Some((conn, link)),
            Err(error) => {
                self.note(error);
                self.feed(Input::Closed { conn, reason: CloseReason::Error });
            }
        }
    }

    fn flush(&mut self) {
        let Some((_, link)) = &mut self.link else { return };
        let flushed = link.flush().and_then(|()| {
            let wants = link.wants_to_write();
            if wants == std::mem::replace(&mut link.watches_room, wants) {
                return Ok(());
            }
            self.poller.set_write(&*link, LINK, wants)
        });
        if let Err(error) = flushed {
            self.lose(error);
        }
    }

    fn lose(&mut self, error: io::Error) {
        self.note(error);
        self.drop_link(CloseReason::Error);
    }

    fn drop_link(&mut self, reason: CloseReason) {
        if let Some((conn, link)) = self.link.take() {
            // Closing the descriptor would do the same, unless a forked child still holds it.
            let _ = self.poller.remove(&link);
            drop(link);
            self.feed(Input::Closed { conn, reason });
        }
    }

    fn note(&self, error: io::Error) {
        tracing::debug!(%error, "the connection to the server");
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn now(&self) -> Time {
        Time::default().after(self.began.elapsed())
    }
}

const BELL: u64 = 0;
const LINK: u64 = 1;
const READ_AT_ONCE: usize = 64 << 10;
/// Then others get their turn; what is left makes the link ready again.
const READS_AT_ONCE: usize = 16;

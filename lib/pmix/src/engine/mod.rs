//! The progress engine: runs one machine, owns its sockets, calls the program's handlers and its host.
//!
//! [`Engine`] is the program's end: an order goes through the queue, and a call waits in its slot. The other end
//! (`progress.rs`) turns orders, bytes and time into inputs and carries outputs out, on a thread of ours or, if the program
//! drives progress itself, on any of its threads. A call that finds that end idle is made on its own thread, which leaves
//! the rest to ours. When the engine ends, for whatever reason, all waiting callers are answered; a panic of ours ends the
//! role, never the process. Any role runs here: see [`Role`].

mod bell;
mod epoll;
mod links;
mod ours;
mod progress;
mod queue;
mod receiver;
mod slot;
mod sync;
mod thread;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use phalanx_core::{
    ClientDelivery, DeliveryId, Event, FileLook, HandlerId, HostCall, HostOp, HostReply, Machine, Time,
    Verdict, Waiting,
};
use phalanx_spec::{IofChannel, Status};
use phalanx_wire::{Info, ProcId};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;
use ours::OurThread;
pub use ours::PROGRESS_THREAD;
use phalanx_shell::Trust;
use phalanx_shell::listen::Listener;
use progress::{Progress, Shared, lock};
use queue::Queue;
use receiver::Made;
use slot::{Reply, Wait, callback, slot};

/// A machine that an engine can run.
pub(crate) trait Role:
    Machine<Call: Send, Return: Send, Delivery = ClientDelivery> + Send + 'static
{
    /// The call that passes a handler's result for an event to the machine.
    fn handled(delivery: DeliveryId, verdict: Verdict) -> Self::Call;
    /// The call that informs the machine that a handler has taken output for good.
    fn taken(delivery: DeliveryId, held: usize) -> Self::Call;
    fn explain(&self) -> Vec<Waiting>;
    /// Whether anything can arrive that was not requested and that no callback waits for.
    fn awaits_news(&self) -> bool;
}

/// How progress is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Drive {
    /// A thread of ours.
    #[default]
    Thread,
    /// The program makes progress, by calling `progress` often enough, and in every blocking call while it waits
    /// (`PMIX_EXTERNAL_PROGRESS`).
    Host,
}

/// The parts of an engine.
pub(crate) struct Setup<M> {
    pub(crate) machine: M,
    pub(crate) drive: Drive,
    /// Where the machine's peers connect to.
    pub(crate) listener: Option<Listener>,
    /// Called when the machine calls its host. It must not block; it may answer at once.
    pub(crate) upcalls: Option<Upcalls>,
    /// The users whose servers are trusted.
    pub(crate) trust: Trust,
}

pub(crate) type Upcalls = Box<dyn FnMut(HostOp, HostAnswer) + Send>;

/// The program's callbacks that run when the machine makes progress.
pub(crate) enum Callback {
    /// Gets an event, the results of earlier handlers, and the means to complete it.
    Event(EventHandler),
    /// Gets output of a process: source, channel, bytes, infos, and the means to report that it was taken.
    Output(OutputHandler),
}

type EventHandler = Box<dyn FnMut(&Event, &[Info], EventDone) + Send>;
type OutputHandler = Box<dyn FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send>;

/// Completes an event handler: at once or later, on any thread. Dropped unused, it reports that no action was taken.
pub struct EventDone {
    to: Arc<dyn Inbox>,
    delivery: Option<DeliveryId>,
}

impl EventDone {
    /// Passes the event on to the next handler, or ends its chain.
    pub fn complete(mut self, verdict: Verdict) {
        self.end(verdict);
    }

    fn end(&mut self, verdict: Verdict) {
        if let Some(delivery) = self.delivery.take() {
            self.to.handled(delivery, verdict);
        }
    }
}

impl Drop for EventDone {
    fn drop(&mut self) {
        self.end(Verdict { status: Status::EVENT_NO_ACTION_TAKEN, results: Vec::new() });
    }
}

/// Reports, when it is dropped, that output has been taken for good: its server need not give it to another reader when this
/// process dies.
pub struct OutputDone {
    to: Arc<dyn Inbox>,
    delivery: Option<DeliveryId>,
}

impl OutputDone {
    /// Releases the sender, and reports that this many of the last bytes of the stream have not been taken.
    pub fn held(mut self, bytes: usize) {
        if let Some(delivery) = self.delivery.take() {
            self.to.taken(delivery, bytes);
        }
    }

    /// Reports nothing: the output was not taken, and never will be here.
    pub fn refuse(mut self) {
        self.delivery = None;
    }
}

impl Drop for OutputDone {
    fn drop(&mut self) {
        if let Some(delivery) = self.delivery.take() {
            self.to.taken(delivery, 0);
        }
    }
}

/// Sends the host's answer to one upcall, from any thread, even after the engine has ended.
pub(crate) struct HostAnswer {
    to: Arc<dyn Inbox>,
    call: HostCall,
}

impl HostAnswer {
    /// Returns whether the engine took it. `after` runs once it has been taken, where progress is made.
    pub(crate) fn send(self, reply: HostReply, after: Afterwards) -> bool {
        self.to.answered(self.call, reply, after)
    }
}

/// An action that runs once, when it is dropped at the latest.
#[derive(Default)]
pub(crate) struct Afterwards(Option<Box<dyn FnOnce() + Send>>);

impl Afterwards {
    pub(crate) fn new(run: impl FnOnce() + Send + 'static) -> Afterwards {
        Afterwards(Some(Box::new(run)))
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        if let Some(run) = self.0.take()
            && catch_unwind(AssertUnwindSafe(run)).is_err()
        {
            tracing::error!("what was to happen after an answer has panicked");
        }
    }
}

/// Messages from the program's callbacks to an engine of any role. Never blocks: the engine may be waiting for the caller.
trait Inbox: Send + Sync {
    fn handled(&self, delivery: DeliveryId, verdict: Verdict);
    fn taken(&self, delivery: DeliveryId, held: usize);
    fn answered(&self, call: HostCall, reply: HostReply, after: Afterwards) -> bool;
}

impl<M: Role> Inbox for Queue<Order<M>> {
    fn handled(&self, delivery: DeliveryId, verdict: Verdict) {
        // If the engine has ended meanwhile, the result is not needed.
        let _ = self.push_now(Order::Call { call: M::handled(delivery, verdict), reply: None });
    }

    fn taken(&self, delivery: DeliveryId, held: usize) {
        let _ = self.push_now(Order::Call { call: M::taken(delivery, held), reply: None });
    }

    fn answered(&self, call: HostCall, reply: HostReply, after: Afterwards) -> bool {
        self.push_now(Order::Answer { call, reply, after }).is_ok()
    }
}

/// Pending operations, and the current time on the clock that they are measured by.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub now: Time,
    pub waiting: Vec<Waiting>,
}

/// An order to a machine.
enum Order<M: Role> {
    Call {
        call: M::Call,
        reply: Option<Reply<M::Return>>,
    },
    Answer {
        call: HostCall,
        reply: HostReply,
        after: Afterwards,
    },
    Looked {
        look: u64,
        file: Option<FileLook>,
    },
    Keep {
        handler: HandlerId,
        callback: Callback,
    },
    Forget {
        handler: HandlerId,
    },
    Explain {
        reply: Reply<Explanation>,
    },
    /// Answered when everything before it has been done.
    Mark {
        reply: Reply<()>,
    },
    Stop,
}

impl<M: Role> Order<M> {
    /// Makes a sleeping caller recheck whether it should still sleep.
    fn rouse(&self) {
        match self {
            Order::Call { reply: Some(reply), .. } => reply.rouse(),
            Order::Explain { reply } => reply.rouse(),
            Order::Mark { reply } => reply.rouse(),
            Order::Call { reply: None, .. }
            | Order::Answer { .. }
            | Order::Looked { .. }
            | Order::Keep { .. }
            | Order::Forget { .. }
            | Order::Stop => {}
        }
    }
}

/// An engine, and the result of its first call.
type Begun<M> = (Engine<M>, Result<<M as Machine>::Return, Error>);

/// The program's end of an engine.
pub(crate) struct Engine<M: Role> {
    queue: Arc<Queue<Order<M>>>,
    progress: Arc<Shared<M>>,
    driver: Driver<M>,
    trouble: Arc<Mutex<Option<io::Error>>>,
    trust: Arc<Mutex<Trust>>,
    numbers: AtomicU64,
    /// When [`hear`](Engine::hear) last had a look, in nanoseconds of the coarse clock.
    heard: AtomicI64,
}

enum Driver<M: Role> {
    Thread(Arc<OurThread<M>>),
    Host,
}

impl<M: Role> Engine<M> {
    pub(crate) fn start(setup: Setup<M>) -> io::Result<Engine<M>> {
        let engine = Engine::at_rest(setup)?;
        if let Driver::Thread(ours) = &engine.driver {
            ours.start()?;
        }
        Ok(engine)
    }

    /// The same with a first call, and without starting our thread before it is needed.
    pub(crate) fn start_with(setup: Setup<M>, call: M::Call) -> io::Result<Begun<M>> {
        let engine = Engine::at_rest(setup)?;
        let result = engine.call(call);
        Ok((engine, result))
    }

    fn at_rest(setup: Setup<M>) -> io::Result<Engine<M>> {
        let queue = Arc::new(Queue::new(CAPACITY)?);
        let trouble = Arc::new(Mutex::new(None));
        let progress = Arc::<Shared<M>>::default();
        let driver = match setup.drive {
            Drive::Thread => {
                Driver::Thread(Arc::new(OurThread::new(queue.clone(), Arc::downgrade(&progress))))
            }
            Drive::Host => Driver::Host,
        };
        let ours = match &driver {
            Driver::Thread(ours) => Some(ours.clone()),
            Driver::Host => None,
        };
        let trust = Arc::new(Mutex::new(setup.trust.clone()));
        let made = Progress::new(setup, queue.clone(), trouble.clone(), ours, trust.clone())?;
        *lock(&progress) = Some(Box::new(made));
        Ok(Engine {
            queue,
            progress,
            driver,
            trouble,
            trust,
            numbers: AtomicU64::new(0),
            heard: AtomicI64::new(0),
        })
    }

    /// Makes a call and waits for its result.
    pub(crate) fn call(&self, call: M::Call) -> Result<M::Return, Error> {
        if self.is_progress_thread() {
            return Err(Error::OnProgressThread);
        }
        self.call_by(call, slot())
    }

    /// The same; `before` runs where progress is made, before anything that arrives after the answer is handled. It must not
    /// block.
    pub(crate) fn call_after(
        &self,
        call: M::Call,
        before: impl FnOnce(&M::Return) + Send + 'static,
    ) -> Result<M::Return, Error> {
        if self.is_progress_thread() {
            return Err(Error::OnProgressThread);
        }
        let (reply, wait) = slot();
        self.call_by(call, (reply.after(before), wait))
    }

    fn call_by(
        &self,
        call: M::Call,
        (reply, wait): (Reply<M::Return>, Wait<M::Return>),
    ) -> Result<M::Return, Error> {
        let made = match self.thread() {
            Some(_) => receiver::call(&self.progress, call, (reply, wait)),
            None => Made::Not((call, Some(reply)), wait),
        };
        let answer = match made {
            Made::Answered(answer) => answer,
            Made::Waits(wait) => self.wait(wait),
            Made::Not((call, reply), wait) => {
                self.order(Order::Call { call, reply })?;
                self.wait(wait)
            }
        };
        answer.ok_or(Error::Ended)
    }

    /// Makes the last call and ends the engine. Our thread leaves while the answer is on its way to the caller's.
    pub(crate) fn call_last(&self, call: M::Call) -> Result<M::Return, Error> {
        if self.is_progress_thread() {
            return Err(Error::OnProgressThread);
        }
        let (reply, wait) = slot();
        let mut held = lock(&self.progress);
        let Some(mut progress) = held.take() else { return Err(Error::Ended) };
        let queued = progress.visit(call, Some(reply), None).err();
        progress.dismiss_receiver();
        drop(held);
        let has_orders = match &self.driver {
            Driver::Thread(ours) => ours.end(),
            Driver::Host => true,
        };
        if let Some((call, reply)) = queued {
            self.order(Order::Call { call, reply })?;
        }
        let mut wait = wait;
        let mut progress = Some(progress);
        loop {
            wait = match wait.try_take() {
                Ok(answer) => return answer.ok_or(Error::Ended),
                Err(wait) => wait,
            };
            progress = progress.and_then(|progress| match has_orders {
                true => progress.turn_once(None),
                false => progress.receive_once(),
            });
        }
    }

    /// Makes a call; its result goes to `then` where progress is made. `then` must not block.
    pub(crate) fn call_then(
        &self,
        call: M::Call,
        then: impl FnOnce(Result<M::Return, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let reply = callback(move |answer: Option<M::Return>| {
            let run = AssertUnwindSafe(|| then(answer.ok_or(Error::Ended)));
            if catch_unwind(run).is_err() {
                tracing::error!("a callback of the program has panicked");
            }
        });
        self.make(call, reply)
    }

    /// Makes the call here if the engine is idle and nothing is queued before it; otherwise queues it. It never waits for a
    /// thread at work: that may be in a callback which waits for this thread.
    fn make(&self, call: M::Call, reply: Reply<M::Return>) -> Result<(), Error> {
        let (mut call, mut reply) = (call, Some(reply));
        if self.thread().is_some()
            && !self.is_progress_thread()
            && let Ok(mut held) = self.progress.try_lock()
            && let Some(progress) = held.as_mut()
        {
            match progress.visit(call, reply, None) {
                Ok(()) => {
                    progress.leave();
                    return Ok(());
                }
                Err(back) => (call, reply) = back,
            }
        }
        self.order(Order::Call { call, reply })
    }

    /// Handles input that has arrived, if no thread waits for it. Has a look at most once in a tick of the coarse clock, which is
    /// some milliseconds long, so that it costs a caller next to nothing.
    pub(crate) fn hear(&self) {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let now = now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec);
        if self.heard.swap(now, Ordering::Relaxed) == now
            || self.thread().is_none()
            || self.is_progress_thread()
        {
            return;
        }
        if let Ok(mut held) = self.progress.try_lock()
            && let Some(progress) = held.as_mut()
        {
            progress.hear();
        }
    }

    /// A unique number.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Stores a callback, to be run when the machine delivers to the returned handler.
    pub(crate) fn keep(&self, callback: Callback) -> Result<HandlerId, Error> {
        let handler = HandlerId(self.number());
        self.keep_for(handler, callback)?;
        Ok(handler)
    }

    /// Stores a callback for the machine's deliveries to that handler.
    pub(crate) fn keep_for(&self, handler: HandlerId, callback: Callback) -> Result<(), Error> {
        self.order(Order::Keep { handler, callback })
    }

    pub(crate) fn forget(&self, handler: HandlerId) -> Result<(), Error> {
        self.order(Order::Forget { handler })
    }

    /// Everything pending.
    pub(crate) fn explain(&self) -> Result<Explanation, Error> {
        self.ask(|reply| Order::Explain { reply })
    }

    /// Makes progress as far as possible without waiting. Does nothing if a thread of ours makes it.
    pub(crate) fn progress(&self) {
        if self.thread().is_none() {
            self.turn(Duration::ZERO);
        }
    }

    /// Ends our thread, if there is one: from then on the program makes progress. With `flushes`, earlier orders are done
    /// first.
    pub(crate) fn stop_thread(&self, flushes: bool) {
        let Driver::Thread(ours) = &self.driver else { return };
        if self.is_progress_thread() {
            ours.dismiss(true);
            return;
        }
        if flushes && ours.is_running() {
            // An engine that has ended has nothing left to do.
            let _ = self.ask(|reply| Order::Mark { reply });
        }
        if !ours.dismiss(false)
            && let Some(progress) = lock(&self.progress).as_mut()
        {
            progress.hand_over();
        }
    }

    /// Ends the engine. A handler cannot wait for the thread that runs it.
    pub(crate) fn stop(&self) {
        let _ = self.queue.push_now(Order::Stop);
        if self.is_progress_thread() {
            return;
        }
        if self.thread().is_none() {
            while !self.queue.is_closed() {
                if !self.turn(SLICE) {
                    std::thread::yield_now();
                }
            }
        }
        if let Driver::Thread(ours) = &self.driver {
            ours.end();
            // The thread may never have begun.
            let progress = lock(&self.progress).take();
            drop(progress);
        }
    }

    /// Leaves what runs the machine untouched: in a forked child it belongs to the parent.
    pub(crate) fn abandon(&self) {
        std::mem::forget(self.progress.clone());
    }

    /// From now on servers of these users are trusted as well.
    pub(crate) fn trust(&self, more: &Trust) {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner).add(more);
    }

    /// The operating system's last error on a connection.
    pub(crate) fn take_trouble(&self) -> Option<io::Error> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether this engine called the caller, so that nothing happens before it returns.
    pub(crate) fn is_progress_thread(&self) -> bool {
        thread::is_inside(self.queue.identity())
    }

    fn ask<T>(&self, order: impl FnOnce(Reply<T>) -> Order<M>) -> Result<T, Error> {
        if self.is_progress_thread() {
            return Err(Error::OnProgressThread);
        }
        let (reply, wait) = slot();
        self.order(order(reply))?;
        self.wait(wait).ok_or(Error::Ended)
    }

    fn wait<T>(&self, wait: Wait<T>) -> Option<T> {
        let mut wait = wait;
        if let Some(ours) = self.thread() {
            wait = match wait.wait(|| ours.is_handed_over()) {
                Ok(answer) => return answer,
                Err(wait) => wait,
            };
        }
        loop {
            wait = match wait.try_take() {
                Ok(answer) => return answer,
                Err(wait) => wait,
            };
            // The first waiting thread to get here makes progress for all of them.
            if !self.turn(SLICE) {
                wait.pause(SLICE);
            }
        }
    }

    fn order(&self, order: Order<M>) -> Result<(), Error> {
        let pushed = if self.is_progress_thread() {
            self.queue.push_now(order)
        } else if let Some(ours) = self.thread() {
            ours.begin();
            self.queue.push(order, || ours.is_handed_over())
        } else {
            while self.queue.is_full() {
                self.turn(SLICE);
            }
            self.queue.push_now(order)
        };
        pushed.map_err(|order| {
            // The caller gets the error from here; the callback must not report it as well.
            if let Order::Call { reply: Some(reply), .. } = order {
                reply.forget();
            }
            Error::Ended
        })
    }

    /// Our thread, unless the program makes progress.
    fn thread(&self) -> Option<&OurThread<M>> {
        match &self.driver {
            Driver::Thread(ours) if !ours.is_handed_over() => Some(ours),
            _ => None,
        }
    }

    /// One turn on this thread. False: another thread is at it, or is receiving; repeated turns would keep that one from
    /// leaving.
    fn turn(&self, longest: Duration) -> bool {
        let mut running = match self.progress.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if running.as_ref().is_some_and(|progress| progress.is_received()) {
            return false;
        }
        if let Some(progress) = running.take() {
            *running = progress.turn_once(Some(longest));
        }
        true
    }
}

/// Blocking callers have one order each in the queue; this many threads can call before one has to wait for the queue itself.
const CAPACITY: usize = 1024;
/// How long a thread that makes progress for itself and others waits before it checks for its own answer.
const SLICE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;

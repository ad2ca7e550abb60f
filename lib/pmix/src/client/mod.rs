//! A process of a parallel job: its start, its name, and the path of a call. One file per verb.

mod abort;
mod commit;
mod connect;
mod event;
mod fence;
mod finalize;
mod forward;
mod get;
mod group;
mod iof;
mod log;
mod monitor;
mod publish;
mod put;
mod query;
mod raw;
mod resolve;
pub(crate) mod spawn;
mod way;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phalanx_core::{
    self as core, ClientCall, ClientConfig, ClientReturn, DeliveryId, HandlerId, Store, Verdict, Waiting,
};
use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, InfoList, Key, ProcId};

use crate::engine::{Drive, Engine, Explanation, Role, Setup};
use crate::environ::{self, Identity};
use crate::error::{Error, unexpected};
use crate::forked::process_id;
use crate::screen::Screen;
use crate::shown::Shown;
use crate::support::{AROUND, check_required};
use phalanx_shell::Trust;
use way::Way;

/// The directives that init honours.
pub(crate) const INIT_ATTRIBUTES: &[&str] = &[keys::EXTERNAL_PROGRESS];

/// This process as a client of the PMIx server that started it. Shared between threads by reference.
///
/// Dropping it disconnects from the server, like [`finalize`](Client::finalize), and ignores failures.
pub struct Client {
    engine: Way,
    store: Arc<Store>,
    me: ProcId,
    singleton: bool,
    pid: u32,
    /// The screens for output without a callback, or for files beside one, by the program's number of the pull.
    screens: Mutex<BTreeMap<HandlerId, Vec<(HandlerId, Screen)>>>,
    shown: Shown,
}

impl Client {
    /// Connects to the server that the environment names and fetches the job's data (`PMIx_Init`).
    ///
    /// Without the environment of a launcher the process becomes a job of its own, see
    /// [`is_singleton`](Client::is_singleton). Blocks until the server has answered, at most two minutes; longer if a
    /// debugger holds the process.
    pub fn init() -> Result<Client, Error> {
        Client::init_driven(Drive::Thread)
    }

    /// How progress is made, by the directives of `PMIx_Init`. An unknown required directive is refused.
    pub fn drive_of(info: &[Info]) -> Result<Drive, Error> {
        check_required(info, &[INIT_ATTRIBUTES])?;
        Ok(if info.is_set(keys::EXTERNAL_PROGRESS) { Drive::Host } else { Drive::Thread })
    }

    /// The same as `init`, with a choice of how progress is made.
    pub fn init_driven(drive: Drive) -> Result<Client, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        Client::start(environ::read(variable, Identity::of_this_process())?, drive)
    }

    fn start(config: ClientConfig, drive: Drive) -> Result<Client, Error> {
        let server = config.server.as_ref().map(|server| server.address_text());
        let me = config.proc.clone();
        let machine = core::Client::new(config).within(AROUND);
        let store = machine.store();
        let trust = Trust::of_started_process();
        let setup = Setup { machine, drive, listener: None, upcalls: None, trust };
        let (engine, begun) = Engine::start_with(setup, ClientCall::Init)
            .map_err(|source| Error::System { doing: "starting the PMIx progress engine", source })?;
        let client = Client {
            engine: Way::Client(engine),
            store,
            me,
            singleton: server.is_none(),
            pid: process_id(),
            screens: Mutex::default(),
            shown: Shown::default(),
        };
        match begun? {
            ClientReturn::Init(Ok(())) => Ok(client),
            ClientReturn::Init(Err(reason)) => Err(Error::Init {
                server: server.unwrap_or_default(),
                reason,
                source: client.engine.take_trouble(),
            }),
            other => Err(unexpected("init", &other)),
        }
    }

    /// The calls of a tool that has been admitted, or runs alone.
    pub(crate) fn of_tool(
        engine: Arc<Engine<core::Tool>>,
        attached: core::Attached,
        info: &[Info],
    ) -> Result<Client, Error> {
        let server = attached.server.as_ref().map(|server| server.nspace.clone());
        let client = Client {
            engine: Way::Tool(engine),
            store: attached.store,
            me: attached.me,
            singleton: attached.server.is_none(),
            pid: process_id(),
            screens: Mutex::default(),
            shown: Shown::of_tool(info, server),
        };
        client.show_unasked()?;
        Ok(client)
    }

    /// The name of this process.
    pub fn proc(&self) -> &ProcId {
        &self.me
    }

    /// The process of that rank of this job.
    pub fn peer(&self, rank: u32) -> ProcId {
        ProcId::new(&self.me.nspace, Rank(rank))
    }

    /// All processes of this job; also the owner of values of the job as a whole.
    pub fn job(&self) -> ProcId {
        ProcId::all(&self.me.nspace)
    }

    /// Whether no launcher started this process: it has no server and is alone in its job.
    pub fn is_singleton(&self) -> bool {
        self.singleton
    }

    /// Makes progress as far as possible without waiting (`PMIx_Progress`), if the program drives progress itself.
    pub fn progress(&self) {
        if self.check_pid().is_ok() {
            self.engine.progress();
        }
    }

    /// Ends the progress thread of this library (`PMIx_Progress_thread_stop`). From then on the program makes progress, as if it had
    /// chosen [`Drive::Host`]: callbacks run inside its calls, and calls that do not wait continue when it calls
    /// [`progress`](Client::progress). With `flushes`, the thread finishes earlier requests first. Called in a callback, it ends the
    /// thread after that callback.
    pub fn stop_progress_thread(&self, flushes: bool) {
        if self.check_pid().is_ok() {
            self.engine.stop_thread(flushes);
        }
    }

    /// Everything pending: requests to the server, and handlers of this program.
    pub fn explain(&self) -> Result<Explanation, Error> {
        self.check_pid()?;
        self.engine.explain()
    }

    fn call(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.check_pid()?;
        self.engine.call(call)
    }

    fn done(&self, call: ClientCall, operation: impl FnOnce() -> String) -> Result<(), Error> {
        done(self.call(call)?, operation)
    }

    fn infos(&self, call: ClientCall, operation: impl FnOnce() -> String) -> Result<Vec<Info>, Error> {
        infos(self.call(call)?, operation)
    }

    /// Ends the screens while the server can still get reports of what they showed.
    fn end_screens(&self) {
        let all: Vec<HandlerId> = self.screens().keys().copied().collect();
        let patience = [Info::new(keys::TIMEOUT, END_OF_PULL)];
        for id in all {
            // A server that is gone, or slow, must not keep the process from ending.
            let _ = self.iof_deregister(id, &patience);
        }
    }

    /// All output for screens is written when this returns.
    fn close_screens(&self) {
        self.screens().clear();
        self.shown.close();
    }

    fn screens(&self) -> MutexGuard<'_, BTreeMap<HandlerId, Vec<(HandlerId, Screen)>>> {
        self.screens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // A forked child has its parent's memory, including locks held at that moment, but not its thread.
    pub(crate) fn check_pid(&self) -> Result<(), Error> {
        if process_id() == self.pid { Ok(()) } else { Err(Error::Forked) }
    }
}

impl Role for core::Tool {
    fn handled(delivery: DeliveryId, verdict: Verdict) -> core::ToolCall {
        core::ToolCall::Client(ClientCall::Handled { delivery, verdict })
    }

    fn taken(delivery: DeliveryId, held: usize) -> core::ToolCall {
        core::ToolCall::Client(ClientCall::Taken { delivery, held })
    }

    fn explain(&self) -> Vec<Waiting> {
        core::Tool::explain(self)
    }

    fn awaits_news(&self) -> bool {
        true
    }
}

impl Role for core::Client {
    fn handled(delivery: DeliveryId, verdict: Verdict) -> ClientCall {
        ClientCall::Handled { delivery, verdict }
    }

    fn taken(delivery: DeliveryId, held: usize) -> ClientCall {
        ClientCall::Taken { delivery, held }
    }

    fn explain(&self) -> Vec<Waiting> {
        core::Client::explain(self)
    }

    fn awaits_news(&self) -> bool {
        core::Client::awaits_news(self)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.check_pid().is_err() {
            // Locks and threads are the parent's.
            std::mem::forget(std::mem::take(&mut self.screens));
            std::mem::forget(std::mem::take(&mut self.shown));
            return self.engine.abandon();
        }
        self.end_screens();
        // After a finalize this is refused, and nothing is sent to the server.
        let _ = self.engine.call_last(ClientCall::Finalize { info: Vec::new() });
        self.engine.stop();
        self.close_screens();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("proc", &self.me).finish_non_exhaustive()
    }
}

fn key(name: &str) -> Result<Key, Error> {
    Key::new(name).map_err(|reason| Error::Key { key: name.to_owned(), reason })
}

fn keys_of(names: &[&str]) -> Result<Vec<Key>, Error> {
    names.iter().map(|name| key(name)).collect()
}

pub(crate) fn done(result: ClientReturn, operation: impl FnOnce() -> String) -> Result<(), Error> {
    match result {
        ClientReturn::Done(status) if status.is_success() => Ok(()),
        ClientReturn::Done(status) => Err(Error::Failed { operation: operation(), status }),
        other => Err(unexpected(&operation(), &other)),
    }
}

fn infos(result: ClientReturn, operation: impl FnOnce() -> String) -> Result<Vec<Info>, Error> {
    match result {
        ClientReturn::Infos(status, info) if status.is_success() => Ok(info),
        ClientReturn::Infos(status, results) if !results.is_empty() => {
            Err(Error::Reported { operation: operation(), status, results })
        }
        ClientReturn::Infos(status, _) => Err(Error::Failed { operation: operation(), status }),
        other => Err(unexpected(&operation(), &other)),
    }
}

/// In seconds.
const END_OF_PULL: u32 = 5;

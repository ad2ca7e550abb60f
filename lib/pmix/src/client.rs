//! A process of a parallel job.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::{
    self as core, ClientCall, ClientConfig, ClientReturn, Event, HandlerId, Lookup, LookupRequest, Store,
    Verdict,
};
use phalanx_spec::{Range, Rank, Scope, Status, keys};
use phalanx_wire::{Info, InfoList, Key, Kval, Nspace, Pdata, ProcId, Query, Text, Value};

use crate::engine::Engine;
use crate::environ::{self, Identity};
use crate::error::Error;

/// This process as a client of the PMIx server that started it. Shared between threads by reference.
///
/// Dropping it says goodbye to the server, like [`finalize`](Client::finalize), and keeps quiet about failures.
pub struct Client {
    engine: Engine,
    store: Arc<Store>,
    me: ProcId,
    singleton: bool,
    pid: u32,
    handlers: AtomicU64,
}

impl Client {
    /// Connects to the server that the environment names and fetches the job's data (`PMIx_Init`).
    ///
    /// Without an environment of a launcher the process becomes a job of its own, see
    /// [`is_singleton`](Client::is_singleton). Blocks until the server has answered, at most two minutes; longer if a
    /// debugger holds the process.
    pub fn init() -> Result<Client, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        Client::start(environ::read(variable, Identity::of_this_process())?)
    }

    fn start(config: ClientConfig) -> Result<Client, Error> {
        let server = config.server.as_ref().map(|server| server.address_text());
        let me = config.proc.clone();
        let machine = core::Client::new(config);
        let store = machine.store();
        let engine = Engine::start(machine)
            .map_err(|source| Error::System { doing: "starting the PMIx progress thread", source })?;
        let client = Client {
            engine,
            store,
            me,
            singleton: server.is_none(),
            pid: process::id(),
            handlers: AtomicU64::new(0),
        };
        match client.call(ClientCall::Init)? {
            ClientReturn::Init(Ok(())) => Ok(client),
            ClientReturn::Init(Err(reason)) => Err(Error::Init {
                server: server.unwrap_or_default(),
                reason,
                source: client.engine.take_trouble(),
            }),
            other => Err(unexpected("init", &other)),
        }
    }

    /// The name of this process.
    pub fn proc(&self) -> &ProcId {
        &self.me
    }

    /// The process of that rank of this job.
    pub fn peer(&self, rank: u32) -> ProcId {
        ProcId::new(&self.me.nspace, Rank(rank))
    }

    /// All processes of this job; also the owner of what concerns the job as a whole.
    pub fn job(&self) -> ProcId {
        ProcId::all(&self.me.nspace)
    }

    /// Whether nobody started this process: it has no server and is alone in its job.
    pub fn is_singleton(&self) -> bool {
        self.singleton
    }

    /// Offers a value to other processes, from the next [`commit`](Client::commit) on (`PMIx_Put`). This process sees it at
    /// once. A key that was put before gets the new value.
    pub fn put(&self, scope: Scope, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        let key = key(name)?;
        if key.is_reserved() {
            return Err(Error::ReservedKey { key: name.to_owned() });
        }
        if ![Scope::LOCAL, Scope::REMOTE, Scope::GLOBAL, Scope::INTERNAL].contains(&scope) {
            return Err(Error::Scope(scope));
        }
        self.store.put(scope, Kval { key, value: value.into() });
        Ok(())
    }

    /// Hands what was put to the server (`PMIx_Commit`).
    pub fn commit(&self) -> Result<(), Error> {
        self.check_pid()?;
        self.done(ClientCall::Commit(self.store.take_staged()), || "commit".into())
    }

    /// Waits until all these processes have called it with the same participants; none: the whole job (`PMIx_Fence`).
    ///
    /// With `pmix.collect` ([`keys::COLLECT_DATA`]) what they have committed is exchanged on the way. `pmix.timeout` limits
    /// the wait, in seconds.
    pub fn fence(&self, procs: &[ProcId], info: &[Info]) -> Result<(), Error> {
        let operation = || match procs {
            [] => format!("fence of {}", self.job()),
            _ => format!("fence of {} participants", procs.len()),
        };
        self.done(ClientCall::Fence { procs: procs.to_vec(), info: info.to_vec() }, operation)
    }

    /// The value of a key (`PMIx_Get`): of a process, of a job (rank WILDCARD), or of a node or app that `info` names.
    ///
    /// What is known here is answered at once, on this thread. Otherwise the server is asked, which waits until the process
    /// has committed the key, unless `info` says otherwise: `pmix.optional` never asks, `pmix.immediate` does not wait,
    /// `pmix.timeout` limits the wait, in seconds.
    pub fn get(&self, proc: &ProcId, name: &str, info: &[Info]) -> Result<Value, Error> {
        self.check_pid()?;
        if info.is_empty()
            && let Some(value) = self.store.value(proc, name)
        {
            return Ok(value);
        }
        self.look_up(LookupRequest::new(proc.clone(), Some(key(name)?), info), info)
    }

    /// Everything that a process has put and committed, and what its host says of it.
    pub fn get_all(&self, proc: &ProcId, info: &[Info]) -> Result<Vec<Info>, Error> {
        self.check_pid()?;
        match self.look_up(LookupRequest::new(proc.clone(), None, info), info)? {
            Value::DataArray(array) => Ok(array.infos().cloned().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// A value of this job as a whole, its session, or this process's node and app: `get` with rank WILDCARD.
    pub fn get_job(&self, name: &str) -> Result<Value, Error> {
        self.get(&self.job(), name, &[])
    }

    fn look_up(&self, request: LookupRequest, info: &[Info]) -> Result<Value, Error> {
        // Made only where it is needed: a hit takes less time than this text.
        let operation = |request: &LookupRequest| match &request.key {
            Some(key) => format!("get of {key} of {}", request.proc),
            None => format!("get of everything of {}", request.proc),
        };
        let (operation, result) = match self.store.lookup(&request) {
            Lookup::Hit(value) => return Ok(value),
            Lookup::Absent => (operation(&request), Err(Status::ERR_NOT_FOUND)),
            Lookup::AskServer => {
                let operation = operation(&request);
                match self.call(ClientCall::Get { request, info: info.to_vec() })? {
                    ClientReturn::Value(result) => (operation, result),
                    other => return Err(unexpected(&operation, &other)),
                }
            }
        };
        result.map_err(|status| Error::Failed { operation, status })
    }

    /// Makes values known by their keys to everybody in range (`PMIx_Publish`). Data and directives (`pmix.range`,
    /// `pmix.persist`, `pmix.timeout`) stand mixed in `info`.
    pub fn publish(&self, info: &[Info]) -> Result<(), Error> {
        self.done(ClientCall::Publish { info: info.to_vec() }, || "publish".into())
    }

    /// What was published under these keys (`PMIx_Lookup`). If only some are there, those. With `pmix.wait` the host waits
    /// for the rest.
    pub fn lookup(&self, names: &[&str], info: &[Info]) -> Result<Vec<Pdata>, Error> {
        let call = ClientCall::Lookup { keys: keys_of(names)?, info: info.to_vec() };
        let operation = || format!("lookup of {}", names.join(", "));
        match self.call(call)? {
            ClientReturn::Found(status, data) if status.is_success() || !data.is_empty() => Ok(data),
            // OpenPMIx 5.0 says that it has found some of the keys, and then does not send them.
            ClientReturn::Found(status, _) => Err(Error::Failed { operation: operation(), status }),
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Takes back what this process has published under these keys; none: everything (`PMIx_Unpublish`).
    pub fn unpublish(&self, names: &[&str], info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Unpublish { keys: keys_of(names)?, info: info.to_vec() };
        self.done(call, || format!("unpublish of {}", names.join(", ")))
    }

    /// Ends these processes; none: the whole job (`PMIx_Abort`). Usually this one is among them, and the call does not
    /// return. `status` is what the launcher is to report.
    pub fn abort(&self, status: i32, message: &str, procs: &[ProcId]) -> Result<(), Error> {
        let message = (!message.is_empty()).then(|| Text::from(message));
        let call = ClientCall::Abort { status: Status(status), message, procs: procs.to_vec() };
        self.done(call, || "abort".into())
    }

    /// Calls `handler` on the progress thread whenever one of these events happens; no codes: any event
    /// (`PMIx_Register_event_handler`).
    ///
    /// Handlers of one event run one after the other: single-code handlers before those of several codes before default ones,
    /// newer before older; `info` can say otherwise. Each is given the results of those before it. A status of
    /// `PMIX_EVENT_ACTION_COMPLETE` ends the chain.
    pub fn register_event_handler(
        &self,
        codes: &[Status],
        info: &[Info],
        handler: impl FnMut(&Event, &[Info]) -> Verdict + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        let id = HandlerId(self.handlers.fetch_add(1, Ordering::Relaxed));
        self.engine.keep(id, Box::new(handler))?;
        let call = ClientCall::RegisterEvents { handler: id, codes: codes.to_vec(), info: info.to_vec() };
        let registered = self.done(call, || "registration of an event handler".into());
        if registered.is_err() {
            self.engine.forget(id)?;
        }
        registered.map(|()| id)
    }

    /// The handler is not called any more when this returns (`PMIx_Deregister_event_handler`).
    pub fn deregister_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.done(ClientCall::DeregisterEvents { handler: id }, || {
            "deregistration of an event handler".into()
        })?;
        self.engine.forget(id)
    }

    /// Raises an event (`PMIx_Notify_event`). Handlers of this process run as well, if it is in range.
    pub fn notify(&self, code: Status, range: Range, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Notify { code, range, info: info.to_vec() };
        self.done(call, || format!("notification of {code}"))
    }

    /// Asks the server and its host (`PMIx_Query_info`). If only some questions have an answer, those.
    pub fn query(&self, queries: &[Query]) -> Result<Vec<Info>, Error> {
        match self.call(ClientCall::Query { queries: queries.to_vec() })? {
            ClientReturn::Infos(status, info)
                if status.is_success()
                    || [Status::QUERY_PARTIAL_SUCCESS, Status::ERR_PARTIAL_SUCCESS].contains(&status) =>
            {
                Ok(info)
            }
            other => infos(other, "query"),
        }
    }

    /// Hands data to the logs of the host (`PMIx_Log`): `data` names the channels, such as `pmix.log.stderr`.
    pub fn log(&self, data: &[Info], directives: &[Info]) -> Result<(), Error> {
        let timestamp = match directives.is_set(keys::LOG_GENERATE_TIMESTAMP) {
            true => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            false => 0,
        };
        let call = ClientCall::Log { timestamp, data: data.to_vec(), directives: directives.to_vec() };
        self.done(call, || "log".into())
    }

    /// Directs running processes, or tells the host what to do when they end (`PMIx_Job_control`). No targets: the whole
    /// job.
    pub fn job_control(&self, targets: &[ProcId], directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::JobControl { targets: targets.to_vec(), directives: directives.to_vec() };
        infos(self.call(call)?, "job control")
    }

    /// The processes of a job on a node (`PMIx_Resolve_peers`); no node: this one.
    pub fn resolve_peers(&self, node: Option<&str>, nspace: &Nspace) -> Result<Vec<ProcId>, Error> {
        let call = ClientCall::ResolvePeers { node: node.map(Text::from), nspace: nspace.clone() };
        let operation = || format!("resolution of the processes of {nspace}");
        match self.call(call)? {
            ClientReturn::Peers(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// The host names of a job's nodes (`PMIx_Resolve_nodes`).
    pub fn resolve_nodes(&self, nspace: &Nspace) -> Result<Vec<String>, Error> {
        let operation = || format!("resolution of the nodes of {nspace}");
        match self.call(ClientCall::ResolveNodes { nspace: nspace.clone() })? {
            ClientReturn::Nodes(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Says goodbye to the server and ends the progress thread (`PMIx_Finalize`). With `pmix.embed.barrier` only after all
    /// processes of the job have come this far.
    pub fn finalize(self, info: &[Info]) -> Result<(), Error> {
        self.done(ClientCall::Finalize { info: info.to_vec() }, || "finalize".into())
    }

    fn call(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.check_pid()?;
        self.engine.call(call)
    }

    fn done(&self, call: ClientCall, operation: impl FnOnce() -> String) -> Result<(), Error> {
        match self.call(call)? {
            ClientReturn::Done(status) if status.is_success() => Ok(()),
            ClientReturn::Done(status) => Err(Error::Failed { operation: operation(), status }),
            other => Err(unexpected(&operation(), &other)),
        }
    }

    // A forked child has the memory of its parent, locks held at that moment included, but not its thread.
    fn check_pid(&self) -> Result<(), Error> {
        if process::id() == self.pid { Ok(()) } else { Err(Error::Forked) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.check_pid().is_err() {
            return self.engine.abandon();
        }
        // Finalized before: this is refused, and nothing is said to the server.
        let _ = self.engine.call(ClientCall::Finalize { info: Vec::new() });
        self.engine.stop();
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

fn infos(result: ClientReturn, operation: &str) -> Result<Vec<Info>, Error> {
    match result {
        ClientReturn::Infos(status, info) if status.is_success() => Ok(info),
        ClientReturn::Infos(status, _) => Err(Error::Failed { operation: operation.into(), status }),
        other => Err(unexpected(operation, &other)),
    }
}

/// The machine answered a call with the answer to another: a fault of ours.
fn unexpected(operation: &str, got: &ClientReturn) -> Error {
    tracing::error!(operation, ?got, "an answer of another kind");
    Error::Failed { operation: operation.into(), status: Status::ERROR }
}

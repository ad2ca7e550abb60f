//! A PMIx server in the process of a host: its start and end, and the path of a call. One file per verb.
//!
//! `host` is the other direction: the server's requests to its host.

mod done;
mod event;
mod get;
mod host;
mod inventory;
mod iof;
mod job;
mod options;
mod own;
mod pset;
mod registry;
mod resources;
mod setup;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::{
    ClientCall, DeliveryId, ModexForm, ServerCall, ServerConfig, ServerProcess, ServerProcessCall,
    ServerProcessReturn, ServerReturn, Store, Verdict, Waiting,
};
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Nspace, ProcId};
use rustix::process::{getegid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::engine::{Engine, Explanation, Role, Setup};
use crate::error::{Error, unexpected};
use crate::forked::process_id;
use crate::support::AROUND;
use phalanx_shell::Trust;
use phalanx_shell::collected;
use phalanx_shell::listen::Listener;
use phalanx_shell::rendezvous::{Announcement, Mode, Notice};

pub use done::{Credential, Done, Outcome};
pub use host::Host;
pub use host::*;
pub use inventory::ATTRIBUTES as INVENTORY_ATTRIBUTES;
pub use options::{ATTRIBUTES as INIT_ATTRIBUTES, ServerOptions};
pub use phalanx_core::host::{
    AbortRequest, Asked, ConnectRequest, DirectModexRequest, EventsRequest, FenceRequest, GroupRequest,
    LogRequest, MonitorRequest, PublishRequest, PublishedRequest, PullEnded, PullRequest, QueryRequest,
    SpawnRequest, StdinRequest, ToolRequest,
};
use setup::Changes;
pub use setup::{ForkSetup, SETUP_ATTRIBUTES, SUPPORT_ATTRIBUTES};

/// This process as the PMIx server of processes that it starts. Shared between threads by reference.
///
/// Dropping it ends it, like [`finalize`](Server::finalize).
pub struct Server {
    engine: Engine<ServerProcess>,
    config: Arc<ServerConfig>,
    node_id: Option<u32>,
    /// The host's registrations of its jobs, to which it may add later.
    jobs: Mutex<BTreeMap<Nspace, registry::Registration>>,
    changes: Mutex<Changes>,
    store: Arc<Store>,
    pid: u32,
    /// The rendezvous files by which tools find it, until it ends.
    announcement: Mutex<Option<Announcement>>,
}

impl Server {
    /// Opens a port on the loopback interface and serves the clients that the host registers (`PMIx_server_init`).
    pub fn start(options: ServerOptions, host: impl Host + 'static) -> Result<Server, Error> {
        let system = |doing| move |source| Error::System { doing, source };
        let door = options.reach.door().map_err(system("finding an address for tools on other nodes"))?;
        let listener = Listener::open(door.listen).map_err(system("opening a port for PMIx clients"))?;
        let mut seed = [0; 32];
        getrandom(&mut seed, GetRandomFlags::empty())
            .map_err(|errno| system("getting random bytes")(errno.into()))?;
        let config = ServerConfig {
            identity: options.identity()?,
            hostname: options.hostname(),
            address: format!("tcp4://{}", door.inside(listener.address())),
            server_tmpdir: options.server_tmpdir(),
            system_tmpdir: options.system_tmpdir(),
            owner_uid: geteuid().as_raw(),
            tools_of: options.tools_of(),
            refuse_clones: options.refuse_clones,
            joins_fences_of_jobs: false,
            remote: door.remote(listener.address()),
            collections: options.server_tmpdir.as_ref().and_then(|dir| collected::beginning(dir.as_ref())),
            modex: ModexForm::OpenPmix,
            clock: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            topology: if options.share_topology {
                Some(Arc::new(crate::topology::topology()?))
            } else {
                None
            },
            output: options.output.clone(),
            seed,
        };
        // Before anything is started that would have to be ended again.
        let announcement = announce(&options, &config, door.outside(listener.address()))?;
        let machine = ServerProcess::new(config.clone(), getegid().as_raw()).within(AROUND);
        let store = machine.store();
        let mut host = host;
        let engine = Engine::start(Setup {
            machine,
            drive: options.drive,
            listener: Some(listener),
            upcalls: Some(Box::new(move |op, answer| host::ask(&mut host, op, answer))),
            trust: Trust::default(),
        })
        .map_err(system("starting the PMIx progress engine"))?;
        Ok(Server {
            engine,
            config: Arc::new(config),
            node_id: options.node_id,
            jobs: Mutex::default(),
            changes: Mutex::default(),
            store,
            pid: process_id(),
            announcement: Mutex::new(announcement),
        })
    }

    /// The server's own name.
    pub fn proc(&self) -> &ProcId {
        &self.config.identity
    }

    /// The name of its node.
    pub fn hostname(&self) -> &str {
        &self.config.hostname
    }

    /// Everything pending: collectives, gets, requests to the host, running event handlers.
    pub fn explain(&self) -> Result<Explanation, Error> {
        self.check_pid()?;
        self.engine.explain()
    }

    /// Makes progress as far as possible without waiting (`PMIx_Progress`), if the program drives progress itself.
    pub fn progress(&self) {
        if self.check_pid().is_ok() {
            self.engine.progress();
        }
    }

    /// Ends the progress thread of this library (`PMIx_Progress_thread_stop`). From then on the program makes progress, as if it had
    /// chosen [`Drive::Host`](crate::Drive::Host): callbacks run inside its calls, and calls that do not wait continue when it calls
    /// [`progress`](Server::progress). With `flushes`, the thread finishes earlier requests first. Called in a callback, it ends the
    /// thread after that callback.
    pub fn stop_progress_thread(&self, flushes: bool) {
        if self.check_pid().is_ok() {
            self.engine.stop_thread(flushes);
        }
    }

    /// Whether this runs inside a method of the host or another callback: blocking calls are refused there.
    pub fn is_progress_thread(&self) -> bool {
        self.engine.is_progress_thread()
    }

    /// Closes all connections and ends, whatever clients do (`PMIx_server_finalize`). Later answers of the host are ignored.
    pub fn finalize(self) {
        drop(self);
    }

    /// Ends like [`finalize`](Server::finalize), for all its owners; later calls are refused.
    pub fn close(&self) {
        if self.check_pid().is_ok() {
            drop(self.announcement.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.engine.stop();
        }
    }

    fn call(&self, call: ServerCall) -> Result<ServerReturn, Error> {
        self.check_pid()?;
        match self.engine.call(ServerProcessCall::Server(call))? {
            ServerProcessReturn::Server(result) => Ok(result),
            other => Err(unexpected("call of a server", &other)),
        }
    }

    fn call_then(
        &self,
        call: ServerCall,
        then: impl FnOnce(Result<ServerReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.call_then(ServerProcessCall::Server(call), move |result| {
            then(result.and_then(|result| match result {
                ServerProcessReturn::Server(result) => Ok(result),
                other => Err(unexpected("call of a server", &other)),
            }));
        })
    }

    fn done(&self, call: ServerCall, operation: impl FnOnce() -> String) -> Result<(), Error> {
        done(self.call(call)?, operation)
    }

    /// Like `done`, without waiting.
    fn done_then(
        &self,
        call: ServerCall,
        operation: impl FnOnce() -> String + Send + 'static,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.call_then(call, move |result| then(result.and_then(|result| done(result, operation))))
    }

    // A forked child has its parent's memory, including locks held at that moment, but not its thread.
    fn check_pid(&self) -> Result<(), Error> {
        if process_id() == self.pid { Ok(()) } else { Err(Error::Forked) }
    }
}

/// Writes the rendezvous files that the options request.
fn announce(
    options: &ServerOptions,
    config: &ServerConfig,
    address: SocketAddr,
) -> Result<Option<Announcement>, Error> {
    let dir = |wanted: bool, dir: &str| wanted.then(|| dir.into());
    let notice = Notice {
        uri: ServerUri { server: config.identity.clone(), address },
        version: phalanx_core::server::VERSION.to_owned(),
        hostname: config.hostname.clone(),
        secret: config.remote.as_ref().map(|remote| remote.secret.clone()),
        mode: Mode { bits: options.mode(), gid: None },
        system_dir: dir(options.system_support, &config.system_tmpdir),
        server_dir: dir(options.tool_support && !options.system_support, &config.server_tmpdir),
        files: options.rendezvous_file.iter().cloned().collect(),
    };
    if notice.system_dir.is_none() && notice.server_dir.is_none() && notice.files.is_empty() {
        return Ok(None);
    }
    if let Some(dir) = &notice.server_dir {
        // A host may name a directory that does not exist yet. If creating it fails, writing the file reports that.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    }
    Ok(Some(Announcement::make(&notice)?))
}

impl Role for ServerProcess {
    fn handled(delivery: DeliveryId, verdict: Verdict) -> ServerProcessCall {
        ServerProcessCall::Client(ClientCall::Handled { delivery, verdict })
    }

    fn taken(delivery: DeliveryId, held: usize) -> ServerProcessCall {
        ServerProcessCall::Client(ClientCall::Taken { delivery, held })
    }

    fn explain(&self) -> Vec<Waiting> {
        ServerProcess::explain(self)
    }

    fn awaits_news(&self) -> bool {
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.check_pid() {
            Ok(()) => self.engine.stop(),
            Err(_) => self.engine.abandon(),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("proc", &self.config.identity).finish_non_exhaustive()
    }
}

fn done(result: ServerReturn, operation: impl FnOnce() -> String) -> Result<(), Error> {
    match result {
        ServerReturn::Done(status) if status.is_success() => Ok(()),
        ServerReturn::Held(_) => Ok(()),
        ServerReturn::Done(status) => Err(Error::Failed { operation: operation(), status }),
        other => Err(unexpected(&operation(), &other)),
    }
}

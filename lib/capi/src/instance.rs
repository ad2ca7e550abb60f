//! The state of the process: created by the first init, ended by the last finalize.
//!
//! A process has one instance for client calls. Usually that is a client; in a process that is only a server it is the
//! server, and the inits of both roles are counted together. A process may also be a client of one server and the server of
//! others.
//!
//! A forked child has its parent's memory but not its threads, so nothing of the parent's may be touched there, locks
//! included: the process id is compared before anything else, and a child starts with a state of its own. The old one is
//! left unchanged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use phalanx_shell::stdin::Collection;
use phalanx_spec::{Status, keys};
use pmix::server::ForkSetup;
use pmix::{ClientCall, Error, HandlerId, Info, Screen};

use crate::client::calls::ended;
use crate::client::get::Kept;
use crate::native::Native;
use crate::server::serving::Serving;

struct Process {
    pid: u32,
    current: RwLock<Current>,
}

#[derive(Default)]
struct Current {
    /// Inits of a client, unless the instance is the server.
    references: usize,
    instance: Option<Arc<Instance>>,
    /// The server and the inits that share it.
    serving: Option<(Arc<Serving>, usize)>,
    /// The tool holds one of those references, which ends with the tool.
    tool_serves: bool,
    /// The file for the tool's address when it serves.
    tool_file: Option<String>,
}

/// The maker of client calls, with the state of its C side.
pub(crate) struct Instance {
    pub(crate) client: Native,
    /// Values that programs have pointers to.
    pub(crate) kept: Mutex<Kept>,
    /// The screens for output without a callback, or for files beside one, by the program's number of the pull.
    screens: Mutex<Screens>,
    /// The thread that collects standard input, and the means to end it.
    collecting: Mutex<Option<(Arc<Collection>, JoinHandle<()>)>>,
}

/// By pull, each screen with the handler that feeds it.
type Screens = BTreeMap<usize, Vec<(HandlerId, Screen)>>;

impl Instance {
    pub(crate) fn screens(&self) -> MutexGuard<'_, Screens> {
        self.screens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a pull. When this returns, earlier output has arrived, and has been written where it is shown.
    pub(crate) fn end_pull(&self, reference: usize, directives: &[Info]) -> Result<(), Status> {
        let end = |handler| {
            let call = ClientCall::IofDeregister { handler, directives: directives.to_vec() };
            let answer = ended(self.client.perform(call));
            self.client.forget_output_handler(handler).map_err(|error| error.status()).and(answer)
        };
        let own = HandlerId(reference as u64);
        let answer = end(own);
        let screens = self.screens().remove(&reference).unwrap_or_default();
        for (handler, screen) in screens {
            // Pulls that have ended already show nothing more.
            let _ = if handler == own { Ok(()) } else { end(handler) };
            drop(screen);
        }
        answer
    }

    /// Ends the screens while the server can still get reports of what they showed.
    fn end_screens(&self) {
        let all: Vec<usize> = self.screens().keys().copied().collect();
        let patience = [Info::new(keys::TIMEOUT, END_OF_PULL)];
        for reference in all {
            // A server that is gone, or slow, must not keep the process from ending.
            let _ = self.end_pull(reference, &patience);
        }
    }

    /// Collects standard input for other processes, one collection at a time.
    pub(crate) fn collect(
        &self,
        push: impl FnMut(&[u8]) -> Result<(), Status> + Send + 'static,
    ) -> Result<(), Status> {
        let mut collecting = self.collecting.lock().unwrap_or_else(PoisonError::into_inner);
        if collecting.as_ref().is_some_and(|(_, thread)| !thread.is_finished()) {
            return Err(Status::ERR_EXISTS);
        }
        let collection = Arc::new(Collection::new().map_err(|_| Status::ERR_OUT_OF_RESOURCE)?);
        let thread = collection.clone().spawn(push).map_err(|_| Status::ERR_OUT_OF_RESOURCE)?;
        *collecting = Some((collection, thread));
        Ok(())
    }

    pub(crate) fn stop_collecting(&self) -> Option<JoinHandle<()>> {
        let stopped = self.collecting.lock().unwrap_or_else(PoisonError::into_inner).take();
        stopped.map(|(collection, thread)| {
            collection.stop();
            thread
        })
    }
}

static STATE: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// Set while this process is a server.
static FORK_SETUP: AtomicPtr<ForkSetup> = AtomicPtr::new(std::ptr::null_mut());

fn state() -> &'static Process {
    let pid = pmix::process_id();
    let found = STATE.load(Ordering::Acquire);
    // SAFETY: NULL, or a state that was leaked below.
    if let Some(state) = unsafe { found.as_ref() }
        && state.pid == pid
    {
        return state;
    }
    let fresh = Box::into_raw(Box::new(Process { pid, current: RwLock::default() }));
    let now = match STATE.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: no other thread has seen it.
            drop(unsafe { Box::from_raw(fresh) });
            other
        }
    };
    // SAFETY: leaked: one per process, never freed.
    unsafe { &*now }
}

/// The instance, if this process has called init and not finalize.
pub(crate) fn instance() -> Result<Arc<Instance>, Status> {
    read(state()).instance.clone().ok_or(Status::ERR_INIT)
}

/// The server, if this process is one.
pub(crate) fn serving() -> Result<Arc<Serving>, Status> {
    read(state()).serving.as_ref().map(|(serving, _)| serving.clone()).ok_or(Status::ERR_INIT)
}

/// Calls this for everything that makes progress in this process.
pub(crate) fn each_role(run: impl Fn(&Native)) {
    let (instance, serving) = {
        let current = read(state());
        (current.instance.clone(), current.serving.as_ref().map(|(serving, _)| serving.clone()))
    };
    if let Some(instance) = &instance {
        run(&instance.client);
    }
    // Without a client the server is the instance.
    if let Some(serving) = serving
        && !matches!(instance.as_deref(), Some(Instance { client: Native::Server(_), .. }))
    {
        run(&Native::Server(serving));
    }
}

/// The environment for processes of this process's server or, in a child that was forked to become one of them, of its
/// parent's: Slurm sets its tasks up after the fork.
pub(crate) fn fork_setup() -> Result<ForkSetup, Status> {
    if let Ok(serving) = serving() {
        return Ok(serving.server.fork_setup());
    }
    // SAFETY: NULL, or a pointer that the parent had not freed when it forked; it is never freed in the child.
    let inherited = unsafe { FORK_SETUP.load(Ordering::Acquire).as_ref() };
    inherited.cloned().ok_or(Status::ERR_INIT)
}

/// The setup of jobs has changed: children forked from now on use it.
pub(crate) fn renew_fork_setup() -> Result<(), Status> {
    set_fork_setup(Some(serving()?.server.fork_setup()));
    Ok(())
}

fn set_fork_setup(setup: Option<ForkSetup>) {
    let new = setup.map_or(std::ptr::null_mut(), |setup| Box::into_raw(Box::new(setup)));
    let old = FORK_SETUP.swap(new, Ordering::AcqRel);
    if !old.is_null() {
        // SAFETY: it came from a box, and is only read in children of the process that set it.
        drop(unsafe { Box::from_raw(old) });
    }
}

pub(crate) fn is_initialized() -> bool {
    read(state()).instance.is_some()
}

/// Adds a reference to the instance; the first creates it, as a client or a tool.
pub(crate) fn acquire(start: impl FnOnce() -> Result<Native, Status>) -> Result<Arc<Instance>, Status> {
    let mut current = write(state());
    if let Some(instance) = current.instance.clone() {
        match (&instance.client, &mut current.serving) {
            (Native::Server(_), Some((_, references))) => *references += 1,
            _ => current.references += 1,
        }
        return Ok(instance);
    }
    let instance = Arc::new(Instance {
        client: start()?,
        kept: Mutex::default(),
        screens: Mutex::default(),
        collecting: Mutex::default(),
    });
    current.instance = Some(instance.clone());
    current.references = 1;
    Ok(instance)
}

/// Drops a reference; the last ends the client, or the server.
pub(crate) fn release(info: &[Info]) -> Result<(), Status> {
    let last = {
        let mut current = write(state());
        match current.instance.as_ref().map(|instance| &instance.client) {
            None => return Err(Status::ERR_INIT),
            Some(role) if role.is_progress_thread() => return Err(Status::ERR_WOULD_BLOCK),
            Some(Native::Server(_)) => {
                drop(current);
                return release_server();
            }
            Some(_) => {}
        }
        current.references = current.references.saturating_sub(1);
        if current.references > 0 {
            return Ok(());
        }
        let last = current.instance.take();
        current.tool_file = None;
        // The server is left: it makes the process's client calls from now on.
        current.instance = current.serving.as_ref().map(|(serving, _)| of_server(serving));
        last
    };
    let collecting = last.as_ref().and_then(|instance| instance.stop_collecting());
    last.iter().for_each(|instance| instance.end_screens());
    let ended = match last.as_deref() {
        Some(Instance { client: Native::Client(client), .. }) => {
            client.close(info).map_err(|error| error.status())
        }
        Some(Instance { client: Native::Tool(tool), .. }) => {
            let closed = tool.close(info).map_err(|error| error.status());
            let serves = std::mem::take(&mut write(state()).tool_serves);
            if serves { closed.and(release_server()) } else { closed }
        }
        _ => Ok(()),
    };
    // All output for screens is written before the program goes on.
    last.iter().for_each(|instance| instance.screens().clear());
    // The pushes that it waited for have ended with the client.
    collecting.map(JoinHandle::join);
    ended
}

/// The tool will put its address into this file as soon as it serves.
pub(crate) fn leave_address(file: String) {
    write(state()).tool_file = Some(file);
}

/// The file for the tool's address, if one is wanted.
pub(crate) fn file_for_address() -> Option<String> {
    read(state()).tool_file.clone()
}

/// The tool becomes a server as well, until it ends.
pub(crate) fn serve_as_tool(start: impl FnOnce() -> Result<Serving, Status>) -> Result<(), Status> {
    if std::mem::replace(&mut write(state()).tool_serves, true) {
        return Err(Status::ERR_EXISTS);
    }
    acquire_server(start).inspect_err(|_| write(state()).tool_serves = false)
}

/// Adds a reference to the server; the first starts it.
pub(crate) fn acquire_server(start: impl FnOnce() -> Result<Serving, Status>) -> Result<(), Status> {
    let mut current = write(state());
    if let Some((_, references)) = &mut current.serving {
        *references += 1;
        return Ok(());
    }
    let serving = Arc::new(start()?);
    if current.instance.is_none() {
        current.instance = Some(of_server(&serving));
    }
    set_fork_setup(Some(serving.server.fork_setup()));
    current.serving = Some((serving, 1));
    Ok(())
}

/// Drops a reference to the server; the last ends it.
pub(crate) fn release_server() -> Result<(), Status> {
    let last = {
        let mut current = write(state());
        let Some((serving, references)) = &mut current.serving else { return Err(Status::ERR_INIT) };
        if serving.server.is_progress_thread() {
            return Err(Status::ERR_WOULD_BLOCK);
        }
        *references -= 1;
        if *references > 0 {
            return Ok(());
        }
        if matches!(current.instance.as_deref(), Some(Instance { client: Native::Server(_), .. })) {
            current.instance = None;
        }
        set_fork_setup(None);
        current.serving.take()
    };
    if let Some((serving, _)) = last {
        serving.close();
    }
    Ok(())
}

fn of_server(serving: &Arc<Serving>) -> Arc<Instance> {
    Arc::new(Instance {
        client: Native::Server(serving.clone()),
        kept: Mutex::default(),
        screens: Mutex::default(),
        collecting: Mutex::default(),
    })
}

/// Logs the reason of a failure; the program only gets the status.
pub(crate) fn told(error: Error) -> Status {
    tracing::warn!(%error, "a PMIx call has failed");
    error.status()
}

fn read(state: &Process) -> RwLockReadGuard<'_, Current> {
    state.current.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(state: &Process) -> RwLockWriteGuard<'_, Current> {
    state.current.write().unwrap_or_else(PoisonError::into_inner)
}

/// In seconds.
const END_OF_PULL: u32 = 5;

//! The process's client: made by the first init, ended by the last finalize.
//!
//! A forked child has its parent's memory but not its threads, so nothing that the parent made may be touched there, locks
//! included: the process id is compared before anything else, and a child starts with a state of its own. The old one is
//! left where it is.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use phalanx_spec::Status;
use pmix::{Client, Error, Info};

use crate::client::get::Kept;

struct State {
    pid: u32,
    current: RwLock<Current>,
}

#[derive(Default)]
struct Current {
    references: usize,
    client: Option<Arc<Instance>>,
}

/// The client with what belongs to the C side of it.
pub(crate) struct Instance {
    pub(crate) client: Client,
    /// Values that programs have pointers to.
    pub(crate) kept: Mutex<Kept>,
}

static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());

fn state() -> &'static State {
    let pid = std::process::id();
    let found = STATE.load(Ordering::Acquire);
    // SAFETY: NULL, or a state that was leaked below.
    if let Some(state) = unsafe { found.as_ref() }
        && state.pid == pid
    {
        return state;
    }
    let fresh = Box::into_raw(Box::new(State { pid, current: RwLock::default() }));
    let now = match STATE.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(fresh) });
            other
        }
    };
    // SAFETY: leaked: one per process, never freed.
    unsafe { &*now }
}

/// The instance, if this process has called init and not finalize.
pub(crate) fn instance() -> Result<Arc<Instance>, Status> {
    read(state()).client.clone().ok_or(Status::ERR_INIT)
}

pub(crate) fn is_initialized() -> bool {
    read(state()).references > 0
}

/// One more reference to the client; the first makes it.
pub(crate) fn acquire() -> Result<Arc<Instance>, Status> {
    let mut current = write(state());
    let instance = match &current.client {
        Some(instance) => instance.clone(),
        None => {
            let client = Client::init().map_err(told)?;
            Arc::new(Instance { client, kept: Mutex::default() })
        }
    };
    current.client = Some(instance.clone());
    current.references += 1;
    Ok(instance)
}

/// One reference less; the last ends the client.
pub(crate) fn release(info: &[Info]) -> Result<(), Status> {
    let last = {
        let mut current = write(state());
        if let Some(instance) = &current.client
            && instance.client.is_progress_thread()
        {
            return Err(Status::ERR_WOULD_BLOCK);
        }
        current.references = current.references.checked_sub(1).ok_or(Status::ERR_INIT)?;
        if current.references == 0 { current.client.take() } else { None }
    };
    match last {
        Some(instance) => instance.client.close(info).map_err(|error| error.status()),
        None => Ok(()),
    }
}

/// A failure that the program only gets a number of: the reason is for the log.
pub(crate) fn told(error: Error) -> Status {
    tracing::warn!(%error, "a PMIx call has failed");
    error.status()
}

fn read(state: &State) -> RwLockReadGuard<'_, Current> {
    state.current.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(state: &State) -> RwLockWriteGuard<'_, Current> {
    state.current.write().unwrap_or_else(PoisonError::into_inner)
}

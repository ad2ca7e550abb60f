//! Upcalls that the host has not answered, and the functions by which it answers.
//!
//! The host's handle for the answer is no pointer but the number of a row and how often that row has been used. A second
//! answer, or one after the server has ended, finds no row and has no effect. A host may answer inside the upcall, from any
//! thread, and as late as it likes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phalanx_spec::{Status, keys};
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId, Value};
use pmix::server::Credential;
use pmix::{Done, GroupFormed};

use super::args::Args;
use crate::client::calls::ReleaseCallback;
use crate::from_c;
use crate::guard::{Code, caught};
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

/// The expected answer, and where it goes.
pub(super) enum Pending {
    Status(Done<()>),
    Modex(Done<Blob>),
    Lookup(Done<Vec<Pdata>>),
    Spawned(Done<Nspace>),
    Infos(Done<Vec<Info>>),
    Credential(Done<Credential>),
    Tool(Done<ProcId>),
    Group(Done<GroupFormed>),
}

impl Pending {
    fn afterwards(self, run: impl FnOnce() + Send + 'static) -> Pending {
        match self {
            Pending::Status(done) => Pending::Status(done.afterwards(run)),
            Pending::Modex(done) => Pending::Modex(done.afterwards(run)),
            Pending::Lookup(done) => Pending::Lookup(done.afterwards(run)),
            Pending::Spawned(done) => Pending::Spawned(done.afterwards(run)),
            Pending::Infos(done) => Pending::Infos(done.afterwards(run)),
            Pending::Credential(done) => Pending::Credential(done.afterwards(run)),
            Pending::Tool(done) => Pending::Tool(done.afterwards(run)),
            Pending::Group(done) => Pending::Group(done.afterwards(run)),
        }
    }

    /// Handles an answer that is only a status. Where data is due, success alone is no answer.
    pub(super) fn end(self, status: Status) {
        let granted = status.is_success();
        match self {
            Pending::Status(done) if granted => done.complete(()),
            Pending::Modex(done) if granted => done.complete(Blob::default()),
            Pending::Lookup(done) if granted => done.refuse(Status::ERR_NOT_FOUND),
            Pending::Infos(done) if granted => done.complete(Vec::new()),
            Pending::Group(done) if granted => done.complete(GroupFormed::default()),
            Pending::Status(done) => done.refuse(status),
            Pending::Modex(done) => done.refuse(status),
            Pending::Lookup(done) => done.refuse(status),
            Pending::Spawned(done) => done.refuse(status),
            Pending::Infos(done) => done.refuse(status),
            Pending::Credential(done) => done.refuse(status),
            Pending::Tool(done) => done.refuse(status),
            Pending::Group(done) => done.refuse(status),
        }
    }
}

struct Open {
    pending: Pending,
    _args: Arc<Args>,
}

#[derive(Default)]
struct Row {
    uses: u32,
    open: Option<Open>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    free: Vec<u32>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { rows: Vec::new(), free: Vec::new() });

/// An upcall that is being made. Its arguments live until the host's function has returned and the host has answered,
/// whichever comes last.
pub(super) struct Ticket {
    token: u64,
    _args: Arc<Args>,
}

/// Opens a row.
pub(super) fn open(pending: Pending, args: Args) -> Ticket {
    let args = Arc::new(args);
    let mut table = table();
    let index = table.free.pop().unwrap_or_else(|| {
        table.rows.push(Row::default());
        u32::try_from(table.rows.len() - 1).unwrap_or(u32::MAX)
    });
    let Some(row) = row(&mut table, index) else { return Ticket { token: 0, _args: args } };
    // Never 0: a token is not NULL.
    row.uses = row.uses.wrapping_add(1).max(1);
    row.open = Some(Open { pending, _args: args.clone() });
    Ticket { token: u64::from(row.uses) << 32 | u64::from(index), _args: args }
}

/// Drops all open upcalls: the server has ended.
pub(super) fn forget_all() {
    let gone: Vec<Open> = {
        let mut table = table();
        let table = &mut *table;
        let mut gone = Vec::new();
        for (index, row) in (0..).zip(&mut table.rows) {
            if let Some(open) = row.open.take() {
                gone.push(open);
                table.free.push(index);
            }
        }
        gone
    };
    // Dropped without the lock: refusals may run much code.
    drop(gone);
}

impl Ticket {
    pub(super) fn cbdata(&self) -> Ptr<Opaque> {
        token(self.token)
    }

    /// Handles the return value of the host's function.
    pub(super) fn returned(self, code: Code) {
        match Status(code) {
            Status::SUCCESS => {}
            Status::OPERATION_SUCCEEDED => self.answer(Status::SUCCESS),
            refusal => self.answer(refusal),
        }
    }

    /// The same for an upcall without a mandatory callback: returning counts as the answer.
    pub(super) fn returned_at_last(self, code: Code) {
        match Status(code) {
            Status::SUCCESS | Status::OPERATION_SUCCEEDED => self.answer(Status::SUCCESS),
            refusal => self.answer(refusal),
        }
    }

    /// Answers with a status alone, unless the host has answered by callback.
    fn answer(self, status: Status) {
        if let Some(open) = take(self.token) {
            open.pending.end(status);
        }
    }
}

/// `pmix_op_cbfunc_t`
pub(super) extern "C" fn done(status: Code, cbdata: Ptr<Opaque>) {
    answered(cbdata, |pending| pending.end(Status(status)));
}

/// `pmix_modex_cbfunc_t`
pub(super) extern "C" fn modex(
    status: Code,
    data: Ptr<u8>,
    size: usize,
    cbdata: Ptr<Opaque>,
    release: ReleaseCallback,
    release_data: Ptr<Opaque>,
) {
    answered_with(cbdata, release, release_data, |pending| match pending {
        Pending::Modex(done) if Status(status).is_success() => done.complete(Blob::from(data.bytes(size))),
        other => other.end(Status(status)),
    });
}

/// `pmix_lookup_cbfunc_t`
pub(super) extern "C" fn lookup(status: Code, data: Ptr<pmix_pdata_t>, count: usize, cbdata: Ptr<Opaque>) {
    answered(cbdata, |pending| {
        let found: Result<Vec<Pdata>, Status> = data.items(count).map(|c| from_c::pdata(&c)).collect();
        let status = Status(status);
        // A partial result is still useful.
        let useful = status.is_success() || status == Status::ERR_PARTIAL_SUCCESS;
        match (pending, found) {
            (Pending::Lookup(done), Ok(found)) if useful && !found.is_empty() => done.complete(found),
            (pending, Ok(_)) => pending.end(status),
            (pending, Err(unreadable)) => pending.end(unreadable),
        }
    });
}

/// `pmix_spawn_cbfunc_t`
pub(super) extern "C" fn spawned(status: Code, nspace: Ptr<[u8; 256]>, cbdata: Ptr<Opaque>) {
    answered(cbdata, |pending| {
        // The host's text may be shorter than the array.
        let name = nspace.start().text().unwrap_or_default();
        match (pending, from_c::nspace(&name)) {
            (Pending::Spawned(done), Ok(nspace)) if Status(status).is_success() => done.complete(nspace),
            (pending, Err(unreadable)) if Status(status).is_success() => pending.end(unreadable),
            (pending, _) => pending.end(Status(status)),
        }
    });
}

/// `pmix_info_cbfunc_t`
pub(super) extern "C" fn infos(
    status: Code,
    infos: Ptr<pmix_info_t>,
    count: usize,
    cbdata: Ptr<Opaque>,
    release: ReleaseCallback,
    release_data: Ptr<Opaque>,
) {
    answered_with(cbdata, release, release_data, |pending| {
        told(pending, Status(status), from_c::infos(infos, count));
    });
}

/// `pmix_validation_cbfunc_t`
pub(super) extern "C" fn validated(status: Code, infos: Ptr<pmix_info_t>, count: usize, cbdata: Ptr<Opaque>) {
    answered(cbdata, |pending| told(pending, Status(status), from_c::infos(infos, count)));
}

/// `pmix_credential_cbfunc_t`
pub(super) extern "C" fn credential(
    status: Code,
    credential: Ptr<pmix_byte_object_t>,
    infos: Ptr<pmix_info_t>,
    count: usize,
    cbdata: Ptr<Opaque>,
) {
    answered(cbdata, |pending| match (pending, credential.read(), from_c::infos(infos, count)) {
        (Pending::Credential(done), Some(credential), Ok(infos)) if Status(status).is_success() => {
            done.complete((from_c::blob(credential), infos));
        }
        (pending, _, Err(unreadable)) => pending.end(unreadable),
        (pending, _, _) => pending.end(Status(status)),
    });
}

/// `pmix_tool_connection_cbfunc_t`
pub(super) extern "C" fn tool(status: Code, proc: Ptr<pmix_proc_t>, cbdata: Ptr<Opaque>) {
    answered(cbdata, |pending| match (pending, proc.read().map(|proc| from_c::proc(&proc))) {
        (Pending::Tool(done), Some(Ok(proc))) if Status(status).is_success() => done.complete(proc),
        (pending, Some(Err(unreadable))) => pending.end(unreadable),
        (pending, _) => pending.end(Status(status)),
    });
}

fn told(pending: Pending, status: Status, infos: Result<Vec<Info>, Status>) {
    match (pending, infos) {
        (Pending::Group(done), Ok(infos)) if status.is_success() => done.complete(formed(infos)),
        (Pending::Infos(done), Ok(infos)) if status.is_success() => done.complete(infos),
        (Pending::Infos(done), Ok(infos)) if !infos.is_empty() => done.complete_partly(status, infos),
        (pending, Ok(_)) => pending.end(status),
        (pending, Err(unreadable)) => pending.end(unreadable),
    }
}

fn answered(cbdata: Ptr<Opaque>, reply: impl FnOnce(Pending)) {
    caught(|| match take(cbdata.number() as u64) {
        Some(open) => reply(open.pending),
        None => tracing::warn!("the host answered what nobody waits for: ignored"),
    });
}

/// The same for an answer that the host wants to release. It does so on the progress thread: Slurm holds a lock when it answers,
/// and takes it again to release.
fn answered_with(
    cbdata: Ptr<Opaque>,
    release: ReleaseCallback,
    data: Ptr<Opaque>,
    reply: impl FnOnce(Pending),
) {
    caught(|| match take(cbdata.number() as u64) {
        Some(open) => reply(open.pending.afterwards(move || released(release, data))),
        None => {
            tracing::warn!("the host answered what nobody waits for: ignored");
            released(release, data);
        }
    });
}

/// Calls the host's release function; everything has been copied.
fn released(release: ReleaseCallback, data: Ptr<Opaque>) {
    if let Some(release) = release {
        caught(|| release(data));
    }
}

/// A host's description of a group that it has formed.
fn formed(infos: Vec<Info>) -> GroupFormed {
    let mut formed = GroupFormed::default();
    for info in infos {
        match (info.key.as_str(), &info.value) {
            (keys::GROUP_CONTEXT_ID, value) => formed.context_id = value.as_u64(),
            (keys::GROUP_MEMBERSHIP, Value::DataArray(array)) => {
                formed.members = array.items.iter().filter_map(Value::as_proc).cloned().collect();
            }
            _ => formed.info.push(info),
        }
    }
    formed
}

fn take(token: u64) -> Option<Open> {
    let (uses, index) = ((token >> 32) as u32, token as u32);
    let mut table = table();
    let row = row(&mut table, index).filter(|row| row.uses == uses)?;
    let open = row.open.take()?;
    table.free.push(index);
    Some(open)
}

fn token(token: u64) -> Ptr<Opaque> {
    Ptr::token(usize::try_from(token).unwrap_or(0))
}

fn row(table: &mut Table, index: u32) -> Option<&mut Row> {
    table.rows.get_mut(usize::try_from(index).ok()?)
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

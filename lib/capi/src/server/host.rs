//! Requests to the host as calls of its C functions.
//!
//! Entries that a host does not offer are refused with `PMIX_ERR_NOT_SUPPORTED`, except for notifications that it may ignore.
//! Hosts written for releases before 5.0 never answer `client_connected` by callback, because those releases passed none:
//! returning without an error admits the client. `client_connected2` is waited for, as the standard requires.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, Nspace, Pdata, ProcId, Text, Value};
use pmix::server::{
    AbortRequest, AllocateRequest, ConnectRequest, Credential, CredentialRequest, DirectModexRequest,
    EventsRequest, FabricRequest, FabricUpdateRequest, FenceRequest, GroupRequest, JobControlRequest,
    LogRequest, MonitorRequest, PublishRequest, PublishedRequest, PullEnded, PullRequest, QueryRequest,
    ResourceBlockRequest, SessionControlRequest, SpawnRequest, StdinRequest, ToolRequest, ValidationRequest,
};
use pmix::{Done, Event, GroupFormed};

use super::args::Args;
use super::module::{ConnectFn, Module};
use super::upcalls::{self, Pending, open};
use crate::cmem;
use crate::pointer::{Opaque, Ptr};

/// The host's functions, and what we remember for it.
pub(super) struct Host {
    pub(super) module: Module,
    pub(super) objects: Arc<Objects>,
    /// Pulls of streams that the host knows, by our number for them.
    pub(super) pulls: BTreeMap<u64, (Vec<ProcId>, IofChannel)>,
}

/// The pointers that a host wants to be passed with its clients' requests.
#[derive(Default)]
pub(crate) struct Objects(Mutex<BTreeMap<ProcId, Ptr<Opaque>>>);

impl Objects {
    pub(super) fn set(&self, proc: ProcId, object: Ptr<Opaque>) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if object.is_null() {
            objects.remove(&proc);
        } else {
            objects.insert(proc, object);
        }
    }

    pub(super) fn forget(&self, gone: impl Fn(&ProcId) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|proc, _| !gone(proc));
    }

    fn of(&self, proc: &ProcId) -> Ptr<Opaque> {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(proc).copied().unwrap_or(Ptr::NULL)
    }
}

/// A conversion that fails refuses the request; a NULL entry is not supported.
macro_rules! or_refuse {
    ($done:ident, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(status) => return $done.refuse(status),
        }
    };
}
macro_rules! offered {
    ($done:ident, $entry:expr) => {
        match $entry {
            Some(entry) => entry,
            None => return $done.refuse(Status::ERR_NOT_SUPPORTED),
        }
    };
}

impl pmix::Host for Host {
    fn client_connected(&mut self, proc: ProcId, done: Done<()>) {
        let mut args = Args::default();
        let (c, object) = (args.proc(&proc), self.objects.of(&proc));
        if let Some(connected) = self.module.client_connected2 {
            let ticket = open(Pending::Status(done), args);
            let code = connected(c, object, Ptr::NULL, 0, Some(upcalls::done), ticket.cbdata());
            ticket.returned(code);
        } else if let Some(connected) = self.module.client_connected {
            let ticket = open(Pending::Status(done), args);
            let code = connected(c, object, Some(upcalls::done), ticket.cbdata());
            ticket.returned_at_last(code);
        } else {
            done.complete(());
        }
    }

    fn client_finalized(&mut self, proc: ProcId, done: Done<()>) {
        let Some(finalized) = self.module.client_finalized else { return done.complete(()) };
        let mut args = Args::default();
        let c = args.proc(&proc);
        let ticket = open(Pending::Status(done), args);
        let code = finalized(c, self.objects.of(&proc), Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn abort(&mut self, request: AbortRequest, done: Done<()>) {
        let abort = offered!(done, self.module.abort);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let message = args.text(&request.message);
        let (procs, count) = args.procs(&request.procs);
        let ticket = open(Pending::Status(done), args);
        let object = self.objects.of(&request.from);
        let status = request.status.0;
        let code = abort(from, object, status, message, procs, count, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn fence(&mut self, request: FenceRequest, done: Done<Blob>) {
        let fence = offered!(done, self.module.fence);
        let mut args = Args::default();
        let (procs, count) = args.procs(&request.procs);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        // As with OpenPMIx, the host owns it from here on, even if it refuses: some free it, or hand it back to be released.
        let (data, size) = (cmem::bytes(request.data.as_bytes()), request.data.len());
        let ticket = open(Pending::Modex(done), args);
        let code = fence(procs, count, infos, ninfo, data, size, Some(upcalls::modex), ticket.cbdata());
        ticket.returned(code);
    }

    fn direct_modex(&mut self, request: DirectModexRequest, done: Done<Blob>) {
        let direct_modex = offered!(done, self.module.direct_modex);
        let mut args = Args::default();
        let proc = args.proc(&request.proc);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Modex(done), args);
        let code = direct_modex(proc, infos, ninfo, Some(upcalls::modex), ticket.cbdata());
        ticket.returned(code);
    }

    fn publish(&mut self, request: PublishRequest, done: Done<()>) {
        let publish = offered!(done, self.module.publish);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let mut all = request.info.clone();
        stated(&mut all, Info::new(keys::RANGE, request.range()));
        stated(&mut all, Info::new(keys::PERSISTENCE, request.persistence()));
        stated(&mut all, Info::new(keys::USERID, request.uid));
        let (infos, ninfo) = or_refuse!(done, args.infos(&all));
        let ticket = open(Pending::Status(done), args);
        let code = publish(from, infos, ninfo, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        let lookup = offered!(done, self.module.lookup);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let wanted = args.keys(&request.keys);
        let mut all = request.info.clone();
        stated(&mut all, Info::new(keys::RANGE, request.range()));
        stated(&mut all, Info::new(keys::USERID, request.uid));
        let (infos, ninfo) = or_refuse!(done, args.infos(&all));
        let ticket = open(Pending::Lookup(done), args);
        let code = lookup(from, wanted, infos, ninfo, Some(upcalls::lookup), ticket.cbdata());
        ticket.returned(code);
    }

    fn unpublish(&mut self, request: PublishedRequest, done: Done<()>) {
        let unpublish = offered!(done, self.module.unpublish);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let wanted = args.keys(&request.keys);
        let mut all = request.info.clone();
        stated(&mut all, Info::new(keys::RANGE, request.range()));
        stated(&mut all, Info::new(keys::USERID, request.uid));
        let (infos, ninfo) = or_refuse!(done, args.infos(&all));
        let ticket = open(Pending::Status(done), args);
        let code = unpublish(from, wanted, infos, ninfo, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn spawn(&mut self, request: SpawnRequest, done: Done<Nspace>) {
        let spawn = offered!(done, self.module.spawn);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.job));
        let (apps, napps) = or_refuse!(done, args.apps(&request.apps));
        let ticket = open(Pending::Spawned(done), args);
        let code = spawn(from, infos, ninfo, apps, napps, Some(upcalls::spawned), ticket.cbdata());
        ticket.returned(code);
    }

    fn connect(&mut self, request: ConnectRequest, done: Done<()>) {
        connect(self.module.connect, &request, done);
    }

    fn disconnect(&mut self, request: ConnectRequest, done: Done<()>) {
        connect(self.module.disconnect, &request, done);
    }

    /// A host without this entry has no events of its own.
    fn register_events(&mut self, request: EventsRequest, done: Done<()>) {
        let Some(register) = self.module.register_events else { return done.complete(()) };
        let mut args = Args::default();
        let (codes, ncodes) = args.codes(&request.codes);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Status(done), args);
        let code = register(codes, ncodes, infos, ninfo, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn deregister_events(&mut self, request: EventsRequest, done: Done<()>) {
        let Some(deregister) = self.module.deregister_events else { return done.complete(()) };
        let mut args = Args::default();
        let (codes, ncodes) = args.codes(&request.codes);
        let ticket = open(Pending::Status(done), args);
        let code = deregister(codes, ncodes, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    /// Local processes have got the event, whether the host passes it on or not.
    fn notify(&mut self, event: Event, done: Done<()>) {
        let Some(notify) = self.module.notify_event else { return done.complete(()) };
        let mut args = Args::default();
        let source = args.proc(&event.source);
        let (infos, ninfo) = or_refuse!(done, args.infos(&event.info));
        let ticket = open(Pending::Status(done), args);
        let range = event.range.0;
        let code = notify(event.code.0, source, range, infos, ninfo, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn query(&mut self, request: QueryRequest, done: Done<Vec<Info>>) {
        let query = offered!(done, self.module.query);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (queries, count) = or_refuse!(done, args.queries(&request.queries));
        let ticket = open(Pending::Infos(done), args);
        let code = query(from, queries, count, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn tool_connected(&mut self, request: ToolRequest, done: Done<ProcId>) {
        let mut args = Args::default();
        let mut all = request.info;
        stated(&mut all, Info::new(keys::USERID, request.uid));
        stated(&mut all, Info::new(keys::GRPID, request.gid));
        if let Some(pid) = request.pid {
            stated(&mut all, Info::new(keys::PROC_PID, Value::Pid(pid)));
        }
        if let Some(claims) = &request.claims {
            stated(&mut all, Info::new(keys::NSPACE, claims.nspace.as_str()));
            stated(&mut all, Info::new(keys::RANK, claims.rank));
        }
        let (infos, ninfo) = or_refuse!(done, args.infos(&all));
        if let Some(connected) = self.module.tool_connected2 {
            let ticket = open(Pending::Tool(done), args);
            let code = connected(infos, ninfo, Some(upcalls::tool), ticket.cbdata());
            ticket.returned(code);
        } else {
            let connected = offered!(done, self.module.tool_connected);
            let ticket = open(Pending::Tool(done), args);
            connected(infos, ninfo, Some(upcalls::tool), ticket.cbdata());
        }
    }

    fn log(&mut self, request: LogRequest, done: Done<()>) {
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (data, ndata) = or_refuse!(done, args.infos(&request.data));
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        if let Some(log) = self.module.log2 {
            let ticket = open(Pending::Status(done), args);
            let code = log(from, data, ndata, infos, ninfo, Some(upcalls::done), ticket.cbdata());
            ticket.returned(code);
        } else {
            let log = offered!(done, self.module.log);
            let ticket = open(Pending::Status(done), args);
            log(from, data, ndata, infos, ninfo, Some(upcalls::done), ticket.cbdata());
        }
    }

    fn allocate(&mut self, request: AllocateRequest, done: Done<Vec<Info>>) {
        let allocate = offered!(done, self.module.allocate);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Infos(done), args);
        let code = allocate(from, request.directive.0, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn resource_block(&mut self, request: ResourceBlockRequest, done: Done<()>) {
        let change = offered!(done, self.module.resource_block);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let block = args.text(request.block.as_ref().and_then(Text::as_str).unwrap_or_default());
        let (units, count) = args.units(&request.units);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Status(done), args);
        let (to, directive) = (ticket.cbdata(), request.directive.0);
        let code = change(from, directive, block, units, count, infos, ninfo, Some(upcalls::done), to);
        ticket.returned(code);
    }

    fn job_control(&mut self, request: JobControlRequest, done: Done<Vec<Info>>) {
        let control = offered!(done, self.module.job_control);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (targets, count) = args.procs(&request.targets);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        let ticket = open(Pending::Infos(done), args);
        let code = control(from, targets, count, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn session_control(&mut self, request: SessionControlRequest, done: Done<Vec<Info>>) {
        let control = offered!(done, self.module.session_control);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        let ticket = open(Pending::Infos(done), args);
        let code = control(from, request.session, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn monitor(&mut self, request: MonitorRequest, done: Done<Vec<Info>>) {
        let monitor = offered!(done, self.module.monitor);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (what, _) = or_refuse!(done, args.infos(std::slice::from_ref(&request.what)));
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        let ticket = open(Pending::Infos(done), args);
        let error = request.error.0;
        let code = monitor(from, what, error, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn get_credential(&mut self, request: CredentialRequest, done: Done<Credential>) {
        let get = offered!(done, self.module.get_credential);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Credential(done), args);
        let code = get(from, infos, ninfo, Some(upcalls::credential), ticket.cbdata());
        ticket.returned(code);
    }

    fn validate_credential(&mut self, request: ValidationRequest, done: Done<Vec<Info>>) {
        let validate = offered!(done, self.module.validate_credential);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let credential = args.object(&request.credential);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Infos(done), args);
        let code = validate(from, credential, infos, ninfo, Some(upcalls::validated), ticket.cbdata());
        ticket.returned(code);
    }

    fn iof_pull(&mut self, request: PullRequest, done: Done<()>) {
        let pull = offered!(done, self.module.iof_pull);
        let mut args = Args::default();
        let (procs, count) = args.procs(&request.sources);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        let channels = request.channels;
        self.pulls.insert(request.handle, (request.request.sources, channels));
        let ticket = open(Pending::Status(done), args);
        let code = pull(procs, count, infos, ninfo, channels.0, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    /// The same entry begins and ends a pull.
    fn iof_stop(&mut self, request: PullEnded, done: Done<()>) {
        let Some((sources, channels)) = self.pulls.remove(&request.handle) else { return done.complete(()) };
        let pull = offered!(done, self.module.iof_pull);
        let mut args = Args::default();
        let (procs, count) = args.procs(&sources);
        let mut all = request.directives;
        stated(&mut all, Info::new(keys::IOF_STOP, true));
        let (infos, ninfo) = or_refuse!(done, args.infos(&all));
        let ticket = open(Pending::Status(done), args);
        let code = pull(procs, count, infos, ninfo, channels.0, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn push_stdin(&mut self, request: StdinRequest, done: Done<()>) {
        let push = offered!(done, self.module.push_stdin);
        let mut args = Args::default();
        let from = args.proc(&request.from);
        let (targets, count) = args.procs(&request.targets);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.directives));
        let data = args.object(&request.data);
        let ticket = open(Pending::Status(done), args);
        let code = push(from, targets, count, infos, ninfo, data, Some(upcalls::done), ticket.cbdata());
        ticket.returned(code);
    }

    fn group_construct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        self.group(CONSTRUCT, &request, done);
    }

    fn group_destruct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        self.group(DESTRUCT, &request, done);
    }

    fn fabric_register(&mut self, request: FabricRequest, done: Done<Vec<Info>>) {
        self.fabric(REQUEST_INFO, &request.from, &request.directives, done);
    }

    fn fabric_update(&mut self, request: FabricUpdateRequest, done: Done<Vec<Info>>) {
        let index = Info::new(keys::FABRIC_INDEX, request.index);
        self.fabric(UPDATE_INFO, &request.from, &[index], done);
    }
}

impl Host {
    fn group(&self, operation: u32, request: &GroupRequest, done: Done<GroupFormed>) {
        let group = offered!(done, self.module.group);
        let mut args = Args::default();
        let id = args.text(&request.id);
        let (procs, count) = args.procs(&request.procs);
        let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
        let ticket = open(Pending::Group(done), args);
        let code = group(operation, id, procs, count, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }

    fn fabric(&self, operation: u32, from: &ProcId, directives: &[Info], done: Done<Vec<Info>>) {
        let fabric = offered!(done, self.module.fabric);
        let mut args = Args::default();
        let from = args.proc(from);
        let (infos, ninfo) = or_refuse!(done, args.infos(directives));
        let ticket = open(Pending::Infos(done), args);
        let code = fabric(from, operation, infos, ninfo, Some(upcalls::infos), ticket.cbdata());
        ticket.returned(code);
    }
}

fn connect(entry: Option<ConnectFn>, request: &ConnectRequest, done: Done<()>) {
    let connect = offered!(done, entry);
    let mut args = Args::default();
    let (procs, count) = args.procs(&request.procs);
    let (infos, ninfo) = or_refuse!(done, args.infos(&request.info));
    let ticket = open(Pending::Status(done), args);
    let code = connect(procs, count, infos, ninfo, Some(upcalls::done), ticket.cbdata());
    ticket.returned(code);
}

/// Adds an info unless the array has its key.
fn stated(infos: &mut Vec<Info>, info: Info) {
    if infos.find(info.key.as_str()).is_none() {
        infos.push(info);
    }
}

/// `pmix_group_operation_t`
const CONSTRUCT: u32 = 0;
const DESTRUCT: u32 = 1;
/// `pmix_fabric_operation_t`
const REQUEST_INFO: u32 = 0;
const UPDATE_INFO: u32 = 1;

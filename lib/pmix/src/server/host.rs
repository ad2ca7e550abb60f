//! The host environment of a server: the resource manager, or whatever program starts the processes.
//!
//! One method per entry of the standard's `pmix_server_module_t`, each answered through its [`Done`]. Methods run where
//! progress is made, one at a time: they must not block, and may answer later from anywhere. A host that panics is not asked
//! again: its server ends, and clients see their connections close.

use phalanx_core::{Event, GroupFormed, HostOp};
use phalanx_spec::Status;
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId};

use super::done::{Credential, Done, Outcome};
use super::request::{
    AbortRequest, AllocateRequest, ConnectRequest, CredentialRequest, DirectModexRequest, EventsRequest,
    FabricRequest, FabricUpdateRequest, FenceRequest, GroupRequest, JobControlRequest, LogRequest,
    LookupRequested, MonitorRequest, PublishRequest, PullEnded, PullRequest, QueryRequest,
    ResourceBlockRequest, SessionControlRequest, SpawnRequest, StdinRequest, ToolRequest, UnpublishRequest,
    ValidationRequest,
};
use crate::engine::Answer;

/// What a server asks of its host. What a host does not implement is refused with `PMIX_ERR_NOT_SUPPORTED`; the comings and
/// goings of clients are accepted.
#[allow(unused_variables, reason = "the names are for those who implement them")]
pub trait Host: Send {
    /// A client passed the handshake; it is let in when this is granted.
    fn client_connected(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    /// A client called finalize; it is answered when this is.
    fn client_finalized(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    /// A client's connection closed without finalize. Whoever waits for that process is told when this is answered.
    fn client_lost(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    fn abort(&mut self, request: AbortRequest, done: Done<()>) {
        refuse(done);
    }

    /// Never called when all participants are processes of this server. Granted with all contributions, one behind the other.
    fn fence(&mut self, request: FenceRequest, done: Done<Blob>) {
        refuse(done);
    }

    fn direct_modex(&mut self, request: DirectModexRequest, done: Done<Blob>) {
        refuse(done);
    }

    fn publish(&mut self, request: PublishRequest, done: Done<()>) {
        refuse(done);
    }

    fn lookup(&mut self, request: LookupRequested, done: Done<Vec<Pdata>>) {
        refuse(done);
    }

    fn unpublish(&mut self, request: UnpublishRequest, done: Done<()>) {
        refuse(done);
    }

    /// Granted with the new job's namespace.
    fn spawn(&mut self, request: SpawnRequest, done: Done<Nspace>) {
        refuse(done);
    }

    fn connect(&mut self, request: ConnectRequest, done: Done<()>) {
        refuse(done);
    }

    fn disconnect(&mut self, request: ConnectRequest, done: Done<()>) {
        refuse(done);
    }

    /// Somebody here now wants these events.
    fn register_events(&mut self, request: EventsRequest, done: Done<()>) {
        refuse(done);
    }

    /// Nobody here wants these events any more.
    fn deregister_events(&mut self, request: EventsRequest, done: Done<()>) {
        refuse(done);
    }

    /// A process here raised an event that concerns others than those here, who have been told: it must not be handed back to
    /// this server.
    fn notify(&mut self, event: Event, done: Done<()>) {
        refuse(done);
    }

    /// What the server could not answer itself.
    fn query(&mut self, request: QueryRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    /// A tool wants to be let in. Granted with its name, which is the one that it claims, if it does.
    fn tool_connected(&mut self, request: ToolRequest, done: Done<ProcId>) {
        refuse(done);
    }

    fn log(&mut self, request: LogRequest, done: Done<()>) {
        refuse(done);
    }

    fn allocate(&mut self, request: AllocateRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    fn resource_block(&mut self, request: ResourceBlockRequest, done: Done<()>) {
        refuse(done);
    }

    fn job_control(&mut self, request: JobControlRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    fn session_control(&mut self, request: SessionControlRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    /// All but heartbeats, which the server counts itself.
    fn monitor(&mut self, request: MonitorRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    fn get_credential(&mut self, request: CredentialRequest, done: Done<Credential>) {
        refuse(done);
    }

    fn validate_credential(&mut self, request: ValidationRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    fn iof_pull(&mut self, request: PullRequest, done: Done<()>) {
        refuse(done);
    }

    fn iof_stop(&mut self, request: PullEnded, done: Done<()>) {
        refuse(done);
    }

    fn push_stdin(&mut self, request: StdinRequest, done: Done<()>) {
        refuse(done);
    }

    /// May report a local failure as a fence does.
    fn group_construct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        refuse(done);
    }

    /// May report a local failure as a fence does.
    fn group_destruct(&mut self, request: GroupRequest, done: Done<GroupFormed>) {
        refuse(done);
    }

    fn fabric_register(&mut self, request: FabricRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    fn fabric_update(&mut self, request: FabricUpdateRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }
}

fn refuse<T: Outcome>(done: Done<T>) {
    done.refuse(Status::ERR_NOT_SUPPORTED);
}

/// Calls the method of this request.
pub(super) fn ask(host: &mut dyn Host, op: HostOp, to: Answer) {
    match op {
        HostOp::ClientConnected { proc } => host.client_connected(proc, Done::new(to, "connection")),
        // Hosts hear of ranks, not of connections.
        HostOp::ClientFinalized { others: true, .. } => Done::<()>::new(to, "finalize").complete(()),
        HostOp::ClientFinalized { proc, .. } => host.client_finalized(proc, Done::new(to, "finalize")),
        HostOp::ClientLost { proc, .. } => host.client_lost(proc, Done::new(to, "lost connection")),
        HostOp::Abort { from, status, message, procs } => {
            host.abort(AbortRequest { from, status, message, procs }, Done::new(to, "abort"));
        }
        HostOp::Fence { procs, info, data } => {
            host.fence(FenceRequest { procs, info, data }, Done::new(to, "fence"));
        }
        HostOp::DirectModex { proc, info } => {
            host.direct_modex(DirectModexRequest { proc, info }, Done::new(to, "direct modex"));
        }
        HostOp::Publish { from, uid, data, range, persistence, info } => {
            let request = PublishRequest { from, uid, data, range, persistence, info };
            host.publish(request, Done::new(to, "publish"));
        }
        HostOp::Lookup { from, uid, keys, range, info } => {
            host.lookup(LookupRequested { from, uid, keys, range, info }, Done::new(to, "lookup"));
        }
        HostOp::Unpublish { from, uid, keys, range, info } => {
            host.unpublish(UnpublishRequest { from, uid, keys, range, info }, Done::new(to, "unpublish"));
        }
        HostOp::Spawn { from, job, apps } => {
            host.spawn(SpawnRequest { from, job, apps }, Done::new(to, "spawn"));
        }
        HostOp::Connect { procs, info } => {
            host.connect(ConnectRequest { procs, info }, Done::new(to, "connect"));
        }
        HostOp::Disconnect { procs, info } => {
            host.disconnect(ConnectRequest { procs, info }, Done::new(to, "disconnect"));
        }
        HostOp::RegisterEvents { codes, info } => {
            host.register_events(EventsRequest { codes, info }, Done::new(to, "event registration"));
        }
        HostOp::DeregisterEvents { codes } => {
            let request = EventsRequest { codes, info: Vec::new() };
            host.deregister_events(request, Done::new(to, "event deregistration"));
        }
        HostOp::Notify { event } => host.notify(event, Done::new(to, "notification")),
        HostOp::Query { from, queries } => {
            host.query(QueryRequest { from, queries }, Done::new(to, "query"));
        }
        HostOp::ToolConnected { uid, gid, claims, info } => {
            host.tool_connected(
                ToolRequest { uid, gid, claims, info },
                Done::new(to, "connection of a tool"),
            );
        }
        HostOp::Log { from, data, directives } => {
            host.log(LogRequest { from, data, directives }, Done::new(to, "log"));
        }
        HostOp::Allocate { from, directive, info } => {
            host.allocate(AllocateRequest { from, directive, info }, Done::new(to, "allocation request"));
        }
        HostOp::ResourceBlock { from, directive, block, units, info } => {
            let request = ResourceBlockRequest { from, directive, block, units, info };
            host.resource_block(request, Done::new(to, "resource block"));
        }
        HostOp::JobControl { from, targets, directives } => {
            host.job_control(JobControlRequest { from, targets, directives }, Done::new(to, "job control"));
        }
        HostOp::SessionControl { from, session, directives } => {
            let request = SessionControlRequest { from, session, directives };
            host.session_control(request, Done::new(to, "session control"));
        }
        HostOp::Monitor { from, what, error, directives } => {
            host.monitor(MonitorRequest { from, what, error, directives }, Done::new(to, "monitor"));
        }
        HostOp::GetCredential { from, info } => {
            host.get_credential(CredentialRequest { from, info }, Done::new(to, "get credential"));
        }
        HostOp::ValidateCredential { from, credential, info } => {
            let request = ValidationRequest { from, credential, info };
            host.validate_credential(request, Done::new(to, "validate credential"));
        }
        HostOp::IofPull { from, sources, channels, directives, handle } => {
            let request = PullRequest { from, sources, channels, directives, handle };
            host.iof_pull(request, Done::new(to, "pull of output"));
        }
        HostOp::IofStop { from, handle, directives, died: _ } => {
            host.iof_stop(PullEnded { from, handle, directives }, Done::new(to, "end of a pull"));
        }
        HostOp::PushStdin { from, targets, directives, data } => {
            host.push_stdin(StdinRequest { from, targets, directives, data }, Done::new(to, "push of input"));
        }
        HostOp::GroupConstruct { id, procs, info } => {
            let request = GroupRequest { from: None, id, procs, info };
            host.group_construct(request, Done::new(to, "group construct"));
        }
        HostOp::GroupAssemble { from, id, procs, info } => {
            let request = GroupRequest { from: Some(from), id, procs, info };
            host.group_construct(request, Done::new(to, "group construct"));
        }
        HostOp::GroupDestruct { id, procs, info } => {
            let request = GroupRequest { from: None, id, procs, info };
            host.group_destruct(request, Done::new(to, "group destruct"));
        }
        HostOp::FabricRegister { from, directives } => {
            host.fabric_register(FabricRequest { from, directives }, Done::new(to, "fabric registration"));
        }
        HostOp::FabricUpdate { from, index } => {
            host.fabric_update(FabricUpdateRequest { from, index }, Done::new(to, "fabric update"));
        }
    }
}

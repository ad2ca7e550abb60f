//! The host environment of a server: the resource manager, or any program that starts the processes.
//!
//! One method per entry of the standard's `pmix_server_module_t`, each answered through its [`Done`]. Methods run where
//! progress is made, one at a time: they must not block, and may answer later from any thread. A host that panics is not
//! called again: its server ends, and clients see their connections close.

use phalanx_core::{Event, GroupFormed, HostOp};
use phalanx_spec::Status;
use phalanx_wire::cmd::{HostRequest, allocate, control, credential, fabric, session};
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId};

use super::done::{Credential, Done, Outcome};
use crate::engine::HostAnswer;
use phalanx_core::host::{
    AbortRequest, Asked, ConnectRequest, DirectModexRequest, EventsRequest, FenceRequest, GroupRequest,
    LogRequest, MonitorRequest, PublishRequest, PublishedRequest, PullEnded, PullRequest, QueryRequest,
    SpawnRequest, StdinRequest, ToolRequest,
};

pub type AllocateRequest = Asked<allocate::Allocate>;
pub type ResourceBlockRequest = Asked<allocate::ResourceBlock>;
/// `targets` empty: the caller's whole job.
pub type JobControlRequest = Asked<control::JobControl>;
pub type SessionControlRequest = Asked<session::SessionControl>;
pub type CredentialRequest = Asked<credential::GetCredential>;
pub type ValidationRequest = Asked<credential::ValidateCredential>;
pub type FabricRequest = Asked<fabric::Register>;
pub type FabricUpdateRequest = Asked<fabric::Update>;

/// Requests of a server to its host. What a host does not implement is refused with `PMIX_ERR_NOT_SUPPORTED`; clients that
/// connect or leave are accepted.
#[allow(unused_variables, reason = "the names are for those who implement them")]
pub trait Host: Send {
    /// A client passed the handshake; it is admitted when this is granted.
    fn client_connected(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    /// A client called finalize; it is answered when this is.
    fn client_finalized(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    /// A client's connection closed without finalize. Requests that wait for the process fail when this is answered.
    fn client_lost(&mut self, proc: ProcId, done: Done<()>) {
        done.complete(());
    }

    fn abort(&mut self, request: AbortRequest, done: Done<()>) {
        refuse(done);
    }

    /// Never called when all participants are processes of this server. Granted with all contributions, concatenated.
    fn fence(&mut self, request: FenceRequest, done: Done<Blob>) {
        refuse(done);
    }

    fn direct_modex(&mut self, request: DirectModexRequest, done: Done<Blob>) {
        refuse(done);
    }

    fn publish(&mut self, request: PublishRequest, done: Done<()>) {
        refuse(done);
    }

    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        refuse(done);
    }

    fn unpublish(&mut self, request: PublishedRequest, done: Done<()>) {
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

    /// A local process now wants these events.
    fn register_events(&mut self, request: EventsRequest, done: Done<()>) {
        refuse(done);
    }

    /// No local process wants these events any more.
    fn deregister_events(&mut self, request: EventsRequest, done: Done<()>) {
        refuse(done);
    }

    /// A local process raised an event that concerns other nodes. Local processes have got it: it must not be passed back to
    /// this server.
    fn notify(&mut self, event: Event, done: Done<()>) {
        refuse(done);
    }

    /// The part of a query that the server could not answer.
    fn query(&mut self, request: QueryRequest, done: Done<Vec<Info>>) {
        refuse(done);
    }

    /// A tool connects. Granted with its name, which must be the one it claims, if it does.
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

    /// All kinds except heartbeats, which the server counts itself.
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
pub(super) fn ask(host: &mut dyn Host, op: HostOp, to: HostAnswer) {
    let operation = op.operation();
    match op {
        HostOp::ClientConnected(proc) => host.client_connected(proc, Done::new(to, operation)),
        // Hosts get ranks, not connections.
        HostOp::ClientFinalized(gone) if gone.others => Done::<()>::new(to, operation).complete(()),
        HostOp::ClientFinalized(gone) => host.client_finalized(gone.proc, Done::new(to, operation)),
        // The module of the standard has no entry for these.
        HostOp::ClientRefused(_) | HostOp::CommitRefused(_) | HostOp::MemberMissing(_) => {
            Done::<()>::new(to, operation).complete(())
        }
        HostOp::ClientLost(gone) => host.client_lost(gone.proc, Done::new(to, operation)),
        HostOp::Abort(request) => host.abort(request, Done::new(to, operation)),
        HostOp::Fence(request) => host.fence(request, Done::new(to, operation)),
        HostOp::DirectModex(request) => host.direct_modex(request, Done::new(to, operation)),
        HostOp::Publish(request) => host.publish(request, Done::new(to, operation)),
        HostOp::Lookup(request) => host.lookup(request, Done::new(to, operation)),
        HostOp::Unpublish(request) => host.unpublish(request, Done::new(to, operation)),
        HostOp::Spawn(request) => host.spawn(request, Done::new(to, operation)),
        HostOp::Connect(request) => host.connect(request, Done::new(to, operation)),
        HostOp::Disconnect(request) => host.disconnect(request, Done::new(to, operation)),
        HostOp::RegisterEvents(request) => host.register_events(request, Done::new(to, operation)),
        HostOp::DeregisterEvents(request) => host.deregister_events(request, Done::new(to, operation)),
        HostOp::Notify(event) => host.notify(event, Done::new(to, operation)),
        HostOp::Query(request) => host.query(request, Done::new(to, operation)),
        HostOp::ToolConnected(request) => host.tool_connected(request, Done::new(to, operation)),
        HostOp::Log(request) => host.log(request, Done::new(to, operation)),
        HostOp::Monitor(request) => host.monitor(request, Done::new(to, operation)),
        HostOp::IofPull(request) => host.iof_pull(request, Done::new(to, operation)),
        HostOp::IofStop(request) => host.iof_stop(request, Done::new(to, operation)),
        HostOp::PushStdin(request) => host.push_stdin(request, Done::new(to, operation)),
        HostOp::GroupConstruct(request) => host.group_construct(request, Done::new(to, operation)),
        HostOp::GroupDestruct(request) => host.group_destruct(request, Done::new(to, operation)),
        // Hosts observe the limits in the requests, or leave them to us.
        HostOp::Overdue(_) => Done::<()>::new(to, operation).refuse(Status::ERR_NOT_SUPPORTED),
        HostOp::Asked(Asked { from, request }) => ask_as_said(host, from, request, to),
    }
}

/// The same for requests that are passed on unchanged.
fn ask_as_said(host: &mut dyn Host, from: ProcId, request: HostRequest, to: HostAnswer) {
    let operation = request.operation();
    match request {
        HostRequest::Allocate(request) => {
            host.allocate(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::ResourceBlock(request) => {
            host.resource_block(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::JobControl(request) => {
            host.job_control(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::SessionControl(request) => {
            host.session_control(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::GetCredential(request) => {
            host.get_credential(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::ValidateCredential(request) => {
            host.validate_credential(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::FabricRegister(request) => {
            host.fabric_register(Asked { from, request }, Done::new(to, operation));
        }
        HostRequest::FabricUpdate(request) => {
            host.fabric_update(Asked { from, request }, Done::new(to, operation));
        }
    }
}

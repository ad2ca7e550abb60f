//! Requests of servers to their hosts, and the answers: a request of this daemon's server is answered by the root.

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, ClientRefused, CommitRefused, ConnectRequest,
    DirectModexRequest, EventsRequest, FenceRequest, GroupRequest, MemberMissing, OverdueCall, PullEnded,
    ToolRequest,
};
use phalanx_core::{Event, GroupFormed, HostOp, HostReply, Time, Waiting};
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::cmd::{Body as SaidByClients, HostRequest};
use phalanx_wire::codec::{Dialect, Release};

use super::{Encode, FORMAT, Malformed, Reader, Writer, encoded};

encoded!(enum HostOp {
    0 ClientConnected(proc),
    1 ClientFinalized(request),
    2 ClientLost(request),
    3 Abort(request),
    4 Fence(request),
    5 DirectModex(request),
    6 Publish(request),
    7 Lookup(request),
    8 Unpublish(request),
    9 Spawn(request),
    10 Connect(request),
    11 Disconnect(request),
    12 RegisterEvents(request),
    13 DeregisterEvents(request),
    14 Notify(event),
    15 Query(request),
    16 ToolConnected(request),
    17 Log(request),
    18 Monitor(request),
    19 IofPull(request),
    20 IofStop(request),
    21 PushStdin(request),
    22 GroupConstruct(request),
    23 GroupDestruct(request),
    24 Asked(asked),
    25 Overdue(request),
    26 ClientRefused(request),
    27 MemberMissing(request),
    28 CommitRefused(request),
});

encoded!(struct ClientFinalized { proc, others });
encoded!(struct ClientLost { proc, cut_off });
encoded!(struct ClientRefused { proc, uid, pid, expected });
encoded!(struct CommitRefused { proc, why });
encoded!(struct MemberMissing { proc, kind });
encoded!(struct AbortRequest { from, status, message, procs });
encoded!(struct FenceRequest { procs, info, data });
encoded!(struct DirectModexRequest { proc, info });
encoded!(struct ConnectRequest { procs, info });
encoded!(struct EventsRequest { codes, info });
encoded!(struct ToolRequest { uid, gid, pid, claims, info });
encoded!(struct OverdueCall { call });
encoded!(struct PullEnded { from, handle, directives, died });
encoded!(struct GroupRequest { from, id, procs, info });

/// Clients' messages have a byte format already.
macro_rules! said_by_clients {
    ($($body:ty)+) => {$(
        impl Encode for $body {
            fn encode(&self, to: &mut Writer) {
                SaidByClients::encode(self, DIALECT).encode(to);
            }

            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let bytes: Vec<u8> = Encode::decode(from)?;
                <$body as SaidByClients>::decode(&bytes, DIALECT).map_err(|error| from.malformed(error.to_string()))
            }
        }
    )+};
}
said_by_clients!(HostRequest Log Monitor Publish Published Pull Queries Spawn);
// Input may be long: it is copied once.
encoded!(struct Push { targets, directives, data });
encoded!(<T: Encode> struct Asked { from, request });

encoded!(enum HostReply {
    0 Done(status),
    1 Modex(result),
    2 Lookup(result),
    3 Spawned(result),
    4 Infos(status, infos),
    5 Credential(result),
    6 ToolAdmitted(result),
    7 Group(result),
});

encoded!(struct GroupFormed { members, context_id, info });
encoded!(struct Event { code, source, range, info });
encoded!(struct Waiting { operation, subject, asked_by, missing, since, deadline, unblocked_by });

impl Encode for Time {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Time, Malformed> {
        u64::decode(from).map(Time)
    }
}

/// The dialect of the newest clients.
const DIALECT: Dialect = Dialect { format: FORMAT, release: Release::new(6, 1, 0) };

//! What servers ask of their hosts, and the answers: a request that this daemon's server has is answered by the root.

use phalanx_core::host::{
    AbortRequest, Asked, ClientFinalized, ClientLost, ConnectRequest, DirectModexRequest, EventsRequest,
    FenceRequest, GroupRequest, LogRequest, PublishRequest, PublishedRequest, PullEnded, PullRequest,
    StdinRequest, ToolRequest,
};
use phalanx_core::{Event, GroupFormed, HostOp, HostReply, Time, Waiting};
use phalanx_wire::ProcId;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::cmd::{Body, HostRequest};
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
});

encoded!(struct ClientFinalized { proc, others });
encoded!(struct ClientLost { proc, cut_off });
encoded!(struct AbortRequest { from, status, message, procs });
encoded!(struct FenceRequest { procs, info, data });
encoded!(struct DirectModexRequest { proc, info });
encoded!(struct PublishRequest { from, uid, data, range, persistence, info });
encoded!(struct PublishedRequest { from, uid, keys, range, info });
encoded!(struct ConnectRequest { procs, info });
encoded!(struct EventsRequest { codes, info });
encoded!(struct ToolRequest { uid, gid, claims, info });
encoded!(struct LogRequest { from, data, directives });
encoded!(struct PullRequest { from, sources, channels, directives, handle });
encoded!(struct PullEnded { from, handle, directives, died });
encoded!(struct StdinRequest { from, targets, directives, data });
encoded!(struct GroupRequest { from, id, procs, info });

/// What clients say has bytes already.
macro_rules! said_by_clients {
    ($($body:ty)+) => {$(
        impl Encode for Asked<$body> {
            fn encode(&self, to: &mut Writer) {
                self.from.encode(to);
                self.request.encode(DIALECT).encode(to);
            }

            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let (by, bytes) = (ProcId::decode(from)?, Vec::decode(from)?);
                match <$body>::decode(&bytes, DIALECT) {
                    Ok(request) => Ok(Asked { from: by, request }),
                    Err(error) => Err(from.malformed(error.to_string())),
                }
            }
        }
    )+};
}
said_by_clients!(HostRequest Monitor Queries Spawn);

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

/// As the newest clients would say it.
const DIALECT: Dialect = Dialect { format: FORMAT, release: Release::new(6, 1, 0) };

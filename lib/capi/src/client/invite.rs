//! Invitations to groups: a leader invites, the invited processes join or decline.

use phalanx_spec::Status;
use pmix::ClientCall;

use super::calls::InfoCallback;
use super::group::{formed, formed_then, named};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// Ends when all have answered, and announces to the others that the group is formed.
    fn PMIx_Group_invite(
        group: Ptr<u8>, procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        formed(invite(group, procs, nprocs, info, count)?, results, nresults)
    }

    fn PMIx_Group_invite_nb(
        group: Ptr<u8>, procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize,
        callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let call = invite(group, procs, nprocs, info, count)?;
        formed_then(call, Some(callback.ok_or(BAD)?), cbdata)
    }

    /// Ends when the leader announces that the group is formed; a process that declines does not wait.
    fn PMIx_Group_join(
        group: Ptr<u8>, leader: Ptr<pmix_proc_t>, answer: i32, info: Ptr<pmix_info_t>, count: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        formed(join(group, leader, answer, info, count)?, results, nresults)
    }

    /// The callback may be NULL for programs that learn of the group by its event.
    fn PMIx_Group_join_nb(
        group: Ptr<u8>, leader: Ptr<pmix_proc_t>, answer: i32, info: Ptr<pmix_info_t>, count: usize,
        callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        formed_then(join(group, leader, answer, info, count)?, callback, cbdata)
    }
}

fn invite(
    group: Ptr<u8>,
    procs: Ptr<pmix_proc_t>,
    nprocs: usize,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    let (id, info) = named(group, info, count)?;
    if procs.is_null() || nprocs == 0 {
        return Err(BAD);
    }
    Ok(ClientCall::GroupInvite { id, procs: from_c::procs(procs, nprocs)?, info })
}

fn join(
    group: Ptr<u8>,
    leader: Ptr<pmix_proc_t>,
    answer: i32,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    let (id, info) = named(group, info, count)?;
    let leader = leader.read().map(|c| from_c::proc(&c)).transpose()?;
    let accept = match answer {
        DECLINE => false,
        ACCEPT => true,
        _ => return Err(BAD),
    };
    Ok(ClientCall::GroupJoin { id, leader, accept, info })
}

// `pmix_group_opt_t`
const DECLINE: i32 = 0;
const ACCEPT: i32 = 1;

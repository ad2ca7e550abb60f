//! Groups: named sets of processes.

use phalanx_spec::{DataType, Status, keys};
use phalanx_wire::cmd::group::{Construct, Leave};
use pmix::{ClientCall, ClientReturn, DataArray, Error, Info, ProcId, Text, Value};

use super::calls::{InfoCallback, OpCallback, done, done_then, give, hand_over, submit};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// The results are the context id, if one was requested, the members, and their contributions.
    fn PMIx_Group_construct(
        group: Ptr<u8>, procs: Ptr<pmix_proc_t>, nprocs: usize, directives: Ptr<pmix_info_t>, ndirs: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        formed(construct(group, procs, nprocs, directives, ndirs)?, results, nresults)
    }

    fn PMIx_Group_construct_nb(
        group: Ptr<u8>, procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize,
        callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        formed_then(construct(group, procs, nprocs, info, count)?, callback, cbdata)
    }

    fn PMIx_Group_destruct(group: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let (id, info) = named(group, info, count)?;
        done(ClientCall::GroupDestruct { id, info })
    }

    fn PMIx_Group_destruct_nb(
        group: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let (id, info) = named(group, info, count)?;
        done_then(ClientCall::GroupDestruct { id, info }, callback, cbdata)
    }

    fn PMIx_Group_leave(group: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let (id, info) = named(group, info, count)?;
        done(ClientCall::GroupLeave(Leave { id, info }))
    }

    fn PMIx_Group_leave_nb(
        group: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let (id, info) = named(group, info, count)?;
        done_then(ClientCall::GroupLeave(Leave { id, info }), callback, cbdata)
    }
}

/// No processes: the host finds them, or other members add them.
fn construct(
    group: Ptr<u8>,
    procs: Ptr<pmix_proc_t>,
    nprocs: usize,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    let (id, info) = named(group, info, count)?;
    Ok(ClientCall::GroupConstruct(Construct { id, procs: from_c::procs(procs, nprocs)?, info }))
}

pub(super) fn named(
    group: Ptr<u8>,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<(Text, Vec<Info>), Status> {
    instance()?;
    let name = from_c::name(group)?;
    if name.is_empty() { Err(BAD) } else { Ok((Text::from(name.as_str()), from_c::infos(info, count)?)) }
}

/// Makes a call with a group as its result, and returns its description to the program.
pub(super) fn formed(
    call: ClientCall,
    results: Ptr<Ptr<pmix_info_t>>,
    nresults: Ptr<usize>,
) -> Result<(), Status> {
    let id = id_of(&call);
    let (status, infos) = described(id, instance()?.client.perform(call));
    give(status, &infos, results, nresults)
}

pub(super) fn formed_then(
    call: ClientCall,
    callback: InfoCallback,
    cbdata: Ptr<Opaque>,
) -> Result<(), Status> {
    let id = id_of(&call);
    submit(call, move |answer| {
        let Some(callback) = callback else { return };
        let (status, infos) = described(id, answer);
        hand_over(callback, status, &infos, cbdata);
    })
}

fn id_of(call: &ClientCall) -> Option<Text> {
    match call {
        ClientCall::GroupConstruct(Construct { id, .. })
        | ClientCall::GroupInvite { id, .. }
        | ClientCall::GroupJoin { id, .. } => Some(id.clone()),
        _ => None,
    }
}

fn described(id: Option<Text>, answer: Result<ClientReturn, Error>) -> (Status, Vec<Info>) {
    let formed = match answer {
        Ok(ClientReturn::Group(Ok(formed))) => formed,
        Ok(ClientReturn::Group(Err(status))) => return (status, Vec::new()),
        Ok(_) => return (Status::ERROR, Vec::new()),
        Err(error) => return (error.status(), Vec::new()),
    };
    let mut infos = Vec::new();
    infos.extend(formed.context_id.map(|id| Info::new(keys::GROUP_CONTEXT_ID, Value::Size(id))));
    if !formed.members.is_empty() {
        let items = formed.members.into_iter().map(|member: ProcId| Value::Proc(member)).collect();
        infos.push(Info::new(keys::GROUP_MEMBERSHIP, DataArray { of: DataType::PROC, items }));
    }
    infos.extend(formed.info);
    infos.extend(id.map(|id| Info::new(keys::GROUP_ID, Value::String(id))));
    (Status::SUCCESS, infos)
}

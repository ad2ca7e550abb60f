//! Connect and disconnect: bind processes of several jobs together.

use phalanx_spec::Status;
use phalanx_wire::cmd::connect::Connect;
use pmix::{ClientCall, Info, ProcId};

use super::calls::{OpCallback, done, done_then};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    fn PMIx_Connect(procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let (procs, info) = arguments(procs, nprocs, info, count)?;
        done(ClientCall::Connect(Connect { procs, info, endpoints: Vec::new() }))
    }

    fn PMIx_Connect_nb(
        procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let (procs, info) = arguments(procs, nprocs, info, count)?;
        done_then(ClientCall::Connect(Connect { procs, info, endpoints: Vec::new() }), callback, cbdata)
    }

    fn PMIx_Disconnect(procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let (procs, info) = arguments(procs, nprocs, info, count)?;
        done(ClientCall::Disconnect(Connect { procs, info, endpoints: Vec::new() }))
    }

    fn PMIx_Disconnect_nb(
        procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let (procs, info) = arguments(procs, nprocs, info, count)?;
        done_then(ClientCall::Disconnect(Connect { procs, info, endpoints: Vec::new() }), callback, cbdata)
    }
}

fn arguments(
    procs: Ptr<pmix_proc_t>,
    nprocs: usize,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<(Vec<ProcId>, Vec<Info>), Status> {
    instance()?;
    if procs.is_null() || nprocs == 0 {
        return Err(BAD);
    }
    Ok((from_c::procs(procs, nprocs)?, from_c::infos(info, count)?))
}

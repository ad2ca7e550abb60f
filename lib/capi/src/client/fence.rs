//! Fence: waits until all participants have called it, and exchanges their committed values.

use phalanx_spec::Status;
use phalanx_wire::cmd::fence::Fence;
use pmix::ClientCall;

use super::calls::{OpCallback, done, done_or_then};
use crate::from_c;
use crate::guard::exported;
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// No participants: the whole job.
    fn PMIx_Fence(procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize) -> Code {
        instance()?;
        done(call(procs, nprocs, info, count)?)
    }

    fn PMIx_Fence_nb(
        procs: Ptr<pmix_proc_t>, nprocs: usize, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        done_or_then(call(procs, nprocs, info, count)?, callback, cbdata)
    }
}

fn call(
    procs: Ptr<pmix_proc_t>,
    nprocs: usize,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    Ok(ClientCall::Fence(Fence { procs: from_c::procs(procs, nprocs)?, info: from_c::infos(info, count)? }))
}

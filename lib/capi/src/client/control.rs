//! Job control: directives for running processes.

use phalanx_spec::Status;
use phalanx_wire::cmd::control::JobControl;
use pmix::ClientCall;

use super::calls::{InfoCallback, infos, infos_then};
use crate::from_c;
use crate::guard::exported;
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// No targets: the whole job.
    fn PMIx_Job_control(
        targets: Ptr<pmix_proc_t>, ntargets: usize, directives: Ptr<pmix_info_t>, ndirs: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        infos(call(targets, ntargets, directives, ndirs)?, results, nresults)
    }

    fn PMIx_Job_control_nb(
        targets: Ptr<pmix_proc_t>, ntargets: usize, directives: Ptr<pmix_info_t>, ndirs: usize,
        callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        infos_then(call(targets, ntargets, directives, ndirs)?, callback, cbdata)
    }
}

fn call(
    targets: Ptr<pmix_proc_t>,
    ntargets: usize,
    directives: Ptr<pmix_info_t>,
    ndirs: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    let targets = from_c::procs(targets, ntargets)?;
    Ok(JobControl { targets, directives: from_c::infos(directives, ndirs)? }.into())
}

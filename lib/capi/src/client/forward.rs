//! Requests that the library and its server pass on to the host: job control, session control, allocations and named blocks
//! of resources. Those with C structures of their own are in separate files.

use phalanx_spec::{ResourceBlockDirective, Status};
use phalanx_wire::ResourceUnit;
use phalanx_wire::cmd::allocate::{Allocate, ResourceBlock};
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::session::SessionControl;
use pmix::{AllocDirective, ClientCall, Info};

use super::calls::{InfoCallback, OpCallback, done, done_then, infos, infos_then};
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
        infos(job_control(targets, ntargets, directives, ndirs)?, results, nresults)
    }

    fn PMIx_Job_control_nb(
        targets: Ptr<pmix_proc_t>, ntargets: usize, directives: Ptr<pmix_info_t>, ndirs: usize,
        callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        infos_then(job_control(targets, ntargets, directives, ndirs)?, callback, cbdata)
    }

    /// Without a callback the call waits; infos in the host's answer are then lost.
    fn PMIx_Session_control(
        session: u32, directives: Ptr<pmix_info_t>, ndirs: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        let call = ClientCall::from(SessionControl { session, directives: from_c::infos(directives, ndirs)? });
        if callback.is_some() { infos_then(call, callback, cbdata) } else { infos(call, Ptr::NULL, Ptr::NULL) }
    }

    fn PMIx_Allocation_request(
        directive: u8, info: Ptr<pmix_info_t>, count: usize, results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        infos(allocate(directive, info, count)?, results, nresults)
    }

    fn PMIx_Allocation_request_nb(
        directive: u8, info: Ptr<pmix_info_t>, count: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        infos_then(allocate(directive, info, count)?, callback, cbdata)
    }

    fn PMIx_Resource_block(
        directive: u8, block: Ptr<u8>, units: Ptr<pmix_resource_unit_t>, nunits: usize, info: Ptr<pmix_info_t>,
        count: usize,
    ) -> Code {
        done(resource_block(directive, block, units, nunits, info, count)?)
    }

    fn PMIx_Resource_block_nb(
        directive: u8, block: Ptr<u8>, units: Ptr<pmix_resource_unit_t>, nunits: usize, info: Ptr<pmix_info_t>,
        count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        done_then(resource_block(directive, block, units, nunits, info, count)?, callback, cbdata)
    }
}

fn job_control(
    targets: Ptr<pmix_proc_t>,
    ntargets: usize,
    directives: Ptr<pmix_info_t>,
    ndirs: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    let targets = from_c::procs(targets, ntargets)?;
    Ok(JobControl { targets, directives: from_c::infos(directives, ndirs)? }.into())
}

fn allocate(directive: u8, info: Ptr<pmix_info_t>, count: usize) -> Result<ClientCall, Status> {
    instance()?;
    let info: Vec<Info> = from_c::infos(info, count)?;
    Ok(Allocate { directive: AllocDirective(directive), info }.into())
}

fn resource_block(
    directive: u8,
    block: Ptr<u8>,
    units: Ptr<pmix_resource_unit_t>,
    nunits: usize,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    let block = from_c::name(block)?;
    let units: Vec<ResourceUnit> = units.items(nunits).map(|c| from_c::resource_unit(&c)).collect();
    let info = from_c::infos(info, count)?;
    Ok(ResourceBlock {
        directive: ResourceBlockDirective(directive),
        block: Some(block.as_str().into()),
        units,
        info,
    }
    .into())
}

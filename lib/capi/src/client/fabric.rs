//! Fabrics: their description, from the host, in a structure of the program.

use phalanx_spec::Status;
use phalanx_wire::cmd::fabric::{Register, Update};
use pmix::{ClientCall, Info};

use super::calls::{OpCallback, found, submit};
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{from_c, to_c};

exported! {
    /// `fabric` gets the description; deregistering frees it.
    fn PMIx_Fabric_register(fabric: Ptr<pmix_fabric_t>, directives: Ptr<pmix_info_t>, ndirs: usize) -> Code {
        let call = register(fabric, directives, ndirs)?;
        let (status, infos) = found(instance()?.client.perform(call));
        described(fabric, status, &infos)
    }

    fn PMIx_Fabric_register_nb(
        fabric: Ptr<pmix_fabric_t>, directives: Ptr<pmix_info_t>, ndirs: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        ask(fabric, register(fabric, directives, ndirs)?, callback, cbdata)
    }

    fn PMIx_Fabric_update(fabric: Ptr<pmix_fabric_t>) -> Code {
        let call = update(fabric)?;
        let (status, infos) = found(instance()?.client.perform(call));
        described(fabric, status, &infos)
    }

    fn PMIx_Fabric_update_nb(fabric: Ptr<pmix_fabric_t>, callback: OpCallback, cbdata: Ptr<Opaque>) -> Code {
        ask(fabric, update(fabric)?, callback, cbdata)
    }

    /// Frees the description. The server and the host are not involved.
    fn PMIx_Fabric_deregister(fabric: Ptr<pmix_fabric_t>) -> Code {
        forget(fabric)
    }

    /// Done at once: the callback is not called.
    fn PMIx_Fabric_deregister_nb(fabric: Ptr<pmix_fabric_t>, callback: OpCallback, cbdata: Ptr<Opaque>) -> Code {
        let _ = (callback, cbdata);
        forget(fabric)?;
        Err(Status::OPERATION_SUCCEEDED)
    }
}

fn register(
    fabric: Ptr<pmix_fabric_t>,
    directives: Ptr<pmix_info_t>,
    ndirs: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    if fabric.is_null() {
        return Err(BAD);
    }
    Ok(Register { directives: from_c::infos(directives, ndirs)? }.into())
}

fn update(fabric: Ptr<pmix_fabric_t>) -> Result<ClientCall, Status> {
    instance()?;
    Ok(Update { index: fabric.read().ok_or(BAD)?.index as u64 }.into())
}

fn ask(
    fabric: Ptr<pmix_fabric_t>,
    call: ClientCall,
    callback: OpCallback,
    cbdata: Ptr<Opaque>,
) -> Result<(), Status> {
    let callback = callback.ok_or(BAD)?;
    submit(call, move |answer| {
        let (status, infos) = found(answer);
        let ended = described(fabric, status, &infos);
        callback(ended.err().unwrap_or(Status::SUCCESS).0, cbdata);
    })
}

/// Replaces the old description by the new one.
fn described(fabric: Ptr<pmix_fabric_t>, status: Status, infos: &[Info]) -> Result<(), Status> {
    if !status.is_success() {
        return Err(status);
    }
    let c = fabric.read().ok_or(BAD)?;
    let info = to_c::infos(infos)?;
    free_array(c.info, c.ninfo);
    fabric.write(pmix_fabric_t { info, ninfo: infos.len(), ..c });
    Ok(())
}

fn forget(fabric: Ptr<pmix_fabric_t>) -> Result<(), Status> {
    instance()?;
    let c = fabric.read().ok_or(BAD)?;
    free_array(c.info, c.ninfo);
    fabric.write(pmix_fabric_t { info: Ptr::NULL, ninfo: 0, ..c });
    Ok(())
}

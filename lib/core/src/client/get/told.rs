//! Stores what a server sends about a process or a job.

use phalanx_spec::Rank;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{ProcId, Value};

use crate::client::link::Link;
use crate::store::{LookupRequest, Store};

pub(super) fn load(link: &Link, store: &Store, data: OwnerData) -> Result<(), DecodeError> {
    if data.owner.rank == Rank::WILDCARD {
        let format = link.config.dialect.format;
        store.load_job(JobData::from_values(data.owner.nspace, data.values, format)?);
    } else {
        store.load_owner(data);
    }
    Ok(())
}

/// The requested value, when the server sends it without its node or app.
pub(super) fn spoken_value(request: &LookupRequest, data: &OwnerData) -> Option<Value> {
    let ProcId { nspace, rank } = &data.owner;
    let key = request.key.as_ref().filter(|_| request.qualified.is_none())?;
    if *nspace != request.proc.nspace || !(*rank == Rank::UNDEF || *rank == request.proc.rank) {
        return None;
    }
    data.values.iter().find(|kval| kval.key == *key).map(|kval| kval.value.clone())
}

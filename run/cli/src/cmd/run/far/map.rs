//! Where the ranks of a job in a running DVM are, or would be. The DVM decides it, and servers of ours report it.

use phalanx_dvm::{JobRequest, Placed, names};
use phalanx_spec::DataType;
use phalanx_wire::Nspace;
use pmix::{DataArray, Info, InfoList, Query, Tool, Value, keys};

/// Whether the server reports maps at all.
pub(super) fn is_told(tool: &Tool) -> bool {
    let query = Query { keys: vec![keys::QUERY_SUPPORTED_KEYS.into()], qualifiers: Vec::new() };
    let answer = tool.query(&[query]).unwrap_or_default();
    let known = answer.find(keys::QUERY_SUPPORTED_KEYS).and_then(Value::as_str).unwrap_or_default();
    known.split(',').any(|key| key == names::MAP)
}

/// The map of a job that runs, or has run.
pub(super) fn of_job(tool: &Tool, nspace: &Nspace) -> Result<Placed, String> {
    ask(tool, vec![Info::new(keys::NSPACE, nspace.as_str())])
}

/// The map of a job that is not started.
pub(super) fn of_wish(tool: &Tool, request: &JobRequest) -> Result<Placed, String> {
    // The environment of programs does not change their map.
    let request = JobRequest { env: Vec::new(), ..request.clone() };
    let (job, apps) = request.to_spawn();
    let apps = apps.into_iter().map(|app| Value::App(Box::new(app))).collect();
    ask(
        tool,
        vec![
            Info::new(names::SPAWN_JOB, DataArray::of_infos(job)),
            Info::new(names::SPAWN_APPS, DataArray { of: DataType::APP, items: apps }),
        ],
    )
}

fn ask(tool: &Tool, qualifiers: Vec<Info>) -> Result<Placed, String> {
    let query = Query { keys: vec![names::MAP.into()], qualifiers };
    let answer = tool.query(&[query]).map_err(|error| error.to_string())?;
    match answer.find(names::MAP) {
        Some(Value::ByteObject(bytes)) => Placed::from_bytes(bytes.as_bytes()),
        Some(Value::String(why)) => Err(why.to_string_lossy()),
        _ => Err("the server does not say where the ranks are".to_owned()),
    }
}

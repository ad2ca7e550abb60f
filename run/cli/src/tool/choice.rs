//! Which server a command is for if nothing names one: the only one that fits, or none.
//!
//! A search takes whichever server it finds first. That is no choice for what changes or follows one server.

use phalanx_dvm::names;
use pmix::{DataArray, InfoList, Query, Tool, Value, keys};

use super::{alone, ask_all, names_any, servers_here};
use crate::args::tools::ServerArgs;
use crate::failure::Failure;
use crate::render::value;

/// What a server must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    /// A DVM of ours that lasts, started by somebody whose servers let us in.
    Dvm,
}

/// The server that the options or the environment of a rank name; otherwise the only one of this machine that fits. Where there
/// is none, the options as they are: a search says why it finds nothing, or waits.
pub(crate) fn only_one(server: &ServerArgs, wanted: Wanted) -> Result<ServerArgs, Failure> {
    if names_any(server) || is_named_by_environment() {
        return Ok(server.clone());
    }
    let found = servers_here(&alone()?, server)?;
    let fits = match wanted {
        Wanted::Any => vec![true; found.len()],
        Wanted::Dvm => {
            ask_all(server, &found, |tool| lasts(&tool)).into_iter().map(|is| is.unwrap_or(false)).collect()
        }
    };
    let fitting: Vec<&DataArray> =
        found.iter().zip(fits).filter(|(_, fits)| *fits).map(|(about, _)| about).collect();
    match (fitting.as_slice(), found.is_empty()) {
        ([about], _) => Ok(ServerArgs { uri: Some(text(about, keys::SERVER_URI)), ..server.clone() }),
        ([], true) => Ok(server.clone()),
        ([], false) => Err(Failure::new("there is no DVM of yours on this machine that lasts").hint(
            format!("other servers are stopped by name only: {}", list(&found.iter().collect::<Vec<_>>())),
        )),
        (several, _) => {
            Err(Failure::new(format!("{} servers fit, and none is named: {}", several.len(), list(several)))
                .hint("name one with --pid or --nspace; 'px ps' shows their jobs"))
        }
    }
}

/// A rank's tools belong to its server.
pub(crate) fn is_named_by_environment() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("PMIX_SERVER_URI")))
}

/// Whether the server is a DVM that goes on without a job. Those that do not say so are none of ours.
fn lasts(tool: &Tool) -> bool {
    let query = Query { keys: vec![names::LASTS.into()], qualifiers: Vec::new() };
    let asked = tool.query(&[query]);
    asked.is_ok_and(|info| info.find(names::LASTS).is_some_and(Value::is_true))
}

fn list(servers: &[&DataArray]) -> String {
    let words = servers.iter().map(|about| {
        let pid = value::find(about, keys::SERVER_PIDINFO).and_then(Value::as_u32);
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        format!("{}{pid}", text(about, keys::NSPACE))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn text(about: &DataArray, key: &str) -> String {
    value::find(about, key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

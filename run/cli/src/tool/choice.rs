//! Which server a command is for if none is named: the only one that fits, or none.
//!
//! A search takes the first server that it finds. That is not good enough for commands that change or follow one server.

use phalanx_dvm::names;
use pmix::{DataArray, InfoList, Query, Tool, Value, keys};

use super::{alone, ask_all, names_any, servers_here};
use crate::args::tools::ServerArgs;
use crate::failure::Failure;
use crate::render::{value, words};

/// What the server must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    Any,
    /// A persistent DVM of ours, on a server that lets us in.
    Dvm,
}

/// A server, and whether it fits.
type Candidate<'a> = (&'a DataArray, Fit);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    /// It does not answer.
    Unknown,
}

/// The server that the options or the environment of a rank name; otherwise the only one of this machine that fits. If there is none, the options as
/// they are: a search explains why it finds nothing, or waits.
pub(crate) fn only_one(server: &ServerArgs, wanted: Requirement) -> Result<ServerArgs, Failure> {
    if names_any(server) || is_named_by_environment() {
        return Ok(server.clone());
    }
    // Other users' DVMs are stopped by name only, even if those users are trusted.
    let server = &match wanted {
        Requirement::Any => server.clone(),
        Requirement::Dvm => ServerArgs { trust_user: Vec::new(), ..server.clone() },
    };
    let found = servers_here(&alone()?, server)?;
    let fits = match wanted {
        Requirement::Any => vec![Fit::Yes; found.len()],
        Requirement::Dvm => ask_all(server, &found, |tool| lasts(&tool)).into_iter().map(Fit::of).collect(),
    };
    let all: Vec<Candidate<'_>> = found.iter().zip(fits).collect();
    let fitting: Vec<Candidate<'_>> = all.iter().filter(|(_, fit)| *fit != Fit::No).copied().collect();
    match (fitting.as_slice(), found.is_empty()) {
        ([(about, Fit::Yes)], _) => {
            Ok(ServerArgs { uri: Some(text(about, keys::SERVER_URI)), ..server.clone() })
        }
        ([], true) => Ok(server.clone()),
        ([], false) => Err(Failure::new("there is no DVM of yours on this machine that lasts")
            .hint(format!("--pid and --nspace name another server: {}", list(&all)))),
        (several, _) => {
            let fit = match several.iter().any(|(_, fit)| *fit == Fit::Unknown) {
                true => format!("{} may be meant", words::count(several.len(), "server")),
                false => format!("{} servers fit", several.len()),
            };
            Err(Failure::new(format!("{fit}, and none is named: {}", list(several)))
                .hint("name one with --pid or --nspace; 'px ps' shows their jobs"))
        }
    }
}

/// Whether the environment of a rank names a server: tools of a rank belong to its server.
pub(crate) fn is_named_by_environment() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("PMIX_SERVER_URI")))
}

/// Whether the server is a DVM that goes on without a job. None: it does not know the key, so it is not ours.
pub(crate) fn lasts(tool: &Tool) -> Option<bool> {
    let query = Query { keys: vec![names::LASTS.into()], qualifiers: Vec::new() };
    Some(tool.query(&[query]).ok()?.find(names::LASTS)?.is_true())
}

impl Fit {
    fn of(answer: Result<Option<bool>, pmix::Error>) -> Fit {
        match answer {
            Ok(Some(true)) => Fit::Yes,
            Ok(_) => Fit::No,
            Err(_) => Fit::Unknown,
        }
    }
}

fn list(servers: &[Candidate<'_>]) -> String {
    let words = servers.iter().map(|(about, fit)| {
        let pid = value::find(about, keys::SERVER_PIDINFO).and_then(Value::as_u32);
        let pid = pid.map(|pid| format!("pid {pid}"));
        let silent = (*fit == Fit::Unknown).then(|| "does not answer".to_owned());
        let more = pid.into_iter().chain(silent).collect::<Vec<_>>().join(", ");
        let more = if more.is_empty() { more } else { format!(" ({more})") };
        format!("{}{more}", text(about, keys::NSPACE))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn text(about: &DataArray, key: &str) -> String {
    value::find(about, key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

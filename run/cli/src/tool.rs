//! The way from the options of a command to a PMIx server, and from the library's errors to those of px.

use std::path::Path;

use pmix::{Info, Tool, Value, keys};

use crate::args::tools::ServerArgs;
use crate::failure::Failure;
use crate::log;

/// Attaches to the server that the options name.
pub(crate) fn attach(server: &ServerArgs) -> Result<Tool, Failure> {
    attach_as(server, &[])
}

/// The same, with more to say of ourselves.
pub(crate) fn attach_as(server: &ServerArgs, more: &[Info]) -> Result<Tool, Failure> {
    log::start(None);
    let mut info = connection(server)?;
    info.extend_from_slice(more);
    Tool::init(&info).map_err(|error| {
        let failure = failed("no PMIx server could be attached to", &error);
        match names_any(server) {
            true => failure.hint("'px ps' lists the servers of this machine"),
            false => failure
                .hint("'px run' is a server while its job runs; --pid, --nspace, --uri and --file name one"),
        }
    })
}

/// A tool that has no server, for what can be found without one.
pub(crate) fn alone() -> Result<Tool, Failure> {
    Tool::init(&[Info::new(keys::TOOL_DO_NOT_CONNECT, true)])
        .map_err(|error| failed("cannot become a PMIx tool", &error))
}

/// The attributes that the options stand for.
pub(crate) fn connection(server: &ServerArgs) -> Result<Vec<Info>, Failure> {
    let mut info = Vec::new();
    info.extend(server.pid.map(|pid| Info::new(keys::SERVER_PIDINFO, Value::Pid(pid))));
    info.extend(server.nspace.as_deref().map(|nspace| Info::new(keys::SERVER_NSPACE, nspace)));
    info.extend(server.uri.as_deref().map(|uri| Info::new(keys::SERVER_URI, uri)));
    if let Some(file) = &server.file {
        info.push(Info::new(keys::TOOL_ATTACHMENT_FILE, utf8(file)?));
    }
    if server.system {
        info.push(Info::new(keys::CONNECT_TO_SYSTEM, true));
    }
    if server.system_first {
        info.push(Info::new(keys::CONNECT_SYSTEM_FIRST, true));
    }
    if let Some(wait) = server.wait_server {
        let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        info.push(Info::new(keys::TIMEOUT, seconds));
    }
    Ok(info)
}

pub(crate) fn names_any(server: &ServerArgs) -> bool {
    let ServerArgs { pid, nspace, uri, file, system, system_first, wait_server: _ } = server;
    pid.is_some() || nspace.is_some() || uri.is_some() || file.is_some() || *system || *system_first
}

/// What the library says, one cause for each line.
pub(crate) fn failed(doing: &str, error: &pmix::Error) -> Failure {
    error.to_string().lines().fold(Failure::new(doing), |failure, line| failure.because(line.trim()))
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::usage(format!("'{}' is not UTF-8", path.display())))
}

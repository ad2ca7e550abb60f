//! Query: answers here which servers a tool of this machine could attach to (`PMIX_QUERY_AVAIL_SERVERS`), and which versions of
//! the standard's ABI this library claims; the primary server answers the rest.

use phalanx_spec::{Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Query, Text, Value};

use super::connect::variable;
use super::{Tool, hostname};
use crate::error::Error;
use phalanx_shell::Trust;
use phalanx_shell::rendezvous::{Found, Search, Wanted, nameless_directories, system_directories};

impl Tool {
    /// Asks the primary server and its host (`PMIx_Query_info`), or searches this machine. If only some questions have an answer,
    /// returns those.
    pub fn query(&self, queries: &[Query]) -> Result<Vec<Info>, Error> {
        let (answers, rest) = answer_here(queries.to_vec());
        match (rest.is_empty(), answers.is_empty()) {
            (true, true) => Err(Error::Failed { operation: "query".into(), status: Status::ERR_BAD_PARAM }),
            (true, false) => Ok(answers),
            (false, _) => match self.client.query(&rest) {
                Ok(more) => Ok(answers.into_iter().chain(more).collect()),
                Err(_) if !answers.is_empty() => Ok(answers),
                Err(error) => Err(error),
            },
        }
    }
}

pub const ANSWERED_HERE: &[&str] =
    &[keys::QUERY_AVAIL_SERVERS, keys::QUERY_STABLE_ABI_VERSION, keys::QUERY_PROVISIONAL_ABI_VERSION];

/// Like OpenPMIx: the standard's ABI has no version yet to compare with.
const NO_ABI: &str = "0.0";

/// Answers what needs no server; returns the answers and the remaining questions.
pub fn answer_here(queries: Vec<Query>) -> (Vec<Info>, Vec<Query>) {
    let is_ours = |key: &Text| ANSWERED_HERE.iter().any(|ours| key == ours);
    let (mut answers, mut rest) = (Vec::new(), Vec::new());
    for query in queries {
        let (ours, others): (Vec<Text>, Vec<Text>) = query.keys.into_iter().partition(is_ours);
        answers.extend(ours.iter().filter_map(|key| match ANSWERED_HERE.iter().find(|ours| key == *ours) {
            Some(&keys::QUERY_AVAIL_SERVERS) => {
                Some(Info::new(keys::QUERY_AVAIL_SERVERS, available(&query.qualifiers)))
            }
            key => Some(Info::new(key?, NO_ABI)),
        }));
        if !others.is_empty() || ours.is_empty() {
            rest.push(Query { keys: others, qualifiers: query.qualifiers });
        }
    }
    (answers, rest)
}

/// The servers of this machine, each as an array of infos that begins with its namespace.
fn available(qualifiers: &[Info]) -> DataArray {
    // An invalid user number selects no servers.
    let trust = Trust::read(qualifiers).unwrap_or_default();
    let hostname = &hostname();
    let dir = |key| qualifiers.find(key).and_then(Value::as_str).map(Into::into);
    let server_dirs = nameless_directories(dir(keys::SERVER_TMPDIR), variable);
    let system_dirs = system_directories(dir(keys::SYSTEM_TMPDIR), variable);
    let mut found = Search::run(Wanted::System, hostname, system_dirs, &trust).found;
    found.extend(Search::run(Wanted::Any, hostname, server_dirs, &trust).found);
    let mut seen = Vec::new();
    found.retain(|server| {
        let new = !seen.contains(&server.rendezvous.uri);
        seen.push(server.rendezvous.uri.clone());
        new
    });
    DataArray::of_infos(
        found.iter().map(|server| Info::new(keys::SERVER_INFO_ARRAY, described(server, hostname))),
    )
}

fn described(server: &Found, hostname: &str) -> DataArray {
    let Found { rendezvous, path } = server;
    let uri = &rendezvous.uri;
    let mut info = vec![
        Info::new(keys::NSPACE, uri.server.nspace.as_str()),
        Info::new(keys::RANK, uri.server.rank),
        Info::new(keys::SERVER_URI, uri.to_string()),
        Info::new(keys::SERVER_HOSTNAME, hostname),
        Info::new(keys::TOOL_ATTACHMENT_FILE, path.to_string_lossy().into_owned()),
    ];
    if let Some(pid) = rendezvous.pid {
        info.push(Info::new(keys::SERVER_PIDINFO, Value::Pid(pid)));
    }
    if let Some(version) = &rendezvous.version {
        info.push(Info::new(keys::VERSION_INFO, version.as_str()));
    }
    DataArray::of_infos(info)
}

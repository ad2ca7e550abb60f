//! The environment variables that a process needs to reach this server.
//!
//! The names of the variables select the codec: with these every release of OpenPMIx from 3.0 to 6.1 takes codec `v41`, the
//! plain store and a credential that needs nothing. The version selects the dialect of our answers.

use phalanx_wire::ProcId;

use super::config::ServerConfig;

/// The release of OpenPMIx whose protocol we speak as a server.
pub const VERSION: &str = "5.0.11";

/// The variables for one process of the server with this configuration.
pub fn environment(config: &ServerConfig, proc: &ProcId) -> Vec<(String, String)> {
    let me = &config.identity;
    let uri = format!("{}.{};{}", me.nspace, me.rank.0, config.address);
    let mut environment = vec![
        ("PMIX_NAMESPACE".to_owned(), proc.nspace.to_string()),
        ("PMIX_RANK".to_owned(), proc.rank.0.to_string()),
    ];
    environment.extend(URI_VARIABLES.iter().map(|name| ((*name).to_owned(), uri.clone())));
    let rest = [
        ("PMIX_SECURITY_MODE", "native"),
        ("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC"),
        ("PMIX_GDS_MODULE", "hash"),
        ("PMIX_SERVER_TMPDIR", &config.server_tmpdir),
        ("PMIX_SYSTEM_TMPDIR", &config.system_tmpdir),
        ("PMIX_HOSTNAME", &config.hostname),
        ("PMIX_VERSION", VERSION),
    ];
    environment.extend(rest.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // Our clients recognize by it that the server is ours and theirs, not that of a launcher around it.
    environment.extend(config.collections.is_some().then(|| (OURS.to_owned(), uri)));
    environment
}

/// The address of one of our servers, which gives its clients files with collected data.
pub const OURS: &str = "PHALANX_SERVER_URI";

/// One per codec generation that a client may look for. Without the variables of 51 and 61, peers of 6.x take `v41`.
const URI_VARIABLES: [&str; 5] =
    ["PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"];

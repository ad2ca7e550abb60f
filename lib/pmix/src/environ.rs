//! What a launcher passes to a process through its environment. Read once, in init; never written.
//!
//! A server puts its address into one variable per codec that it supports, so the variable that is found also decides how to
//! pack. We prefer the codec that all releases since 4.1 have.

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::server::OURS;
use phalanx_core::{ClientConfig, OpenCollected};
use phalanx_spec::Rank;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::{self, Credential};
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Nspace, ProcId};

use crate::error::Error;
use phalanx_shell::collected::Files;

/// Facts about this process that are not in its environment.
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pid: u32,
    pub(crate) hostname: String,
}

impl Identity {
    pub(crate) fn of_this_process() -> Identity {
        Identity {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

/// This process's identity and its server's address, from variables looked up by `variable`.
pub(crate) fn read(
    variable: impl Fn(&str) -> Option<String>,
    identity: Identity,
) -> Result<ClientConfig, Error> {
    let hostname = variable(HOSTNAME).unwrap_or(identity.hostname);
    let found = SERVERS.iter().find_map(|(name, generation)| Some((*name, *generation, variable(name)?)));
    let Some(nspace) = variable(NAMESPACE) else {
        // As a singleton, each rank of a job would silently run as a job of its own.
        if let Some((server, ..)) = found {
            return Err(Error::Unnamed { server });
        }
        return Ok(ClientConfig {
            proc: ProcId::new(&nspace_of(format!("singleton.{hostname}.{}", identity.pid))?, Rank(0)),
            server: None,
            credential: Credential::None,
            uid: identity.uid,
            pid: Some(identity.pid),
            hostname,
            dialect: dialect(Generation::V41, &variable),
            patience: PATIENCE,
            files: None,
        });
    };
    let nspace = nspace_of(nspace)?;
    let rank = variable(RANK).ok_or_else(|| problem(RANK, "is not set, although PMIX_NAMESPACE is"))?;
    let rank = rank.trim().parse().map_err(|_| problem(RANK, format!("`{rank}` is not a number")))?;
    let (name, generation, uri) = found.ok_or_else(|| {
        problem(
            "PMIX_SERVER_URI41",
            "is not set, nor is any other address of a server, although PMIX_NAMESPACE is",
        )
    })?;
    let server = ServerUri::parse(uri.trim()).map_err(|error| problem(name, error.to_string()))?;
    let is_ours = variable(OURS).is_some_and(|ours| ours == uri);
    Ok(ClientConfig {
        proc: ProcId::new(&nspace, Rank(rank)),
        server: Some(server),
        credential: credential(&variable, identity.uid, identity.gid)?,
        uid: identity.uid,
        pid: Some(identity.pid),
        hostname,
        dialect: dialect(generation, &variable),
        patience: PATIENCE,
        files: is_ours.then(|| Arc::new(Files) as Arc<dyn OpenCollected>),
    })
}

/// The server that has started this process, if one has.
pub(crate) fn server(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<(ServerUri, Dialect)>, Error> {
    let found = SERVERS.iter().find_map(|(name, generation)| Some((*name, *generation, variable(name)?)));
    let Some((name, generation, uri)) = found else { return Ok(None) };
    let server = ServerUri::parse(uri.trim()).map_err(|error| problem(name, error.to_string()))?;
    Ok(Some((server, dialect(generation, &variable))))
}

fn nspace_of(name: String) -> Result<Nspace, Error> {
    Nspace::new(&name).map_err(|error| problem(NAMESPACE, error.to_string()))
}

/// The server lists the credentials that it accepts, the best first.
pub(crate) fn credential(
    variable: &impl Fn(&str) -> Option<String>,
    uid: u32,
    gid: u32,
) -> Result<Credential, Error> {
    let Some(accepted) = variable(SECURITY_MODE) else { return Ok(Credential::Native { uid, gid }) };
    let known = accepted.split(',').find_map(|module| match module.trim() {
        credential::NATIVE => Some(Credential::Native { uid, gid }),
        credential::NONE => Some(Credential::None),
        _ => None,
    });
    known.ok_or_else(|| {
        problem(SECURITY_MODE, format!("the server accepts `{accepted}`, we can do native and none"))
    })
}

fn dialect(generation: Generation, variable: &impl Fn(&str) -> Option<String>) -> Dialect {
    let release = variable(VERSION).and_then(|version| Release::parse(&version));
    let described = variable(BUFFER_TYPE).is_some_and(|kind| kind.trim() == FULLY_DESCRIBED);
    Dialect {
        format: Format { generation, described },
        release: release.unwrap_or(match generation {
            Generation::V21 => Release::new(2, 1, 0),
            Generation::V3 => Release::new(3, 0, 0),
            Generation::V4 => Release::new(4, 0, 0),
            Generation::V41 => Release::new(4, 1, 0),
            Generation::V51 => Release::new(5, 1, 0),
            Generation::V61 | Generation::Every => Release::new(6, 1, 0),
        }),
    }
}

fn problem(variable: &'static str, problem: impl Into<String>) -> Error {
    Error::Environment { variable, problem: problem.into() }
}

const NAMESPACE: &str = "PMIX_NAMESPACE";
const RANK: &str = "PMIX_RANK";
const SECURITY_MODE: &str = "PMIX_SECURITY_MODE";
const BUFFER_TYPE: &str = "PMIX_BFROP_BUFFER_TYPE";
const FULLY_DESCRIBED: &str = "PMIX_BFROP_BUFFER_FULLY_DESC";
const VERSION: &str = "PMIX_VERSION";
const HOSTNAME: &str = "PMIX_HOSTNAME";

const SERVERS: &[(&str, Generation)] = &[
    ("PMIX_SERVER_URI41", Generation::V41),
    ("PMIX_SERVER_URI4", Generation::V4),
    ("PMIX_SERVER_URI3", Generation::V3),
    ("PMIX_SERVER_URI21", Generation::V21),
    ("PMIX_SERVER_URI51", Generation::V51),
    ("PMIX_SERVER_URI61", Generation::V61),
];

/// How long the server, which is on the same machine, may take to admit us.
const PATIENCE: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Result<ClientConfig, Error> {
        let identity = Identity { uid: 5, gid: 6, pid: 77, hostname: "host".into() };
        let find =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        read(find, identity)
    }

    #[test]
    fn a_launcher_is_understood() {
        let config = read_from(&[
            ("PMIX_NAMESPACE", "a.b"),
            ("PMIX_RANK", "3"),
            ("PMIX_SERVER_URI3", "s.0;tcp4://127.0.0.1:3"),
            ("PMIX_SERVER_URI4", "s.0;tcp4://127.0.0.1:4"),
            ("PMIX_SERVER_URI61", "s.0;tcp4://127.0.0.1:61"),
            ("PMIX_SECURITY_MODE", "munge,native"),
            ("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_FULLY_DESC"),
            ("PMIX_VERSION", "5.0.11rc1"),
            ("PMIX_HOSTNAME", "named"),
        ])
        .unwrap();
        assert_eq!(config.proc.to_string(), "a.b:3");
        assert_eq!(config.server.unwrap().address.port(), 4);
        assert_eq!(config.credential, Credential::Native { uid: 5, gid: 6 });
        assert_eq!(config.dialect.format, Format { generation: Generation::V4, described: true });
        assert_eq!(config.dialect.release, Release::new(5, 0, 11));
        assert_eq!((config.hostname.as_str(), config.uid, config.pid), ("named", 5, Some(77)));
    }

    #[test]
    fn files_are_read_only_of_the_server_that_names_them() {
        let uri = "s.0;tcp4://127.0.0.1:4";
        for (ours, reads) in [(Some(uri), true), (Some("s.0;tcp4://127.0.0.1:5"), false), (None, false)] {
            let common = [("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "0"), ("PMIX_SERVER_URI41", uri)];
            let ours = ours.map(|ours| (OURS, ours));
            let variables: Vec<_> = common.into_iter().chain(ours).collect();
            assert_eq!(read_from(&variables).unwrap().files.is_some(), reads, "{variables:?}");
        }
    }

    #[test]
    fn without_a_launcher_the_process_is_alone() {
        let config = read_from(&[]).unwrap();
        assert_eq!(config.proc.to_string(), "singleton.host.77:0");
        assert_eq!(config.server, None);
    }

    #[test]
    fn process_with_a_server_but_no_name_is_not_alone() {
        let error =
            read_from(&[("PMIX_SERVER_URI41", "s.0;tcp4://127.0.0.1:4"), ("PMIX_RANK", "0")]).unwrap_err();
        assert_eq!(error.status(), phalanx_spec::Status::ERR_UNREACH);
        assert!(error.to_string().contains("PMIX_SERVER_URI41"), "{error}");
    }

    #[test]
    fn half_an_environment_is_an_error_that_names_the_variable() {
        let uri = ("PMIX_SERVER_URI41", "s.0;tcp4://127.0.0.1:4");
        let (nspace, rank) = (("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "0"));
        for (variables, named) in [
            (vec![nspace, uri], "PMIX_RANK"),
            (vec![nspace, uri, ("PMIX_RANK", "x")], "PMIX_RANK"),
            (vec![nspace, rank], "PMIX_SERVER_URI41"),
            (vec![nspace, rank, ("PMIX_SERVER_URI41", "nonsense")], "PMIX_SERVER_URI41"),
            (vec![nspace, rank, uri, ("PMIX_SECURITY_MODE", "munge")], "PMIX_SECURITY_MODE"),
        ] {
            let error = read_from(&variables).unwrap_err();
            assert!(matches!(error, Error::Environment { variable, .. } if variable == named), "{error}");
        }
    }
}

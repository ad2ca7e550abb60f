//! The directives of a tool, about itself and the server to find: the attributes of the standard, read once.

use std::path::PathBuf;
use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::{Info, InfoList, Value};

use crate::error::Error;
use phalanx_shell::{TRUST_USER, Trust};

/// The attributes that `Tool::init` honours, beside those of a connection.
pub const INIT_ATTRIBUTES: &[&str] = &[
    keys::TOOL_NSPACE,
    keys::TOOL_RANK,
    keys::LAUNCHER,
    keys::LAUNCHER_RENDEZVOUS_FILE,
    keys::TOOL_DO_NOT_CONNECT,
    keys::TOOL_CONNECT_OPTIONAL,
    keys::EXTERNAL_PROGRESS,
    keys::IOF_LOCAL_OUTPUT,
];

/// The attributes by which a server is selected and reached.
pub const CONNECTION_ATTRIBUTES: &[&str] = &[
    keys::TOOL_ATTACHMENT_FILE,
    keys::SERVER_URI,
    keys::TCP_URI,
    keys::SERVER_PIDINFO,
    keys::SERVER_NSPACE,
    keys::CONNECT_TO_SYSTEM,
    keys::CONNECT_SYSTEM_FIRST,
    keys::SERVER_HOSTNAME,
    keys::SERVER_TMPDIR,
    keys::SYSTEM_TMPDIR,
    keys::CONNECT_MAX_RETRIES,
    keys::CONNECT_RETRY_DELAY,
    keys::TIMEOUT,
    keys::PRIMARY_SERVER,
];

/// Our own ones among them, which are not the standard's.
pub(super) const OWN_ATTRIBUTES: &[&str] = &[TRUST_USER];

/// The wanted server. The order is the precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    File(PathBuf),
    Uri {
        attribute: &'static str,
        uri: String,
    },
    Pid(u32),
    Nspace(String),
    System,
    SystemFirst,
    /// Any server that is found.
    Any,
}

/// How to find and reach a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Directives {
    pub(super) target: Target,
    pub(super) hostname: Option<String>,
    pub(super) server_tmpdir: Option<PathBuf>,
    pub(super) system_tmpdir: Option<PathBuf>,
    /// How often an absent server is tried again, and after how long. None: our defaults.
    pub(super) retries: Option<u32>,
    pub(super) delay: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) primary: bool,
    /// The users whose servers are trusted.
    pub(super) trust: Trust,
}

impl Directives {
    /// The server at this address, in addition to the tool's own.
    pub(super) fn of_origin(target: Target) -> Directives {
        Directives {
            target,
            hostname: None,
            server_tmpdir: None,
            system_tmpdir: None,
            retries: None,
            delay: None,
            timeout: None,
            primary: false,
            trust: Trust::default(),
        }
    }

    pub(super) fn read(info: &[Info]) -> Result<Directives, Error> {
        let path = |key| -> Result<_, Error> { Ok(text(info, key)?.map(PathBuf::from)) };
        let seconds =
            |key| -> Result<_, Error> { Ok(number(info, key)?.map(|n: u32| Duration::from_secs(n.into()))) };
        let (server, tcp) = (text(info, keys::SERVER_URI)?, text(info, keys::TCP_URI)?);
        if server.is_some() && tcp.is_some() {
            let problem =
                format!("{} names a server as well; only one of them can be given", keys::SERVER_URI);
            return Err(Error::Attribute { key: keys::TCP_URI, problem });
        }
        let target = if let Some(file) = path(keys::TOOL_ATTACHMENT_FILE)? {
            Target::File(file)
        } else if let Some(uri) = server {
            Target::Uri { attribute: "PMIX_SERVER_URI", uri }
        } else if let Some(uri) = tcp {
            Target::Uri { attribute: "PMIX_TCP_URI", uri }
        } else if let Some(pid) = number(info, keys::SERVER_PIDINFO)? {
            Target::Pid(pid)
        } else if let Some(nspace) = text(info, keys::SERVER_NSPACE)? {
            Target::Nspace(nspace)
        } else if info.is_set(keys::CONNECT_TO_SYSTEM) {
            Target::System
        } else if info.is_set(keys::CONNECT_SYSTEM_FIRST) {
            Target::SystemFirst
        } else {
            Target::Any
        };
        Ok(Directives {
            target,
            hostname: text(info, keys::SERVER_HOSTNAME)?,
            server_tmpdir: path(keys::SERVER_TMPDIR)?,
            system_tmpdir: path(keys::SYSTEM_TMPDIR)?,
            retries: number(info, keys::CONNECT_MAX_RETRIES)?,
            delay: seconds(keys::CONNECT_RETRY_DELAY)?,
            timeout: seconds(keys::TIMEOUT)?.filter(|timeout| !timeout.is_zero()),
            primary: info.is_set(keys::PRIMARY_SERVER),
            trust: Trust::read(info)?,
        })
    }
}

pub(super) fn text(info: &[Info], key: &'static str) -> Result<Option<String>, Error> {
    match info.find(key) {
        None => Ok(None),
        Some(Value::ProcNspace(nspace)) => Ok(Some(nspace.to_string())),
        Some(value) => match value.as_str().filter(|text| !text.is_empty()) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(Error::Attribute { key, problem: "its value is not a text".to_owned() }),
        },
    }
}

pub(super) fn number(info: &[Info], key: &'static str) -> Result<Option<u32>, Error> {
    let Some(value) = info.find(key) else { return Ok(None) };
    let number = match value {
        Value::Rank(rank) => Some(rank.0),
        value => value.as_i64().and_then(|number| u32::try_from(number).ok()),
    };
    match number {
        Some(number) => Ok(Some(number)),
        None => {
            Err(Error::Attribute { key, problem: "its value is not a number that is possible here".into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(info: &[Info]) -> Target {
        Directives::read(info).unwrap().target
    }

    #[test]
    fn the_precedence_is_the_standards() {
        let mut info = vec![Info::new(keys::CONNECT_SYSTEM_FIRST, true)];
        assert_eq!(target(&[]), Target::Any);
        assert_eq!(target(&info), Target::SystemFirst);
        info.push(Info::new(keys::CONNECT_TO_SYSTEM, true));
        assert_eq!(target(&info), Target::System);
        info.push(Info::new(keys::SERVER_NSPACE, "n"));
        assert_eq!(target(&info), Target::Nspace("n".into()));
        info.push(Info::new(keys::SERVER_PIDINFO, Value::Pid(7)));
        assert_eq!(target(&info), Target::Pid(7));
        info.push(Info::new(keys::TCP_URI, "u"));
        assert_eq!(target(&info), Target::Uri { attribute: "PMIX_TCP_URI", uri: "u".into() });
        info.push(Info::new(keys::TOOL_ATTACHMENT_FILE, "/f"));
        assert_eq!(target(&info), Target::File("/f".into()));
    }

    #[test]
    fn impossible_options_are_refused_by_name() {
        let both = [Info::new(keys::SERVER_URI, "a"), Info::new(keys::TCP_URI, "b")];
        let error = Directives::read(&both).unwrap_err().to_string();
        assert!(error.contains(keys::TCP_URI) && error.contains(keys::SERVER_URI), "{error}");
        let error = Directives::read(&[Info::new(keys::SERVER_PIDINFO, "me")]).unwrap_err().to_string();
        assert!(error.contains(keys::SERVER_PIDINFO), "{error}");
        let error = Directives::read(&[Info::new(keys::CONNECT_MAX_RETRIES, -1)]);
        assert!(error.is_err());
    }
}

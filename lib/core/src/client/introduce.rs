//! How a process introduces itself to a server: as a client that the server's host started, or as a tool.

use phalanx_spec::{Status, keys};
use phalanx_wire::hello::{COLLECTED, ClientWelcome, Flavor, Hello, HelloAnswer, ToolWelcome};
use phalanx_wire::{Info, ProcId, Value};

use super::link::Link;
use super::phase::InitError;
use crate::store::Store;

/// The kind of process that connects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Introduction {
    /// A process that the server's host has started.
    Client,
    /// A tool or launcher. If it has no name, the server gives it one.
    Tool { flavor: Flavor, gid: u32, info: Vec<Info> },
}

pub(super) fn hello(link: &Link, introduction: &Introduction) -> Vec<u8> {
    let (flavor, uid, gid, info) = match introduction {
        Introduction::Client => {
            let reads = link.config.files.is_some().then(|| Info::new(COLLECTED, true));
            let pid = link.config.pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid)));
            (Flavor::Client, 0, 0, pid.into_iter().chain(reads).collect())
        }
        Introduction::Tool { flavor, gid, info } => (*flavor, link.config.uid, *gid, info.clone()),
    };
    let hello = Hello {
        flavor,
        credential: link.config.credential.clone(),
        uid,
        gid,
        proc: Some(link.config.proc.clone()),
        version: ANNOUNCED.into(),
        format: link.config.dialect.format,
        store: STORE.into(),
        info,
    };
    hello.encode()
}

/// Reads the answer at the start of `bytes`; returns its length once all of it is there.
pub(super) fn take_welcome(
    link: &mut Link,
    introduction: &Introduction,
    bytes: &[u8],
) -> Result<Option<usize>, InitError> {
    let Introduction::Tool { flavor, .. } = *introduction else {
        return match HelloAnswer::<ClientWelcome>::decode(bytes) {
            None => Ok(None),
            Some((HelloAnswer::Refused(status), _)) => Err(InitError::Refused(status)),
            Some((HelloAnswer::Welcome(welcome), length)) => {
                link.index = welcome.index;
                Ok(Some(length))
            }
        };
    };
    let answer = HelloAnswer::<ToolWelcome>::decode(bytes, flavor)
        .map_err(|error| InitError::BadWelcome(error.to_string()))?;
    match answer {
        None => Ok(None),
        Some((HelloAnswer::Refused(status), _)) => Err(InitError::Refused(status)),
        Some((HelloAnswer::Welcome(welcome), length)) => {
            if welcome.security != Status::SUCCESS {
                return Err(InitError::Refused(welcome.security));
            }
            if link.config.server.as_ref().is_some_and(|meant| meant.server != welcome.server) {
                return Err(InitError::WrongServer { got: welcome.server });
            }
            if let Some(assigned) = welcome.assigned {
                become_named(link, assigned)?;
            }
            link.server = Some(welcome.server);
            Ok(Some(length))
        }
    }
}

fn become_named(link: &mut Link, name: ProcId) -> Result<(), InitError> {
    if name.nspace.is_none() {
        return Err(InitError::BadWelcome("it gives this tool no name".to_owned()));
    }
    link.store = Store::new(name.clone()).into();
    link.config.proc = name;
    Ok(())
}

/// The release of OpenPMIx that we announce to servers.
const ANNOUNCED: &str = "5.0.11";
/// The store type for which job data travel on the socket.
const STORE: &str = "hash";

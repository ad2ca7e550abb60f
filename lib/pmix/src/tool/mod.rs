//! This process as a tool: it finds servers, attaches to them, and asks them what a client can ask.
//!
//! `directives.rs` reads which server the program wants, `connect.rs` finds it, `servers.rs` handles several servers,
//! `race.rs` several candidates of which some do not answer, `query.rs` lists available ones.

mod connect;
mod directives;
mod query;
mod race;
mod servers;

use std::ops::Deref;
use std::sync::Arc;

use phalanx_core::{self as core, Attached, ToolCall, ToolConfig, ToolReturn};
use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::client::Client;
use crate::engine::{Drive, Engine, Setup};
use crate::environ::{self, Identity};
use crate::error::Error;
use crate::support::{AROUND, check_required};
use connect::{ServerSearch, variable};
use directives::{Directives, OWN_ATTRIBUTES, Target, number, text};
use phalanx_shell::Trust;

pub use directives::{CONNECTION_ATTRIBUTES, INIT_ATTRIBUTES};
pub use query::{ANSWERED_HERE, answer_here};

/// This process as a tool of any number of servers. Shared between threads by reference.
///
/// All calls of a [`Client`] can be made of it: they go to the primary server, and fail with `PMIX_ERR_UNREACH` after that is
/// gone until another is set ([`set_server`](Tool::set_server)). Event handlers get events of every server.
///
/// Dropping it disconnects from all servers, like [`finalize`](Client::finalize).
pub struct Tool {
    client: Client,
    engine: Arc<Engine<core::Tool>>,
    hostname: String,
}

impl Tool {
    /// Becomes a tool and attaches to a server (`PMIx_tool_init`).
    ///
    /// `info` selects the server with the standard's attributes, in this order: an attachment file, an address, a pid, a namespace, the
    /// system server only, the system server first. If a selected server cannot be reached, that is an error, which lists what was looked
    /// for and where. Without any of them it is the server that has started this process, or the newest that a search finds.
    ///
    /// In addition, a tool connects back to the launcher that has put an address into `PMIX_LAUNCHER_RNDZ_URI` for it; if no other server
    /// is selected, that is the server.
    ///
    /// The tool writes notes of its server, and the output of jobs that it spawns, to its own standard output and standard error, unless
    /// `pmix.iof.local` is false.
    ///
    /// `pmix.tool.nocon` requests no server at all; with `pmix.tool.conopt` the tool runs without one if none can be reached.
    pub fn init(info: &[Info]) -> Result<Tool, Error> {
        Tool::init_driven(info, Drive::Thread)
    }

    /// The same, with a choice of how progress is made.
    pub fn init_driven(info: &[Info], drive: Drive) -> Result<Tool, Error> {
        check_required(info, &[INIT_ATTRIBUTES, CONNECTION_ATTRIBUTES, OWN_ATTRIBUTES])?;
        let mut directives = Directives::read(info)?;
        if directives.target == Target::Any
            && let Some(file) = rendezvous_file(info)?
        {
            directives.target = Target::File(file.into());
        }
        let process = Identity::of_this_process();
        let hostname = hostname();
        let own = environ::server(variable)?;
        let origin = origin();
        if directives.target == Target::Any && own.is_none() {
            directives.target = origin.clone().unwrap_or(Target::Any);
        }
        // Both daemons and tools that start others give them a name.
        let is_started = own.is_some() || origin.is_some();
        let config = config(info, &process, is_started, &hostname)?;
        let (named, alone) = (config.proc.is_some(), info.is_set(keys::TOOL_DO_NOT_CONNECT));
        let starter = |config| start(config, drive);
        if alone {
            let engine = starter(self_named(config, &process)?)?;
            let attached = go_alone(&engine)?;
            return Tool::of(engine, attached, info, hostname);
        }
        let engine = starter(config.clone())?;
        let found = ServerSearch::new(&engine, &directives, &hostname, own).and_then(ServerSearch::run);
        let found = found.and_then(|found| {
            let origin = origin.filter(|origin| *origin != directives.target);
            connect_back(&engine, origin, &hostname).map(|()| found)
        });
        match found {
            Ok(attached) => Tool::of(engine, attached, info, hostname),
            Err(error) if info.is_set(keys::TOOL_CONNECT_OPTIONAL) => {
                tracing::info!(%error, "going on without a server");
                let engine = match named {
                    true => engine,
                    false => {
                        engine.stop();
                        starter(self_named(config, &process)?)?
                    }
                };
                let attached = go_alone(&engine)?;
                Tool::of(engine, attached, info, hostname)
            }
            Err(error) => {
                engine.stop();
                Err(error)
            }
        }
    }

    fn of(
        engine: Arc<Engine<core::Tool>>,
        attached: Attached,
        info: &[Info],
        hostname: String,
    ) -> Result<Tool, Error> {
        Ok(Tool { client: Client::of_tool(engine.clone(), attached, info)?, engine, hostname })
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("proc", self.client.proc()).finish_non_exhaustive()
    }
}

impl Deref for Tool {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// The name of this machine, as used in the names of rendezvous files.
fn hostname() -> String {
    variable("PMIX_HOSTNAME").unwrap_or_else(|| Identity::of_this_process().hostname)
}

/// The address where this process's launcher waits for it.
fn origin() -> Option<Target> {
    let attribute = "PMIX_LAUNCHER_RNDZ_URI";
    let uri = variable(attribute).filter(|uri| !uri.is_empty())?;
    Some(Target::Uri { attribute, uri })
}

/// Connects back to the launcher; the tool's present server stays its primary one.
fn connect_back(engine: &Engine<core::Tool>, origin: Option<Target>, hostname: &str) -> Result<(), Error> {
    let Some(target) = origin else { return Ok(()) };
    let directives = Directives::of_origin(target);
    let search = ServerSearch::new(engine, &directives, hostname, None)?;
    if search.is_over() { Ok(()) } else { search.run().map(drop) }
}

fn start(config: ToolConfig, drive: Drive) -> Result<Arc<Engine<core::Tool>>, Error> {
    let setup = Setup {
        machine: core::Tool::new(config).within(AROUND),
        drive,
        listener: None,
        upcalls: None,
        trust: Trust::default(),
    };
    let engine = Engine::start(setup)
        .map_err(|source| Error::System { doing: "starting the PMIx progress engine", source })?;
    Ok(Arc::new(engine))
}

fn go_alone(engine: &Engine<core::Tool>) -> Result<Attached, Error> {
    match engine.call(ToolCall::Alone)? {
        ToolReturn::Attached(Ok(attached)) => Ok(attached),
        ToolReturn::Attached(Err(reason)) => Err(Error::Init { server: String::new(), reason, source: None }),
        _ => Err(Error::Ended),
    }
}

/// The tool's identity: from `info`, otherwise from its environment.
fn config(info: &[Info], process: &Identity, is_started: bool, hostname: &str) -> Result<ToolConfig, Error> {
    let given = match (text(info, keys::TOOL_NSPACE)?, number(info, keys::TOOL_RANK)?) {
        (Some(nspace), rank) => Some((nspace, rank.unwrap_or(0))),
        (None, None) => None,
        (None, Some(_)) => {
            let problem = "a rank without PMIX_TOOL_NSPACE names nobody".to_owned();
            return Err(Error::Attribute { key: keys::TOOL_RANK, problem });
        }
    };
    let inherited = match (variable("PMIX_NAMESPACE"), variable("PMIX_RANK")) {
        (Some(nspace), Some(rank)) if given.is_none() && is_started => {
            rank.trim().parse().ok().map(|rank: u32| (nspace, rank))
        }
        _ => None,
    };
    let started = inherited.is_some();
    let proc = match given.or(inherited) {
        Some((nspace, rank)) => Some(named(&nspace, rank)?),
        None => None,
    };
    Ok(ToolConfig {
        proc,
        launcher: info.is_set(keys::LAUNCHER),
        started,
        credential: environ::credential(&variable, process.uid, process.gid)?,
        uid: process.uid,
        gid: process.gid,
        hostname: hostname.to_owned(),
        info: introduction(info, process),
    })
}

/// A name that is unique on this machine.
fn self_named(config: ToolConfig, process: &Identity) -> Result<ToolConfig, Error> {
    let name = || format!("tool-{}-{}", process.hostname.replace('.', "-"), process.pid);
    let proc = match config.proc {
        Some(proc) => proc,
        None => named(&name(), 0)?,
    };
    Ok(ToolConfig { proc: Some(proc), ..config })
}

fn named(nspace: &str, rank: u32) -> Result<ProcId, Error> {
    match Nspace::new(nspace) {
        Ok(name) if !name.is_none() => Ok(ProcId::new(&name, Rank(rank))),
        Ok(_) => Err(Error::Attribute { key: keys::TOOL_NSPACE, problem: "it is empty".to_owned() }),
        Err(error) => Err(Error::Attribute { key: keys::TOOL_NSPACE, problem: error.to_string() }),
    }
}

/// The attributes that servers of OpenPMIx expect of a tool; PRRTE fails without the command line.
fn introduction(info: &[Info], process: &Identity) -> Vec<Info> {
    let mut said = vec![
        Info::new(keys::PROC_PID, Value::Pid(process.pid)),
        Info::new(keys::CMD_LINE, command_line()),
        Info::new(keys::REALUID, process.uid),
        Info::new(keys::USERID, process.uid),
        Info::new(keys::GRPID, process.gid),
    ];
    if info.is_set(keys::LAUNCHER) {
        said.push(Info::new(keys::LAUNCHER, true));
    }
    said
}

/// Cut to a length that every server accepts in a greeting: a command line may name thousands of files.
fn command_line() -> String {
    let mut line = String::new();
    for argument in std::env::args_os() {
        if line.len() > LONGEST_COMMAND_LINE {
            break;
        }
        line.push_str(&argument.to_string_lossy());
        line.push(' ');
    }
    line.pop();
    if line.len() > LONGEST_COMMAND_LINE {
        line.truncate(line.floor_char_boundary(LONGEST_COMMAND_LINE));
        line.push_str(" ...");
    }
    line
}

/// The rendezvous file in which this process's launcher may have put the address of a server.
fn rendezvous_file(info: &[Info]) -> Result<Option<String>, Error> {
    let variables = ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"];
    let named = match text(info, keys::LAUNCHER_RENDEZVOUS_FILE)? {
        Some(file) => Some(file),
        None => variables.into_iter().find_map(variable),
    };
    // A file that does not exist is where a launcher is to leave its own address: its server does that, by creating the file
    // or failing.
    Ok(named.filter(|file| std::path::Path::new(file).exists()))
}

/// Bytes.
const LONGEST_COMMAND_LINE: usize = 4096;

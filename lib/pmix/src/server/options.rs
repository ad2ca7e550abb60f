//! Options of a server, in the terms of `PMIx_server_init`.

use std::path::PathBuf;

use phalanx_core::server::{OUTPUT_DEFAULTS, ToolsOf};
use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{Info, InfoFlags, Nspace, ProcId, Value};

use crate::engine::Drive;
use crate::error::Error;
use phalanx_shell::reach::Reach;
use phalanx_shell::rendezvous::Mode;

/// A server's options. Everything has a default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOptions {
    /// The server's own name (`pmix.srv.nspace`, `pmix.srv.rank`); by default one that is unique on this node.
    pub identity: Option<ProcId>,
    /// The name of this node (`pmix.hname`); by default the kernel's.
    pub hostname: Option<String>,
    /// The number of this node (`pmix.nodeid`), by which jobs may name it.
    pub node_id: Option<u32>,
    /// A directory for the files of this server (`pmix.srvr.tmpdir`); by default that of the system.
    pub server_tmpdir: Option<String>,
    /// The top directory for files of the whole node (`pmix.sys.tmpdir`); by default `TMPDIR`, or `/tmp`.
    pub system_tmpdir: Option<String>,
    /// Whether tools may connect (`pmix.srvr.tool`); they find the server by files in `server_tmpdir`.
    pub tool_support: bool,
    /// Whether tools of other users may connect, too (`pmix.srvr.ftools`), if the host agrees.
    pub foreign_tools: bool,
    /// Whether a rank may have one connection at a time (`pmix.allow.clones` false).
    pub refuse_clones: bool,
    /// Whether tools on other nodes may connect as well (`pmix.srvr.remote`): those that present the secret in the files.
    pub reach: Reach,
    /// Whether this is the one system server of the machine (`pmix.srvr.sys`), with a file in `system_tmpdir`.
    pub system_support: bool,
    /// The file where a launcher expects this server's address (`pmix.tool.lncrnd`, or from the environment).
    pub rendezvous_file: Option<PathBuf>,
    /// Permission bits of these files (`pmix.sockmode`): by default readable for their owner only, or for all users whose tools
    /// may connect. A file with a secret is the owner's in any case.
    pub mode: Option<u32>,
    /// Whether clients get the topology of this node (`pmix.srvr.share`); otherwise they discover it themselves.
    pub share_topology: bool,
    /// The default style of forwarded output for local readers.
    pub output: Vec<Info>,
    pub drive: Drive,
}

impl ServerOptions {
    /// Reads the infos of `PMIx_server_init`. Unknown ones are ignored, unless they are required.
    pub fn from_infos(info: &[Info]) -> Result<ServerOptions, Error> {
        let mut options = ServerOptions::default();
        let (mut nspace, mut rank) = (None, None);
        for info in info {
            let text = || info.value.as_str().map(str::to_owned).ok_or_else(|| unfit(info));
            match info.key.as_str() {
                keys::SERVER_NSPACE => {
                    nspace = Some(Nspace::new(&text()?).map_err(|_| unfit(info))?);
                }
                keys::SERVER_RANK => rank = Some(number(&info.value).ok_or_else(|| unfit(info))?),
                keys::HOSTNAME => options.hostname = Some(text()?),
                keys::NODEID => options.node_id = Some(info.value.as_u32().ok_or_else(|| unfit(info))?),
                keys::SERVER_TMPDIR => options.server_tmpdir = Some(text()?),
                keys::SYSTEM_TMPDIR => options.system_tmpdir = Some(text()?),
                keys::SERVER_TOOL_SUPPORT => options.tool_support = info.value.is_true(),
                keys::SERVER_ALLOW_FOREIGN_TOOLS => options.foreign_tools = info.value.is_true(),
                keys::ALLOW_CLIENT_CLONES => options.refuse_clones = !info.value.is_true(),
                keys::SERVER_REMOTE_CONNECTIONS if info.value.is_true() => {
                    options.reach = Reach::Network(None)
                }
                keys::SERVER_SYSTEM_SUPPORT => options.system_support = info.value.is_true(),
                keys::SERVER_SHARE_TOPOLOGY => options.share_topology = info.value.is_true(),
                keys::LAUNCHER_RENDEZVOUS_FILE => options.rendezvous_file = Some(text()?.into()),
                keys::SOCKET_MODE => {
                    let bits = info.value.as_u32().filter(|bits| *bits <= 0o777);
                    options.mode = Some(bits.ok_or_else(|| unfit(info))?);
                }
                key if OUTPUT_DEFAULTS.iter().any(|keys| keys.contains(&key)) => {
                    options.output.push(info.clone())
                }
                keys::EXTERNAL_PROGRESS if info.value.is_true() => options.drive = Drive::Host,
                _ if info.flags.contains(InfoFlags::REQUIRED) && !ATTRIBUTES.contains(&info.key.as_str()) => {
                    return Err(Error::Failed {
                        operation: format!("start of a server with the required attribute {}", info.key),
                        status: Status::ERR_NOT_SUPPORTED,
                    });
                }
                _ => {}
            }
        }
        if options.rendezvous_file.is_none() && options.tool_support {
            let variables = ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"];
            let named = variables.into_iter().find_map(std::env::var_os).map(PathBuf::from);
            // An existing file names a server to connect to, and is not for our address.
            options.rendezvous_file = named.filter(|file| !file.exists());
        }
        options.identity = match (nspace, rank) {
            (None, None) => None,
            (nspace, rank) => {
                let nspace = nspace.map_or_else(|| own_nspace(&options.hostname()), Ok)?;
                Some(ProcId::new(&nspace, rank.unwrap_or(Rank(0))))
            }
        };
        Ok(options)
    }

    pub(super) fn tools_of(&self) -> ToolsOf {
        match (self.tool_support, self.foreign_tools) {
            (false, _) => ToolsOf::Nobody,
            (true, false) => ToolsOf::Owner,
            (true, true) => ToolsOf::Everybody,
        }
    }

    /// The permission bits of rendezvous files.
    pub(super) fn mode(&self) -> u32 {
        let readable = self.tools_of() == ToolsOf::Everybody && self.reach == Reach::Node;
        self.mode.unwrap_or(if readable { 0o644 } else { Mode::default().bits })
    }

    pub(super) fn hostname(&self) -> String {
        self.hostname
            .clone()
            .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
    }

    pub(super) fn identity(&self) -> Result<ProcId, Error> {
        match &self.identity {
            Some(identity) => Ok(identity.clone()),
            None => Ok(ProcId::new(&own_nspace(&self.hostname())?, Rank(0))),
        }
    }

    pub(super) fn system_tmpdir(&self) -> String {
        self.system_tmpdir
            .clone()
            .or_else(|| std::env::var("TMPDIR").ok().filter(|dir| !dir.is_empty()))
            .unwrap_or_else(|| "/tmp".into())
    }

    pub(super) fn server_tmpdir(&self) -> String {
        self.server_tmpdir.clone().unwrap_or_else(|| self.system_tmpdir())
    }
}

fn own_nspace(hostname: &str) -> Result<Nspace, Error> {
    // OpenPMIx ends the namespace of a server's address at the first dot.
    let name = format!("pmix-server-{}-{}", hostname.replace('.', "-"), std::process::id());
    Nspace::new(&name).map_err(|reason| Error::Key { key: name, reason })
}

fn number(value: &Value) -> Option<Rank> {
    match value {
        Value::Rank(rank) => Some(*rank),
        other => other.as_u32().map(Rank),
    }
}

fn unfit(info: &Info) -> Error {
    Error::Failed {
        operation: format!("start of a server with {} of a type that it does not have", info.key),
        status: Status::ERR_BAD_PARAM,
    }
}

/// The attributes of `PMIx_server_init` that are honoured.
pub const ATTRIBUTES: &[&str] = &[
    keys::SERVER_NSPACE,
    keys::SERVER_RANK,
    keys::HOSTNAME,
    keys::NODEID,
    keys::SERVER_TMPDIR,
    keys::SYSTEM_TMPDIR,
    keys::SERVER_TOOL_SUPPORT,
    keys::SERVER_ALLOW_FOREIGN_TOOLS,
    keys::ALLOW_CLIENT_CLONES,
    keys::SERVER_SYSTEM_SUPPORT,
    keys::SERVER_REMOTE_CONNECTIONS,
    keys::LAUNCHER_RENDEZVOUS_FILE,
    keys::SOCKET_MODE,
    keys::SERVER_SHARE_TOPOLOGY,
    keys::EXTERNAL_PROGRESS,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_let_in_unless_the_host_says_no() {
        let refuses = |info: &[Info]| ServerOptions::from_infos(info).unwrap().refuse_clones;
        assert!(!refuses(&[]) && !refuses(&[Info::new(keys::ALLOW_CLIENT_CLONES, true)]));
        assert!(refuses(&[Info::new(keys::ALLOW_CLIENT_CLONES, false)]));
    }

    #[test]
    fn tools_come_from_other_nodes_only_if_that_is_asked_for() {
        let reach = |info: &[Info]| ServerOptions::from_infos(info).unwrap().reach;
        assert_eq!(reach(&[Info::new(keys::SERVER_TOOL_SUPPORT, true)]), Reach::Node);
        assert_eq!(reach(&[Info::new(keys::SERVER_REMOTE_CONNECTIONS, false)]), Reach::Node);
        assert_eq!(reach(&[Info::new(keys::SERVER_REMOTE_CONNECTIONS, true)]), Reach::Network(None));
    }

    #[test]
    fn rendezvous_files_are_readable_only_as_allowed() {
        let on = |key| Info::new(key, true);
        let (tools, all) = (on(keys::SERVER_TOOL_SUPPORT), on(keys::SERVER_ALLOW_FOREIGN_TOOLS));
        let remote = on(keys::SERVER_REMOTE_CONNECTIONS);
        let mode = Info::new(keys::SOCKET_MODE, 0o640_u32);
        let of = |info: &[&Info]| {
            let info: Vec<Info> = info.iter().map(|info| (*info).clone()).collect();
            let options = ServerOptions::from_infos(&info).unwrap();
            (options.tools_of(), options.mode())
        };
        assert_eq!(of(&[]), (ToolsOf::Nobody, 0o600));
        assert_eq!(of(&[&all]), (ToolsOf::Nobody, 0o600));
        assert_eq!(of(&[&tools]), (ToolsOf::Owner, 0o600));
        assert_eq!(of(&[&tools, &mode]), (ToolsOf::Owner, 0o640));
        assert_eq!(of(&[&tools, &all]), (ToolsOf::Everybody, 0o644));
        assert_eq!(of(&[&tools, &all, &remote]), (ToolsOf::Everybody, 0o600));
        assert!(ServerOptions::from_infos(&[Info::new(keys::SOCKET_MODE, 0o7777_u32)]).is_err());
    }
}

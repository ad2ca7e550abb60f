//! The node that a launcher starts for itself: the root of a DVM, and so far its only daemon.
//!
//! What the machine, the user and the kernel have said becomes the node's configuration here, and nothing else happens.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use phalanx_core::server::{Server, ServerConfig};
use phalanx_core::{ConnId, Time, Waiting};
use phalanx_dvm::hosts::Slots;
use phalanx_dvm::{Effect, Input, Limits, Node, NodeConfig, NodeId};
use phalanx_shell::reach::Reach;
use phalanx_shell::rendezvous::{Mode, Notice};
use phalanx_spec::Rank;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Nspace, ProcId, Text};
use rustix::process::{getegid, geteuid};

use crate::daemon::{Running, Site};
use crate::drive::Decide;
use crate::machine::Machine;
use crate::session::Session;
use crate::startup::Inherited;

/// What a root node is made of.
#[derive(Debug)]
pub struct RootOptions {
    pub inherited: Inherited,
    pub session: Session,
    pub machine: Machine,
    /// How many processes this machine is for.
    pub slots: Slots,
    pub max_slots: Option<u32>,
    pub limits: Limits,
    /// From where tools may come.
    pub reach: Reach,
    /// Where somebody waits for this server's address, beside the places that tools search.
    pub rendezvous_files: Vec<PathBuf>,
    /// Where this is to be known as the one system server of the machine, if it is.
    pub system_dir: Option<PathBuf>,
    /// What processes find in their environment that a tool has started.
    pub env: Vec<Text>,
    /// It goes on without a job, until somebody stops it.
    pub lasts: bool,
}

impl Running {
    /// Starts the root node of a DVM. To be called within [`crate::block_on`].
    pub fn root(options: RootOptions) -> Result<Running> {
        let RootOptions {
            inherited,
            session,
            machine,
            slots,
            max_slots,
            limits,
            reach,
            rendezvous_files,
            system_dir,
            env,
            lasts,
        } = options;
        let door = reach.door().context("cannot find an address for tools on other nodes")?;
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .context("cannot get random bytes")?;
        // OpenPMIx ends the namespace of a server's URI at the first dot.
        let dvm = format!("px-{}-{}", machine.hostname.replace('.', "-"), std::process::id());
        let nspace = Nspace::new(&dvm).map_err(|e| anyhow!("cannot name a DVM {dvm}: {e}"))?;
        let system_tmpdir = text(session.dir().parent().unwrap_or(Path::new("/tmp")))?;
        let server_tmpdir = text(session.dir())?;
        // MPI libraries clean up in the directory that they are told of: nothing of the server's is to lie there.
        let scratch = format!("{server_tmpdir}/jobs");
        let identity = ProcId::new(&nspace, Rank(0));
        let hostname = machine.hostname.to_string();
        let server = identity.clone();
        let notice = move |site: &Site<'_>| {
            Some(Notice {
                uri: ServerUri { server, address: site.outside },
                version: phalanx_core::server::VERSION.to_owned(),
                hostname,
                secret: site.remote.as_ref().map(|remote| remote.secret.clone()),
                mode: Mode::default(),
                system_dir,
                server_dir: Some(site.dir.to_owned()),
                files: rendezvous_files,
            })
        };
        Running::start(inherited, session, &door, notice, |site: &Site<'_>| {
            let hostname = machine.hostname.to_string();
            let address = format!("tcp4://{}", site.address);
            let owner = geteuid().as_raw();
            let server = Server::new(ServerConfig {
                server_tmpdir,
                system_tmpdir,
                remote: site.remote.clone(),
                collections: phalanx_shell::collected::beginning(site.dir),
                topology: Some(machine.topology.clone()),
                clock: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
                ..ServerConfig::new(identity.clone(), hostname, address, owner, seed)
            });
            let config = NodeConfig {
                id: NodeId(0),
                size: 1,
                radix: RADIX,
                dvm: dvm.into(),
                first_job: std::process::id() & 0xffff,
                hostname: machine.hostname,
                topology: machine.topology,
                slots,
                max_slots,
                // No other daemon can reach this one yet.
                address: Arc::from(""),
                lineage: Vec::new(),
                uid: geteuid().as_raw(),
                env,
                gid: getegid().as_raw(),
                scratch: scratch.into(),
                lasts,
                limits,
            };
            Node::new(config, server)
        })
    }
}

impl Decide for Node<Server> {
    fn handle(&mut self, now: Time, input: Input<'_>, effects: &mut VecDeque<Effect>) {
        Node::handle(self, now, input, effects);
    }

    fn deadline(&self) -> Option<Time> {
        Node::deadline(self)
    }

    fn is_full(&self, conn: ConnId) -> bool {
        Node::is_full(self, conn)
    }

    fn explain(&self) -> Vec<Waiting> {
        let mut waiting = Node::explain(self);
        waiting.extend(self.server().explain());
        waiting
    }
}

/// Paths go to clients as text.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8, which PMIx needs", path.display()))?;
    Ok(text.to_owned())
}

/// Children per daemon.
const RADIX: u32 = 32;

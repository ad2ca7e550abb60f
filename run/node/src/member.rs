//! One daemon of a DVM, the root or another: turns facts about the machine, the user's options and the kernel's answers into the configuration of the
//! daemon and of its server, and does nothing else.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use phalanx_core::server::{Server, ServerConfig};
use phalanx_core::{ConnId, Time, Waiting};
use phalanx_dvm::hosts::Slots;
use phalanx_dvm::start::StartPlan;
use phalanx_dvm::{Effect, Input, Limits, Node, NodeConfig, NodeId, Rules};
use phalanx_shell::reach::Reach;
use phalanx_shell::rendezvous::{Mode, Notice};
use phalanx_spec::Rank;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Nspace, ProcId, Text};
use rustix::process::{getegid, geteuid};

use crate::daemon::{Running, Site};
use crate::drive::Decide;
use crate::link::own_addresses;
use crate::machine::Machine;
use crate::neighbours::Neighbours;
use crate::session::Session;
use crate::startup::Inherited;

/// What any daemon is made of.
pub(crate) struct Member {
    pub(crate) inherited: Inherited,
    pub(crate) session: Session,
    pub(crate) machine: Machine,
    pub(crate) dvm: Arc<str>,
    pub(crate) id: NodeId,
    pub(crate) size: u32,
    pub(crate) radix: u32,
    pub(crate) slots: Slots,
    pub(crate) max_slots: Option<u32>,
    /// Whether ranks may be placed here.
    pub(crate) takes_ranks: bool,
    /// What the user calls nodes 1 and up, where that differs from their own names. Only at the root.
    pub(crate) called: Vec<Arc<str>>,
    pub(crate) address: Arc<str>,
    pub(crate) lineage: Vec<(NodeId, Arc<str>)>,
    pub(crate) neighbours: Neighbours,
    pub(crate) limits: Limits,
    pub(crate) env: Vec<Text>,
    pub(crate) lasts: bool,
    pub(crate) rules: Rules,
    /// The daemons that it starts.
    pub(crate) plan: Option<StartPlan>,
    pub(crate) reach: Reach,
    /// Whether tools can find it. On the host of the root they find the root.
    pub(crate) is_found: bool,
    pub(crate) rendezvous_files: Vec<PathBuf>,
    pub(crate) system_dir: Option<PathBuf>,
}

impl Running {
    pub(crate) fn member(member: Member) -> Result<Running> {
        let Member { inherited, session, machine, dvm, neighbours, plan, .. } = member;
        if member.id != NodeId::ROOT {
            session.pulse().expect(member.limits.silence);
        }
        let door = member.reach.door().context("cannot find an address for tools on other nodes")?;
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .context("cannot get random bytes")?;
        let nspace = Nspace::new(&dvm).map_err(|e| anyhow!("cannot name a DVM {dvm}: {e}"))?;
        let system_tmpdir = text(session.dir().parent().unwrap_or(Path::new("/tmp")))?;
        let server_tmpdir = text(session.dir())?;
        // MPI libraries clean up in the directory that they are given: the server's files must not lie there.
        let scratch = format!("{server_tmpdir}/jobs");
        let identity = ProcId::new(&nspace, Rank(member.id.0));
        let hostname = machine.hostname.to_string();
        let server = identity.clone();
        let notice = move |site: &Site<'_>| {
            member.is_found.then(|| Notice {
                uri: ServerUri { server, address: site.outside },
                version: phalanx_core::server::VERSION.to_owned(),
                hostname,
                secret: site.remote.as_ref().map(|remote| remote.secret.clone()),
                mode: Mode::default(),
                system_dir: member.system_dir,
                server_dir: Some(site.dir.to_owned()),
                files: member.rendezvous_files,
            })
        };
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Running::among(neighbours, inherited, session, &door, notice, |site: &Site<'_>| {
            let hostname = machine.hostname.to_string();
            let address = format!("tcp4://{}", site.address);
            let owner = geteuid().as_raw();
            let server = Server::new(ServerConfig {
                server_tmpdir,
                system_tmpdir,
                joins_fences_of_jobs: true,
                remote: site.remote.clone(),
                collections: phalanx_shell::collected::beginning(site.dir),
                topology: Some(machine.topology.clone()),
                clock,
                ..ServerConfig::new(identity.clone(), hostname, address, owner, seed)
            });
            let config = NodeConfig {
                id: member.id,
                size: member.size,
                radix: member.radix,
                dvm,
                first_job: std::process::id() & 0xffff,
                hostname: machine.hostname,
                addresses: if member.id == NodeId::ROOT { addresses_here() } else { Vec::new() },
                called: member.called,
                topology: machine.topology,
                slots: member.slots,
                max_slots: member.max_slots,
                takes_ranks: member.takes_ranks,
                address: member.address,
                lineage: member.lineage,
                uid: geteuid().as_raw(),
                env: member.env,
                gid: getegid().as_raw(),
                scratch: scratch.into(),
                lasts: member.lasts,
                rules: member.rules,
                clock,
                limits: member.limits,
            };
            let node = Node::new(config, server);
            match plan {
                Some(plan) => node.starting(plan),
                None => node,
            }
        })
    }
}

/// Without them a spawn can name this host by its name only.
fn addresses_here() -> Vec<IpAddr> {
    own_addresses().unwrap_or_default().into_iter().map(|own| own.address).collect()
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

/// Clients get paths as text.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8, which PMIx needs", path.display()))?;
    Ok(text.to_owned())
}

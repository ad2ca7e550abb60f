//! The daemon that a launcher starts for itself: the root of a DVM, which starts the others.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use phalanx_dvm::hosts::Slots;
use phalanx_dvm::start::StartPlan;
use phalanx_dvm::{Fleet, Limits, NodeId, Rules};
use phalanx_shell::reach::Reach;
use phalanx_wire::{Nspace, Text};

use crate::daemon::Running;
use crate::link::{LinkLimits, Links, Network, Secret, choose_addresses, own_addresses};
use crate::machine::Machine;
use crate::member::Member;
use crate::neighbours::Neighbours;
use crate::session::Session;
use crate::startup::Inherited;

/// What a root node is made of.
#[derive(Debug)]
pub struct RootOptions {
    pub inherited: Inherited,
    pub session: Session,
    pub machine: Machine,
    /// How many processes this machine takes.
    pub slots: Slots,
    pub max_slots: Option<u32>,
    /// Whether processes may be placed on this machine at all.
    pub takes_ranks: bool,
    /// The other hosts.
    pub fleet: Fleet,
    /// The networks by which daemons reach each other; empty: all.
    pub networks: Vec<Network>,
    pub limits: Limits,
    /// Where tools may connect from.
    pub reach: Reach,
    /// Files for this server's address, beside the places that tools search.
    pub rendezvous_files: Vec<PathBuf>,
    /// Where to register as the machine's one system server, as the other daemons of the DVM do on theirs; none: it is not.
    pub system_dir: Option<PathBuf>,
    /// Extra environment of the processes that tools start.
    pub env: Vec<Text>,
    /// It stays without a job, until it is stopped.
    pub lasts: bool,
    /// Rules set by the command that starts it.
    pub rules: Rules,
}

impl Running {
    /// Starts the root node of a DVM, and then the others. Must be called within [`crate::block_on`].
    pub fn root(options: RootOptions) -> Result<Running> {
        let RootOptions { inherited, session, machine, fleet, networks, .. } = options;
        // OpenPMIx ends the namespace of a server's URI at the first dot.
        let dvm = format!("px-{}-{}", machine.hostname.replace('.', "-"), std::process::id());
        let mut neighbours = Neighbours::default();
        let (mut plan, mut address) = (None, Arc::from(""));
        let size = u32::try_from(fleet.hosts.len() + 1).context("there are too many hosts")?;
        let called = fleet.hosts.iter().map(|host| host.name.clone()).collect();
        if !fleet.hosts.is_empty() {
            let secret = Secret::new().context("cannot get random bytes")?;
            let line = secret.line().into();
            let (mut links, events) = Links::new(&dvm, NodeId::ROOT, secret, LinkLimits::default());
            address = open(&mut links, &networks)?;
            neighbours = Neighbours::new(links, events);
            let nspace = format!("{dvm}-agents");
            let nspace = Nspace::new(&nspace).map_err(|e| anyhow!("cannot name agents {nspace}: {e}"))?;
            let networks = networks.iter().map(|network| Text::from(network.to_string())).collect();
            plan = Some(StartPlan {
                fleet,
                nspace,
                secret: line,
                networks,
                is_system: options.system_dir.is_some(),
            });
        }
        Running::member(Member {
            inherited,
            session,
            machine,
            dvm: dvm.into(),
            id: NodeId::ROOT,
            size,
            radix: RADIX,
            slots: options.slots,
            max_slots: options.max_slots,
            takes_ranks: options.takes_ranks,
            called,
            address,
            lineage: Vec::new(),
            neighbours,
            limits: options.limits,
            env: options.env,
            lasts: options.lasts,
            rules: options.rules,
            plan,
            reach: options.reach,
            is_found: true,
            rendezvous_files: options.rendezvous_files,
            system_dir: options.system_dir,
        })
    }
}

/// Lets other daemons call, and returns at which addresses.
pub(crate) fn open(links: &mut Links, networks: &[Network]) -> Result<Arc<str>> {
    let own = own_addresses().context("cannot tell the addresses of this host")?;
    let addresses = choose_addresses(&own, networks)?;
    let at = links.listen(&addresses).context("cannot listen for other daemons")?;
    Ok(at.to_string().into())
}

/// Children per daemon.
const RADIX: u32 = 32;

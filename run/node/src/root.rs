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
    /// How many processes this machine is for.
    pub slots: Slots,
    pub max_slots: Option<u32>,
    /// Whether processes may be placed on this machine at all.
    pub takes_ranks: bool,
    /// The other hosts.
    pub fleet: Fleet,
    /// By which networks daemons reach each other; all, if none is named.
    pub networks: Vec<Network>,
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
    /// What whoever starts it has decided.
    pub rules: Rules,
}

impl Running {
    /// Starts the root node of a DVM, and by and by the others. To be called within [`crate::block_on`].
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
            plan = Some(StartPlan { fleet, nspace, secret: line, networks });
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
            rendezvous_files: options.rendezvous_files,
            system_dir: options.system_dir,
        })
    }
}

/// Lets other daemons come in. The result is where they are to call.
pub(crate) fn open(links: &mut Links, networks: &[Network]) -> Result<Arc<str>> {
    let own = own_addresses().context("cannot tell the addresses of this host")?;
    let addresses = choose_addresses(&own, networks)?;
    let at = links.listen(&addresses).context("cannot listen for other daemons")?;
    Ok(at.to_string().into())
}

/// Children per daemon.
const RADIX: u32 = 32;

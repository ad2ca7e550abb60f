//! The hosts of a DVM of ours: the other hosts beside this one, how many ranks each takes, and the commands that start the daemons.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::hosts::{Host, HostEntry, Slots};
use phalanx_dvm::map::Policy;
use phalanx_dvm::{AppSpec, FarHost, Fleet, Limits};
use phalanx_node::link::Network;

use super::Here;
use super::agent::{self, Destination};
use super::allocation::{self, Allocation};
use super::hosts::Roster;
use crate::args::AppArgs;
use crate::args::dvm::DvmStartArgs;
use crate::args::fleet::FleetArgs;
use crate::failure::Failure;
use crate::render::words;

/// What a root needs to know of its DVM's hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    pub(crate) fleet: Fleet,
    /// The networks that daemons may use; empty: all.
    pub(crate) networks: Vec<Network>,
    /// The silence after which a host is lost, if the user has set it.
    pub(crate) silence: Option<Duration>,
    /// How long a host may take for each phase of its start, if the user has set it.
    pub(crate) start: Option<Duration>,
    /// Whether this host runs ranks.
    pub(crate) takes_ranks: bool,
    /// How many ranks this host takes.
    pub(crate) slots: Slots,
    pub(crate) max_slots: Option<u32>,
}

impl Default for Hosts {
    /// This host alone.
    fn default() -> Hosts {
        Hosts {
            fleet: Fleet::default(),
            networks: Vec::new(),
            silence: None,
            start: None,
            takes_ranks: true,
            slots: Slots::Unstated,
            max_slots: None,
        }
    }
}

impl Hosts {
    /// The limits of a DVM over these hosts.
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let silence = self.silence.unwrap_or(usual.silence);
        let agent = self.start.unwrap_or(usual.agent);
        Limits {
            silence,
            heartbeat: usual.heartbeat.min(silence / 5),
            reconnect: usual.reconnect.min(silence / 3),
            agent,
            boot: if self.start.is_some() { usual.boot.max(agent * 3) } else { usual.boot },
            ..usual
        }
    }
}

/// The hosts of a job with a DVM of its own. Replaces hosts in the programs and the policy by px's names for them.
pub(super) fn of_run(
    (apps, specs): (&[AppArgs], &mut [AppSpec]),
    policy: &mut Policy,
    args: &FleetArgs,
    here: &Here,
) -> Result<Hosts, Failure> {
    let allocation = allocation::find(here)?;
    let mut roster = Roster::new(here, allocation.as_ref());
    name_hosts(&mut roster, (apps, specs), policy)?;
    let named: Vec<&[HostEntry]> = specs.iter().map(|spec| &*spec.hosts).collect();
    assemble(roster, &named, allocation.as_ref(), args, here)
}

/// The same replacement for a job in an existing DVM, which knows its hosts itself.
pub(super) fn name_only(
    programs: (&[AppArgs], &mut [AppSpec]),
    policy: &mut Policy,
    here: &Here,
) -> Result<(), Failure> {
    name_hosts(&mut Roster::new(here, None), programs, policy)
}

/// The hosts of a persistent DVM.
pub(crate) fn of_dvm(args: &DvmStartArgs, here: &Here) -> Result<Hosts, Failure> {
    let allocation = allocation::find(here)?;
    let mut roster = Roster::new(here, allocation.as_ref());
    let entries = roster.options(args.hostfile.as_deref(), &args.host)?;
    assemble(roster, &[&entries], allocation.as_ref(), &args.fleet, here)
}

fn name_hosts(
    roster: &mut Roster<'_>,
    (apps, specs): (&[AppArgs], &mut [AppSpec]),
    policy: &mut Policy,
) -> Result<(), Failure> {
    for (app, spec) in apps.iter().zip(specs) {
        spec.hosts = roster.options(app.hostfile.as_deref(), &app.host)?;
    }
    let hostfile = apps.first().and_then(|app| app.hostfile.as_deref());
    let is_alone = |app: &AppArgs| app.hostfile.as_deref() == hostfile && app.host.is_empty();
    roster.map_file(policy, hostfile.filter(|_| apps.iter().all(is_alone)))
}

/// `+n3` counts the known hosts.
fn check_place(host: &Host, hosts: usize, is_allocation: bool) -> Result<(), Failure> {
    match host {
        // Without any name there is only this host.
        Host::Index(index) if *index as usize >= hosts.max(1) => {
            let of = if is_allocation { "the allocation has" } else { "the command line names" };
            let failure = Failure::usage(format!("'--host {host}': {of} {}", words::count(hosts, "host")));
            Err(failure.hint("+n0 is the first one"))
        }
        _ => Ok(()),
    }
}

/// Makes a fleet of all hosts in `roster`. `named` are the hosts that each program names.
fn assemble(
    roster: Roster<'_>,
    named: &[&[HostEntry]],
    allocation: Option<&Allocation>,
    args: &FleetArgs,
    here: &Here,
) -> Result<Hosts, Failure> {
    let (names, listed) = roster.names();
    for entry in named.iter().copied().flatten() {
        check_place(&entry.host, names.len(), allocation.is_some())?;
    }
    let mut said: BTreeMap<&str, Said> = BTreeMap::new();
    for entry in named.iter().copied().flatten().chain(&listed) {
        if let Host::Name(name) = &entry.host {
            said.entry(name).or_default().hear(entry);
        }
    }
    // An allocation may have more hosts than are needed.
    let is_chosen = |name: &str| match allocation {
        Some(_) => !chooses(named) || said.contains_key(name),
        None => true,
    };
    let of_allocation: BTreeMap<&str, Slots> = allocation
        .iter()
        .flat_map(|allocation| &allocation.hosts)
        .filter_map(|entry| match &entry.host {
            Host::Name(name) => Some((name.as_str(), entry.slots)),
            _ => None,
        })
        .collect();
    let system = allocation.map(|allocation| &allocation.system);
    let starts_here = agent::starts_here(args, system, here)?;
    let mut hosts = Hosts {
        fleet: Fleet {
            skip_bad: args.skip_bad_hosts,
            allocation: agent::allocation(system, here),
            ..Fleet::default()
        },
        networks: args.network.clone(),
        silence: args.host_timeout,
        start: args.start_timeout,
        takes_ranks: names.is_empty(),
        ..Hosts::default()
    };
    let mut users = Vec::new();
    for name in names.iter().filter(|name| is_chosen(name)) {
        let said = said.get(name.as_str()).cloned().unwrap_or_default();
        let slots = of_allocation.get(name.as_str()).copied().unwrap_or(said.slots);
        if *name == here.hostname && starts_here {
            let host = FarHost { name: Arc::from(name.as_str()), slots, max_slots: said.max_slots };
            hosts.fleet.hosts.insert(0, host);
            users.insert(0, None);
            continue;
        }
        if *name == here.hostname {
            hosts = Hosts { takes_ranks: true, slots, max_slots: said.max_slots, ..hosts };
            continue;
        }
        hosts.fleet.hosts.push(FarHost { name: Arc::from(name.as_str()), slots, max_slots: said.max_slots });
        users.push(said.user);
    }
    let destinations: Vec<Destination> = hosts
        .fleet
        .hosts
        .iter()
        .zip(users)
        .map(|(host, user)| Destination { name: host.name.to_string(), user })
        .collect();
    let agents = agent::agents(&destinations, args, system, here)?;
    (hosts.fleet.agents, hosts.fleet.env) = (agents.agents, agents.env);
    Ok(hosts)
}

/// Whether all programs name their hosts, so that no other host is needed.
fn chooses(named: &[&[HostEntry]]) -> bool {
    named
        .iter()
        .all(|entries| !entries.is_empty() && entries.iter().all(|entry| matches!(entry.host, Host::Name(_))))
}

/// What the programs state about one host.
#[derive(Clone, Default)]
struct Said {
    slots: Slots,
    max_slots: Option<u32>,
    user: Option<String>,
}

impl Said {
    /// Programs share the slots of a host: the largest stated number counts.
    fn hear(&mut self, entry: &HostEntry) {
        self.slots = match (self.slots, entry.slots) {
            (Slots::Stated(a), Slots::Stated(b)) => Slots::Stated(a.max(b)),
            (Slots::Stated(a), _) => Slots::Stated(a),
            (_, Slots::Stated(b)) => Slots::Stated(b),
            _ => Slots::Unstated,
        };
        self.max_slots = self.max_slots.max(entry.max_slots);
        if entry.user.is_some() {
            self.user.clone_from(&entry.user);
        }
    }
}

#[cfg(test)]
mod tests;

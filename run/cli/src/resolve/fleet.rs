//! The hosts of a DVM of ours: which others there are beside this one, for how many ranks each is, and what starts the daemons there.

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

/// What a root is told of the hosts of its DVM.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    pub(crate) fleet: Fleet,
    /// Which addresses daemons may use; none: all of them.
    pub(crate) networks: Vec<Network>,
    /// After how much silence a host is lost, if the user said.
    pub(crate) silence: Option<Duration>,
    /// How long a host may take for each phase of its start, if the user said.
    pub(crate) start: Option<Duration>,
    /// This host is one of those that run ranks.
    pub(crate) takes_ranks: bool,
    /// How many it is for.
    pub(crate) slots: Slots,
    pub(crate) max_slots: Option<u32>,
}

impl Default for Hosts {
    /// This host, as it is.
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

/// The hosts of a job that gets a DVM of its own. Puts the names by which they are called there into the programs and the policy.
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

/// The same names for a job in a DVM that is there already, which knows its hosts itself.
pub(super) fn name_only(
    programs: (&[AppArgs], &mut [AppSpec]),
    policy: &mut Policy,
    here: &Here,
) -> Result<(), Failure> {
    name_hosts(&mut Roster::new(here, None), programs, policy)
}

/// The hosts of a DVM that waits for jobs.
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

/// `+n3` counts the hosts that there are.
fn check_place(host: &Host, hosts: usize, is_allocation: bool) -> Result<(), Failure> {
    match host {
        // Without any name there is this host.
        Host::Index(index) if *index as usize >= hosts.max(1) => {
            let of = if is_allocation { "the allocation has" } else { "the command line names" };
            let failure = Failure::usage(format!("'--host {host}': {of} {}", words::count(hosts, "host")));
            Err(failure.hint("+n0 is the first one"))
        }
        _ => Ok(()),
    }
}

/// Makes a fleet of all the hosts that have a name here. `named` is what each program says of them.
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
    // In an allocation there may be more than anybody wants.
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
    let mut hosts = Hosts {
        fleet: Fleet { skip_bad: args.skip_bad_hosts, ..Fleet::default() },
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
    let agents = agent::agents(&destinations, args, allocation.map(|allocation| &allocation.system), here)?;
    (hosts.fleet.agents, hosts.fleet.env) = (agents.agents, agents.env);
    Ok(hosts)
}

/// Whether all programs say by name where they run, so that no other host is needed.
fn chooses(named: &[&[HostEntry]]) -> bool {
    named
        .iter()
        .all(|entries| !entries.is_empty() && entries.iter().all(|entry| matches!(entry.host, Host::Name(_))))
}

/// What programs say of one host.
#[derive(Clone, Default)]
struct Said {
    slots: Slots,
    max_slots: Option<u32>,
    user: Option<String>,
}

impl Said {
    /// Programs share the slots of a host: what counts is the one that has stated the most.
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

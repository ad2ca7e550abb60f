//! Allocations of batch systems: their hosts and slots, read from environment and files.

use std::path::Path;

use phalanx_dvm::hosts::{
    Host, HostEntry, HostsError, Slots, merge_hosts, parse_grid_engine, parse_hostfile, parse_lsf,
    parse_slurm, text_of,
};

use crate::failure::Failure;
use crate::resolve::{Here, file};

/// The allocation by a batch system.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub(super) system: System,
    /// The variable that names the hosts.
    variable: &'static str,
    /// In the system's order, each once, with stated slots if the system gives a number.
    pub(super) hosts: Vec<HostEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// With the number of the job, if it is known.
    Slurm(Option<String>),
    Pbs,
    Lsf,
    GridEngine,
}

/// The allocation in which px runs, if any.
pub(super) fn find(here: &Here) -> Result<Option<Allocation>, Failure> {
    let Some((variable, value, read)) = READERS
        .iter()
        .find_map(|(variable, read)| here.variable(variable).map(|value| (*variable, value, read)))
    else {
        return Ok(None);
    };
    let cannot = || {
        Failure::new(format!("cannot read the allocation that {variable} names"))
            .hint(format!("without {variable} in its environment px runs outside the allocation"))
    };
    let (system, mut hosts) = read(value, here).map_err(|cause| cannot().because(cause))?;
    for entry in &mut hosts {
        match &mut entry.host {
            Host::Name(name) if here.is_called(name) => name.clone_from(&here.hostname),
            _ => {}
        }
    }
    let hosts = merge_hosts(hosts);
    match hosts.is_empty() {
        true => Err(cannot().because(format!("'{value}' names no host"))),
        false => Ok(Some(Allocation { system, variable, hosts })),
    }
}

impl Allocation {
    /// Lists the first hosts.
    pub(super) fn describe(&self) -> String {
        const SHOWN: usize = 6;
        let names: Vec<String> = self.hosts.iter().take(SHOWN).map(|entry| entry.host.to_string()).collect();
        let more = if self.hosts.len() > SHOWN { ", ..." } else { "" };
        format!("{} names {}{more}", self.variable, names.join(", "))
    }
}

type Read = fn(&str, &Here) -> Result<(System, Vec<HostEntry>), String>;

const READERS: [(&str, Read); 5] = [
    ("SLURM_JOB_NODELIST", slurm),
    ("PBS_NODEFILE", |file, _| Ok((System::Pbs, line_per_slot(file)?))),
    ("LSB_MCPU_HOSTS", |hosts, _| Ok((System::Lsf, parse_lsf(hosts).map_err(said)?))),
    ("LSB_DJOB_HOSTFILE", |file, _| Ok((System::Lsf, line_per_slot(file)?))),
    ("PE_HOSTFILE", |file, _| {
        let hosts = parse_grid_engine(file, &text(file)?).map_err(said)?;
        Ok((System::GridEngine, hosts))
    }),
];

/// In a step the numbers of tasks are those of the step, and may cover fewer nodes than the allocation has.
fn slurm(nodes: &str, here: &Here) -> Result<(System, Vec<HostEntry>), String> {
    let job = here.variable("SLURM_JOB_ID").or_else(|| here.variable("SLURM_JOBID")).map(str::to_owned);
    let counts = ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"];
    let counts = counts.iter().filter_map(|name| here.variable(name));
    let counted = counts.filter_map(|counts| parse_slurm(nodes, Some(counts)).ok()).next();
    let hosts = match counted {
        Some(hosts) => hosts,
        None => parse_slurm(nodes, None).map_err(said)?,
    };
    Ok((System::Slurm(job), hosts))
}

/// A file of names: a host has one line for each of its slots.
fn line_per_slot(file: &str) -> Result<Vec<HostEntry>, String> {
    let mut hosts = parse_hostfile(file, &text(file)?).map_err(said)?;
    for entry in hosts.iter_mut().filter(|entry| entry.slots == Slots::Unstated) {
        entry.slots = Slots::Stated(1);
    }
    match hosts.iter().find(|entry| !matches!(entry.host, Host::Name(_))) {
        Some(other) => Err(format!("'{}' is no host name", other.host)),
        None => Ok(hosts),
    }
}

fn text(file: &str) -> Result<String, String> {
    let bytes = file::read(Path::new(file)).map_err(|error| format!("'{file}': {error}"))?;
    text_of(file, &bytes).map(str::to_owned).map_err(said)
}

fn said(error: HostsError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;

//! Allocations of batch systems: `px run` uses one host, and says so where it was given several.

use std::ffi::OsStr;
use std::path::Path;

use phalanx_dvm::hosts::{Host, HostEntry, merge_hosts, parse_hostfile, parse_lsf, parse_slurm};

use crate::resolve::{Here, file};

/// What the user should know who has several hosts. What cannot be read is no allocation.
pub(super) fn remark(here: &Here) -> Option<String> {
    let (variable, hosts) = ALLOCATIONS.iter().find_map(|(variable, read)| {
        let value = value(here, variable)?;
        Some((variable, count(read(value)?))).filter(|(_, hosts)| *hosts > 1)
    })?;
    let this = &here.hostname;
    Some(format!("{variable} names {hosts} hosts; px run uses only this one, {this}"))
}

type Read = fn(&str) -> Option<Vec<HostEntry>>;

const ALLOCATIONS: [(&str, Read); 4] = [
    ("SLURM_JOB_NODELIST", |nodes| parse_slurm(nodes, None).ok()),
    ("PBS_NODEFILE", |file| parse_hostfile(file, &text(file)?).ok()),
    ("LSB_MCPU_HOSTS", |hosts| parse_lsf(hosts).ok()),
    // Of each line of this one only the first word is a host.
    ("PE_HOSTFILE", |file| {
        let hosts = text(file)?;
        Some(hosts.lines().filter_map(|line| line.split_whitespace().next()).map(HostEntry::named).collect())
    }),
];

fn value<'a>(here: &'a Here, name: &str) -> Option<&'a str> {
    here.env.iter().find(|(key, _)| key == OsStr::new(name)).and_then(|(_, value)| value.to_str())
}

fn text(file: &str) -> Option<String> {
    String::from_utf8(file::read(Path::new(file)).ok()?).ok()
}

fn count(entries: Vec<HostEntry>) -> usize {
    merge_hosts(entries).iter().filter(|entry| matches!(entry.host, Host::Name(_))).count()
}

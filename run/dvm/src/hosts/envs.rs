//! What batch systems put into the environment about the nodes of an allocation.
//!
//! Values are passed in, never looked up. PBS names a file instead, which is a hostfile; Grid Engine names one in its own
//! format.

use super::scan::{Line, lines, single};
use super::{Host, HostEntry, HostsError, Slots, ranges};

/// Slurm: `nodelist` is the value of `SLURM_JOB_NODELIST` (`n[1-3],gpu7`), `per_node` that of `SLURM_TASKS_PER_NODE` or
/// `SLURM_JOB_CPUS_PER_NODE` (`2(x3),1`), which states the slots of the nodes in order. Without it they are unstated.
pub fn parse_slurm(nodelist: &str, per_node: Option<&str>) -> Result<Vec<HostEntry>, HostsError> {
    let mut line = single("SLURM_JOB_NODELIST", nodelist);
    let mut names = Vec::new();
    loop {
        let start = line;
        names.extend(ranges::names(&mut line)?);
        start.check_count(names.len())?;
        if line.rest().trim().is_empty() {
            break;
        }
        if !line.take(",") {
            return Err(line.expected("\",\" before the next name"));
        }
    }
    let Some(per_node) = per_node else { return Ok(names.into_iter().map(HostEntry::named).collect()) };
    let counts = counts(per_node, names.len())?;
    Ok(names.into_iter().zip(counts).map(|(name, count)| stated(name, count)).collect())
}

/// LSF: `hosts` is the value of `LSB_MCPU_HOSTS`: names and slots in turn, `a 4 b 2`.
pub fn parse_lsf(hosts: &str) -> Result<Vec<HostEntry>, HostsError> {
    let mut line = single("LSB_MCPU_HOSTS", hosts);
    let mut entries = Vec::new();
    loop {
        line.skip_blanks();
        if line.rest().is_empty() {
            return Ok(super::merge_hosts(entries));
        }
        read_stated(&mut line, &mut entries)?;
    }
}

/// Grid Engine: the file that `PE_HOSTFILE` names has a line `HOST SLOTS QUEUE PROCESSORS` for each queue of each host.
pub fn parse_grid_engine(file: &str, text: &str) -> Result<Vec<HostEntry>, HostsError> {
    let mut entries = Vec::new();
    for mut line in lines(file, text) {
        line.skip_blanks();
        read_stated(&mut line, &mut entries)?;
    }
    Ok(super::merge_hosts(entries))
}

/// Reads hosts, followed by the number of slots of each.
fn read_stated(line: &mut Line<'_>, entries: &mut Vec<HostEntry>) -> Result<(), HostsError> {
    let start = *line;
    let names = ranges::names(line)?;
    line.skip_blanks();
    let count = line.number_of("a number of slots")?;
    entries.extend(names.into_iter().map(|name| stated(name, count)));
    start.check_count(entries.len())
}

fn stated(name: String, slots: u32) -> HostEntry {
    HostEntry { host: Host::Name(name), slots: Slots::Stated(slots), max_slots: None, user: None }
}

/// Reads `2(x3),1` for this number of nodes.
fn counts(text: &str, nodes: usize) -> Result<Vec<u32>, HostsError> {
    let mut line = single("SLURM_TASKS_PER_NODE", text);
    let mut counts = Vec::new();
    loop {
        let count = line.number_of("a number of tasks")?;
        let mut times = 1;
        if line.take("(x") {
            times = line.number_of("how many nodes")? as usize;
            if !line.take(")") {
                return Err(line.expected("\")\""));
            }
        }
        counts.extend(std::iter::repeat_n(count, times.min(nodes - counts.len().min(nodes))));
        if line.rest().trim().is_empty() {
            break;
        }
        if !line.take(",") {
            return Err(line.expected("\",\" before the next number"));
        }
    }
    match counts.len() == nodes {
        true => Ok(counts),
        false => Err(line.expected(&format!("numbers for {nodes} nodes"))),
    }
}

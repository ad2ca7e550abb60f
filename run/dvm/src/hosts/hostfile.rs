//! Hostfiles: one node a line, `NAME [slots=N] [max_slots=M]`, as launchers have read them for decades.
//!
//! Reads the forms of Open MPI and PRRTE (with their spellings of the two keys, and ranges in brackets), of MPICH (`NAME:N`),
//! and of batch systems (a node's bare name once for each slot).

use super::hostlist::{is_of_account, relative, user};
use super::scan::{Line, lines};
use super::{Host, HostEntry, HostsError, Slots, ranges};

/// Reads a hostfile; errors call it `file`. Mentions of one node are joined: slots add up, and a bare name that occurs once
/// leaves them unstated, while each further one counts as a slot.
pub fn parse_hostfile(file: &str, text: &str) -> Result<Vec<HostEntry>, HostsError> {
    let mut entries = Vec::new();
    for mut line in lines(file, text) {
        let start = line;
        entry(&mut line, &mut entries)?;
        start.check_count(entries.len())?;
    }
    let mut entries = super::merge_hosts(entries);
    for entry in &mut entries {
        entry.slots = match entry.slots {
            Slots::Mentioned(1) => Slots::Unstated,
            Slots::Mentioned(times) => Slots::Stated(times),
            slots => slots,
        };
        // A bound alone is also the number of slots.
        if let (Slots::Unstated, Some(most)) = (entry.slots, entry.max_slots) {
            entry.slots = Slots::Stated(most);
        }
    }
    Ok(entries)
}

fn entry(line: &mut Line<'_>, entries: &mut Vec<HostEntry>) -> Result<(), HostsError> {
    line.skip_blanks();
    let mut user_name = None;
    let hosts = match relative(line)? {
        Some(host) => vec![host],
        None => {
            user_name = user(line)?;
            ranges::names(line)?.into_iter().map(Host::Name).collect()
        }
    };
    let mut slots = None;
    let mut max_slots = None;
    if line.take(":") {
        slots = Some(super::hostlist::slots(line)?);
    }
    loop {
        let before = *line;
        line.skip_blanks();
        if line.rest().is_empty() {
            break;
        }
        let start = *line;
        let key = line.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if before.rest() == start.rest() || key.is_empty() {
            return Err(start.expected("slots=N, max_slots=N or the end of the line"));
        }
        line.equals(key)?;
        let value = *line;
        let once = |is_given: bool, what: &str| match is_given {
            true => Err(start.expected(&format!("{what} only once"))),
            false => Ok(()),
        };
        match key.to_ascii_lowercase().replace('-', "_").as_str() {
            "slots" | "slot" | "cpu" | "cpus" | "count" => {
                once(slots.is_some(), "the slots")?;
                slots = Some(Slots::Stated(line.number_of("a number of slots")?));
            }
            "max_slots" | "slots_max" | "cpu_max" | "max_cpu" | "count_max" | "max_count" => {
                once(max_slots.is_some(), "max_slots")?;
                max_slots = Some(line.number_of("a number of slots")?);
            }
            "user" | "username" | "user_name" => {
                once(user_name.is_some(), "the account")?;
                let name = line.take_while(is_of_account);
                if name.is_empty() || name.starts_with('-') {
                    return Err(value.expected("an account"));
                }
                user_name = Some(name.to_owned());
            }
            _ => return Err(start.expected("slots=N, max_slots=N or user=NAME")),
        }
        if let (Some(Slots::Stated(stated)), Some(most)) = (slots, max_slots)
            && most < stated
        {
            return Err(value.expected(&format!("max_slots of at least the {stated} slots")));
        }
    }
    let slots = slots.unwrap_or(Slots::Mentioned(1));
    entries.extend(hosts.into_iter().map(|host| HostEntry {
        host,
        slots,
        max_slots,
        user: user_name.clone(),
    }));
    Ok(())
}

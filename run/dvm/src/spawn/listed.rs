//! Hosts and placements that were read from files, as values: one string for each entry.

use phalanx_spec::DataType;
use phalanx_wire::{DataArray, Value};

use crate::hosts::{Host, HostEntry, Slots, read_cpus, read_host};
use crate::map::{Rankfile, Sequence, SequenceEntry};

/// As a value of `PMIX_HOST`, which cannot express `max_slots`.
pub(super) fn host_words(hosts: &[HostEntry]) -> String {
    hosts.iter().map(words_of_one).collect::<Vec<_>>().join(",")
}

fn words_of_one(entry: &HostEntry) -> String {
    let Host::Name(name) = &entry.host else { return entry.host.to_string() };
    // The colons of an address are its own.
    let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
    let name = entry.user.as_ref().map_or_else(|| name.clone(), |user| format!("{user}@{name}"));
    match entry.slots {
        Slots::Unstated => format!("{name}:*"),
        Slots::Stated(slots) => format!("{name}:{slots}"),
        Slots::Mentioned(times) => vec![name; times as usize].join(","),
    }
}

/// `HOST SLOTS MOST USER`, with a dash for what is missing. A host that was mentioned N times has `xN` slots.
pub(super) fn write_hosts(hosts: &[HostEntry]) -> Value {
    strings(hosts.iter().map(|HostEntry { host, slots, max_slots, user }| {
        let slots = match slots {
            Slots::Unstated => "-".to_owned(),
            Slots::Mentioned(times) => format!("x{times}"),
            Slots::Stated(slots) => slots.to_string(),
        };
        let most = max_slots.map_or_else(|| "-".to_owned(), |most| most.to_string());
        format!("{host} {slots} {most} {}", user.as_deref().unwrap_or("-"))
    }))
}

pub(super) fn read_hosts(value: &Value) -> Result<Vec<HostEntry>, String> {
    let mut hosts = Vec::new();
    for entry in entries(value)? {
        let [host, slots, most, user] = words(entry)?;
        hosts.push(HostEntry {
            host: read_host(host).map_err(|error| error.to_string())?,
            slots: match slots.strip_prefix('x') {
                Some(times) => Slots::Mentioned(number(times)?),
                None => said(slots).map(number).transpose()?.map_or(Slots::Unstated, Slots::Stated),
            },
            max_slots: said(most).map(number).transpose()?,
            user: said(user).map(str::to_owned),
        });
    }
    Ok(hosts)
}

/// `LINE HOST CPUS`, with a dash for what is missing.
pub(super) fn write_sequence(sequence: &Sequence) -> Value {
    strings(sequence.entries.iter().map(placed))
}

pub(super) fn read_sequence(file: String, value: &Value) -> Result<Sequence, String> {
    let entries = entries(value)?.map(|entry| read_placed(words(entry)?));
    Ok(Sequence { file, entries: entries.collect::<Result<_, String>>()? })
}

/// `RANK LINE HOST CPUS`.
pub(super) fn write_rankfile(rankfile: &Rankfile) -> Value {
    strings(rankfile.ranks.iter().map(|(rank, entry)| format!("{rank} {}", placed(entry))))
}

pub(super) fn read_rankfile(file: String, value: &Value) -> Result<Rankfile, String> {
    let ranks = entries(value)?.map(|entry| {
        let [rank, line, host, cpus] = words(entry)?;
        Ok((number(rank)?, read_placed([line, host, cpus])?))
    });
    Ok(Rankfile { file, ranks: ranks.collect::<Result<_, String>>()? })
}

fn placed(entry: &SequenceEntry) -> String {
    let cpus = entry.cpus.as_ref().map_or_else(|| "-".to_owned(), |cpus| cpus.to_string());
    format!("{} {} {cpus}", entry.line, entry.host)
}

fn read_placed([line, host, cpus]: [&str; 3]) -> Result<SequenceEntry, String> {
    Ok(SequenceEntry {
        host: read_host(host).map_err(|error| error.to_string())?,
        cpus: said(cpus).map(read_cpus).transpose().map_err(|error| error.to_string())?,
        line: number(line)?,
    })
}

fn strings(entries: impl Iterator<Item = String>) -> Value {
    DataArray { of: DataType::STRING, items: entries.map(Value::from).collect() }.into()
}

fn entries(value: &Value) -> Result<impl Iterator<Item = &str>, String> {
    let array = value.as_array().ok_or("expected an array of strings")?;
    match array.items.iter().all(|item| item.as_str().is_some()) {
        true => Ok(array.items.iter().filter_map(Value::as_str)),
        false => Err("expected an array of strings".to_owned()),
    }
}

fn words<const N: usize>(entry: &str) -> Result<[&str; N], String> {
    let words: Vec<&str> = entry.split(' ').collect();
    words.try_into().map_err(|_| format!("expected {N} words in \"{}\"", entry.escape_default()))
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("expected a number in place of \"{}\"", word.escape_default()))
}

fn said(word: &str) -> Option<&str> {
    Some(word).filter(|word| *word != "-")
}

//! Rankfiles: one rank a line, `rank N=HOST slot=CPUS`.

use std::collections::BTreeMap;

use super::hostlist::{relative, user};
use super::scan::lines;
use super::{Host, HostsError, cpulist, ranges};
use crate::map::{Rankfile, SequenceEntry};

/// Reads a rankfile; errors call it `file`. CPUs are logical numbers of cores (of hardware threads under `hwtcpus`): `0,2-3`;
/// in a package: `1:0-2`, `1:*`; whole packages: `P0`; several, separated by semicolons. A line without `slot=` leaves the
/// binding to `--bind-to`.
pub fn parse_rankfile(file: &str, text: &str) -> Result<Rankfile, HostsError> {
    let mut ranks = BTreeMap::new();
    for mut line in lines(file, text) {
        line.skip_blanks();
        if !line.take("rank") || !line.rest().starts_with(char::is_whitespace) {
            return Err(line.expected("a line of the form: rank 0=HOST slot=0-1"));
        }
        line.skip_blanks();
        let start = line;
        let rank = line.number_of("the number of a rank")?;
        if ranks.contains_key(&rank) {
            return Err(start.expected("a rank that no earlier line has"));
        }
        line.equals("the rank")?;
        let start = line;
        let host = match relative(&mut line)? {
            Some(host @ Host::Index(_)) => host,
            Some(_) => return Err(start.expected("a host name or +nK")),
            None => {
                user(&mut line)?;
                match ranges::names(&mut line)?.as_mut_slice() {
                    [name] => Host::Name(std::mem::take(name)),
                    _ => return Err(start.expected("one host")),
                }
            }
        };
        line.skip_blanks();
        let mut cpus = None;
        if !line.rest().is_empty() {
            let start = line;
            let key = line.take_while(|c| c.is_ascii_alphabetic());
            if !matches!(key, "slot" | "slots") {
                return Err(start.expected("slot= or the end of the line"));
            }
            line.equals(key)?;
            cpus = Some(cpulist::read(&mut line)?);
        }
        ranks.insert(rank, SequenceEntry { host, cpus, line: line.number() });
    }
    Ok(Rankfile { file: file.to_owned(), ranks })
}

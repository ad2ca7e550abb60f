//! The file of `--map-by seq`: one rank a line, `HOST [CPUS]`.
//!
//! A hostfile serves too: a sequence ignores its slots.

use super::hostlist::{relative, user};
use super::scan::lines;
use super::{Host, HostsError, cpulist, ranges};
use crate::map::{Sequence, SequenceEntry};

/// Reads a sequence; errors call the file `file`. The CPUs of a line are those of a rankfile's `slot=`.
pub fn parse_sequence(file: &str, text: &str) -> Result<Sequence, HostsError> {
    let mut entries = Vec::new();
    for mut line in lines(file, text) {
        let start = line;
        line.skip_blanks();
        let hosts = match relative(&mut line)? {
            Some(host) => vec![host],
            None => {
                user(&mut line)?;
                ranges::names(&mut line)?.into_iter().map(Host::Name).collect()
            }
        };
        if !line.rest().is_empty() && !line.rest().starts_with([' ', '\t', ':']) {
            return Err(line.expected("a blank after the host name"));
        }
        line.take_while(|c| !c.is_whitespace());
        line.skip_blanks();
        let is_list = line.rest().starts_with(|c: char| c.is_ascii_digit() || "PpSs".contains(c));
        let cpus = match is_list && !line.rest().contains('=') {
            true => Some(cpulist::read(&mut line)?),
            false => None,
        };
        let number = line.number();
        entries.extend(hosts.into_iter().map(|host| SequenceEntry {
            host,
            cpus: cpus.clone(),
            line: number,
        }));
        start.check_count(entries.len())?;
    }
    Ok(Sequence { file: file.to_owned(), entries })
}

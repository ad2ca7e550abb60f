//! The CPUs of a line in a rankfile or sequence: `0,2-3`, `1:0-2`, `1:*`, `P0`, several joined by semicolons.

use phalanx_topo::{CpuSet, MAX_CPUS};

use super::HostsError;
use super::scan::{Line, single};
use crate::map::{CpuItem, CpuList};

/// Reads a text that is a list and nothing else.
pub(crate) fn read_cpus(text: &str) -> Result<CpuList, HostsError> {
    let mut line = single("CPUs", text);
    let list = read(&mut line)?;
    if line.rest().is_empty() { Ok(list) } else { Err(line.expected("the end of the list")) }
}

/// Reads a list up to a blank or the end of the line.
pub(super) fn read(line: &mut Line<'_>) -> Result<CpuList, HostsError> {
    let mut items = Vec::new();
    loop {
        let whole = line.take_while(|c| "PpSs".contains(c)).len();
        if whole > 1 {
            return Err(line.expected("a number"));
        }
        let numbers = numbers(line)?;
        items.push(match line.take(":") {
            false if whole == 1 => CpuItem::Packages(numbers),
            false => CpuItem::Cpus(numbers),
            true if line.take("*") => CpuItem::Packages(numbers),
            true => CpuItem::InPackages { packages: numbers, cpus: self::numbers(line)? },
        });
        if !line.take(";") {
            break;
        }
    }
    match line.rest().trim_start().is_empty() || line.rest().starts_with(char::is_whitespace) {
        true => Ok(CpuList { items }),
        false => Err(line.expected("\",\", \"-\", \":\", \";\" or a blank")),
    }
}

/// Reads `0,2-3`.
fn numbers(line: &mut Line<'_>) -> Result<CpuSet, HostsError> {
    let mut set = CpuSet::new();
    loop {
        let start = *line;
        let first = line.number_of("a number")?;
        let last = if line.take("-") { line.number_of("the end of the range")? } else { first };
        if last < first {
            return Err(start.expected("a range that ends after its start"));
        }
        if last >= MAX_CPUS {
            return Err(start.expected(&format!("numbers below {MAX_CPUS}")));
        }
        set.insert_range(first, last);
        if !line.take(",") {
            return Ok(set);
        }
    }
}

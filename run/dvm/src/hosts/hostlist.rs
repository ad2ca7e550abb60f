//! The value of `--host`: `a,b:4,node[01-16]:8,user@c,+n0,+e:2`.

use super::scan::{Line, single};
use super::{Host, HostEntry, HostsError, Slots, ranges};

/// Reads a list of hosts; errors call it `option`. `NAME:N` states slots; `NAME:*` and `NAME:auto` leave them to the node; a
/// bare name counts as one mention. Mentions are not joined yet: see [`super::merge_hosts`].
pub fn parse_hosts(option: &str, text: &str) -> Result<Vec<HostEntry>, HostsError> {
    let mut line = single(option, text);
    let mut entries = Vec::new();
    loop {
        line.skip_blanks();
        let start = line;
        entry(&mut line, &mut entries)?;
        start.check_count(entries.len())?;
        line.skip_blanks();
        if line.rest().is_empty() {
            return Ok(entries);
        }
        if !line.take(",") {
            return Err(line.expected("\",\" before the next host"));
        }
    }
}

fn entry(line: &mut Line<'_>, entries: &mut Vec<HostEntry>) -> Result<(), HostsError> {
    if let Some(host) = relative(line)? {
        entries.push(HostEntry { host, slots: Slots::Unstated, max_slots: None, user: None });
        return Ok(());
    }
    let user = user(line)?;
    let names = ranges::names(line)?;
    let slots = match line.take(":") {
        false => Slots::Mentioned(1),
        true => slots(line)?,
    };
    entries.extend(names.into_iter().map(|name| HostEntry {
        host: Host::Name(name),
        slots,
        max_slots: None,
        user: user.clone(),
    }));
    Ok(())
}

/// Reads one node: `a`, `+n0`, `+e:2`.
pub(crate) fn read_host(text: &str) -> Result<Host, HostsError> {
    let mut line = single("host", text);
    let host = match relative(&mut line)? {
        Some(host) => host,
        None => match ranges::names(&mut line)?.as_mut_slice() {
            [name] => Host::Name(std::mem::take(name)),
            _ => return Err(line.expected("one host")),
        },
    };
    if line.rest().is_empty() { Ok(host) } else { Err(line.expected("the end of the host's name")) }
}

/// Reads what may follow the colon after a name.
pub(super) fn slots(line: &mut Line<'_>) -> Result<Slots, HostsError> {
    if line.take("*") || line.take("auto") {
        return Ok(Slots::Unstated);
    }
    let start = *line;
    match line.number_of("a number of slots, * or auto")? {
        0 => Err(start.expected("at least 1 slot")),
        slots => Ok(Slots::Stated(slots)),
    }
}

/// Reads `+n3`, `+e` or `+e:2`, if that comes next.
pub(super) fn relative(line: &mut Line<'_>) -> Result<Option<Host>, HostsError> {
    let start = *line;
    if !line.take("+") {
        return Ok(None);
    }
    if line.take("n") || line.take("N") {
        return line.number_of("the number of a node, as in +n0").map(|index| Some(Host::Index(index)));
    }
    if !line.take("e") && !line.take("E") {
        return Err(start.expected("+n and a number, or +e"));
    }
    match line.take(":") {
        false => Ok(Some(Host::Empty(None))),
        true => line.number_of("a number of nodes, as in +e:2").map(|count| Some(Host::Empty(Some(count)))),
    }
}

/// The characters of account names, including those of Windows domains (`DOMAIN\me$`).
pub(super) fn is_of_account(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$' | '\\')
}

/// Reads `user@`, if that comes next.
pub(super) fn user(line: &mut Line<'_>) -> Result<Option<String>, HostsError> {
    let mut ahead = *line;
    let name = ahead.take_while(is_of_account);
    if !ahead.take("@") {
        return Ok(None);
    }
    // A name that begins with a dash would be an option to the program that logs in.
    if name.is_empty() || name.starts_with('-') {
        return Err(line.expected("an account before the @"));
    }
    *line = ahead;
    Ok(Some(name.to_owned()))
}

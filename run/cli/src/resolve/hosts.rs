//! Which hosts a command line names: `--host`, `--hostfile`, and the files of `--map-by seq` and `rankfile`.
//!
//! The grammars are `phalanx_dvm::hosts`'s. Here files are read, every name for this machine becomes its own name, and
//! any other is refused: for now a job runs on one machine.

use std::net::IpAddr;
use std::path::Path;

use phalanx_dvm::hosts::{
    Host, HostEntry, HostsError, merge_hosts, parse_hostfile, parse_hosts, parse_rankfile, parse_sequence,
    text_of,
};
use phalanx_dvm::map::{MapBy, Policy};

use crate::args::AppArgs;
use crate::failure::Failure;
use crate::resolve::{Here, file};

/// The hosts of one app context; none if it names none.
pub(crate) fn of_app(app: &AppArgs, here: &Here) -> Result<Vec<HostEntry>, Failure> {
    let mut entries = Vec::new();
    if let Some(file) = &app.hostfile {
        let name = file.display().to_string();
        let listed = parse_hostfile(&name, &read("hostfile", file, here)?).map_err(wrong)?;
        if listed.is_empty() {
            return Err(Failure::usage(format!("the hostfile '{name}' names no host")));
        }
        entries = listed;
    }
    if !app.host.is_empty() {
        let named = parse_hosts("--host", &app.host.join(",")).map_err(wrong)?;
        entries = match entries.is_empty() {
            true => named,
            false => only(entries, &named, app)?,
        };
    }
    let place = if app.host.is_empty() { "--hostfile" } else { "--host" };
    entries.iter_mut().try_for_each(|entry| localize(&mut entry.host, place, here))?;
    Ok(merge_hosts(entries))
}

/// Reads the file that the map policy names.
pub(crate) fn read_map_file(policy: &mut Policy, here: &Here) -> Result<(), Failure> {
    let Some(file) = policy.map.file.clone() else { return Ok(()) };
    match policy.map.by {
        Some(MapBy::Sequence) => {
            let mut sequence =
                parse_sequence(&file, &read("sequence", file.as_ref(), here)?).map_err(wrong)?;
            for entry in &mut sequence.entries {
                localize(&mut entry.host, &format!("{file}:{}", entry.line), here)?;
            }
            policy.sequence = Some(sequence);
        }
        _ => {
            let mut rankfile =
                parse_rankfile(&file, &read("rankfile", file.as_ref(), here)?).map_err(wrong)?;
            for entry in rankfile.ranks.values_mut() {
                localize(&mut entry.host, &format!("{file}:{}", entry.line), here)?;
            }
            policy.rankfile = Some(rankfile);
        }
    }
    Ok(())
}

/// With both options, `--host` chooses among the hosts of the hostfile.
fn only(listed: Vec<HostEntry>, named: &[HostEntry], app: &AppArgs) -> Result<Vec<HostEntry>, Failure> {
    let chosen = |entry: &HostEntry, choice: &HostEntry| match (&entry.host, &choice.host) {
        (Host::Name(a), Host::Name(b)) => same_host(a, b),
        (a, b) => a == b,
    };
    if let Some(missing) = named.iter().find(|choice| !listed.iter().any(|entry| chosen(entry, choice))) {
        let file = app.hostfile.as_deref().unwrap_or(Path::new("")).display();
        return Err(Failure::usage(format!("'--host {}' is not in the hostfile '{file}'", missing.host)));
    }
    Ok(listed.into_iter().filter(|entry| named.iter().any(|choice| chosen(entry, choice))).collect())
}

/// Calls this machine by its own name, and refuses any other.
fn localize(host: &mut Host, place: &str, here: &Here) -> Result<(), Failure> {
    match host {
        Host::Name(name) if is_here(name, &here.hostname) => name.clone_from(&here.hostname),
        Host::Index(0) | Host::Empty(_) => {}
        Host::Name(_) | Host::Index(_) => {
            return Err(Failure::usage(format!(
                "hosts other than this one cannot be used yet: '{host}' ({place})"
            ))
            .hint(format!("this one is '{}'; 'localhost' means it too", here.hostname)));
        }
    }
    Ok(())
}

/// Whether two names may be of one host: equal, or one of them is the other without its domain.
fn same_host(a: &str, b: &str) -> bool {
    let is_short_for = |short: &str, long: &str| {
        let domain = long.len() > short.len() && long.as_bytes().get(short.len()) == Some(&b'.');
        domain
            && long.parse::<IpAddr>().is_err()
            && long.get(..short.len()).is_some_and(|l| l.eq_ignore_ascii_case(short))
    };
    a.eq_ignore_ascii_case(b) || is_short_for(a, b) || is_short_for(b, a)
}

fn is_here(name: &str, hostname: &str) -> bool {
    let is_loopback = |name: &str| name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    same_host(name, hostname) || same_host(name, "localhost") || is_loopback(name)
}

fn read(what: &str, file: &Path, here: &Here) -> Result<String, Failure> {
    let cannot = || Failure::new(format!("cannot read the {what} '{}'", file.display()));
    let bytes = file::read(&here.cwd.join(file)).map_err(|e| cannot().because(e))?;
    text_of(&file.display().to_string(), &bytes).map(str::to_owned).map_err(wrong)
}

fn wrong(error: HostsError) -> Failure {
    let place = format!("{}:{}:{}", error.file, error.line, error.column);
    match error.file.starts_with("--") {
        // An option has no lines.
        true => Failure::usage(error.to_string().replacen(
            &place,
            &format!("{} at character {}", error.file, error.column),
            1,
        )),
        false => Failure::usage(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        for name in [
            "n1",
            "N1",
            "n1.cluster.org",
            "localhost",
            "localhost.localdomain",
            "127.0.0.1",
            "127.3.2.1",
            "::1",
        ] {
            assert!(is_here(name, "n1"), "{name}");
        }
        assert!(is_here("n1", "n1.cluster.org"));
        for name in ["n2", "n11", "n", "10.0.0.1", "n1x.org"] {
            assert!(!is_here(name, "n1"), "{name}");
        }
        assert!(!is_here("10", "10.0.0.1"));
    }
}

//! Which hosts a command line names: `--host`, `--hostfile`, and the files of `--map-by seq` and `rankfile`.
//!
//! The grammars are `phalanx_dvm::hosts`'s. Here files are read, and every host gets the one name by which px calls it: this machine its
//! own, a host of an allocation the allocation's, any other that by which it was first called. No name server is asked.

use std::path::Path;

use phalanx_dvm::hosts::{
    Host, HostEntry, HostNames, HostsError, merge_hosts, parse_hostfile, parse_hosts, parse_rankfile,
    parse_sequence, text_of,
};
use phalanx_dvm::map::{MapBy, Policy};

use crate::args::words;
use crate::failure::Failure;
use crate::resolve::allocation::Allocation;
use crate::resolve::{Here, file};

/// The names of the hosts that were mentioned, in the order in which they were.
pub(super) struct Roster<'a> {
    here: &'a Here,
    /// If there is one, no other hosts can be used.
    allocation: Option<&'a Allocation>,
    numbers: HostNames,
    names: Vec<String>,
}

impl<'a> Roster<'a> {
    pub(super) fn new(here: &'a Here, allocation: Option<&'a Allocation>) -> Roster<'a> {
        let mut roster = Roster { here, allocation, numbers: HostNames::default(), names: Vec::new() };
        for entry in allocation.iter().flat_map(|allocation| &allocation.hosts) {
            if let Host::Name(name) = &entry.host {
                roster.add(name.clone());
            }
        }
        roster
    }

    pub(super) fn names(self) -> Vec<String> {
        self.names
    }

    /// The hosts that these two options name; none if they are not given.
    pub(super) fn options(
        &mut self,
        hostfile: Option<&Path>,
        host: &[String],
    ) -> Result<Vec<HostEntry>, Failure> {
        let mut entries = Vec::new();
        if let Some(file) = hostfile {
            let name = file.display().to_string();
            let mut listed = parse_hostfile(&name, &read("hostfile", file, self.here)?).map_err(wrong)?;
            listed.iter_mut().for_each(|entry| self.localize(&mut entry.host));
            if listed.is_empty() {
                return Err(Failure::usage(format!("the hostfile '{name}' names no host")));
            }
            entries = listed;
        }
        let mut place = "--hostfile";
        if !host.is_empty() {
            let mut named = parse_hosts("--host", &host.join(",")).map_err(wrong)?;
            named.iter_mut().for_each(|entry| self.localize(&mut entry.host));
            place = "--host";
            entries = match hostfile {
                None => named,
                Some(file) => only(entries, &named, file)?,
            };
        }
        for entry in &mut entries {
            if let (Some(user), Host::Name(name)) = (&entry.user, &entry.host)
                && *name == self.here.hostname
                && !is_own(user)
            {
                return Err(Failure::usage(format!(
                    "'{user}@{name}' ({place}) is this host, where px runs ranks under its own account"
                ))
                .hint(format!("leave out '{user}@'")));
            }
            self.call(&mut entry.host, place)?;
        }
        Ok(merge_hosts(entries))
    }

    /// Reads the file that the map policy names.
    pub(super) fn map_file(&mut self, policy: &mut Policy) -> Result<(), Failure> {
        let Some(file) = policy.map.file.clone() else { return Ok(()) };
        match policy.map.by {
            Some(MapBy::Sequence) => {
                let mut sequence =
                    parse_sequence(&file, &read("sequence", file.as_ref(), self.here)?).map_err(wrong)?;
                for entry in &mut sequence.entries {
                    self.call(&mut entry.host, &format!("{file}:{}", entry.line))?;
                }
                policy.sequence = Some(sequence);
            }
            _ => {
                let mut rankfile =
                    parse_rankfile(&file, &read("rankfile", file.as_ref(), self.here)?).map_err(wrong)?;
                for entry in rankfile.ranks.values_mut() {
                    self.call(&mut entry.host, &format!("{file}:{}", entry.line))?;
                }
                policy.rankfile = Some(rankfile);
            }
        }
        Ok(())
    }

    /// Calls this machine by its own name.
    fn localize(&self, host: &mut Host) {
        match host {
            Host::Name(name) if self.here.is_called(name) => name.clone_from(&self.here.hostname),
            _ => {}
        }
    }

    /// Gives a host the name by which px calls it.
    fn call(&mut self, host: &mut Host, place: &str) -> Result<(), Failure> {
        self.localize(host);
        let Host::Name(name) = host else { return Ok(()) };
        match (self.numbers.find(name), self.allocation) {
            (Some(number), _) => {
                if let Some(known) = self.names.get(number) {
                    name.clone_from(known);
                }
            }
            (None, None) => self.add(name.clone()),
            (None, Some(allocation)) => {
                return Err(Failure::usage(format!("host '{name}' ({place}) is not in the allocation"))
                    .hint(allocation.describe()));
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String) {
        self.numbers.insert(&name, self.names.len());
        self.names.push(name);
    }
}

/// With both options, `--host` chooses among the hosts of the hostfile.
fn only(listed: Vec<HostEntry>, named: &[HostEntry], file: &Path) -> Result<Vec<HostEntry>, Failure> {
    let names = |entries: &[HostEntry]| {
        let mut names = HostNames::default();
        for (number, entry) in entries.iter().enumerate() {
            if let Host::Name(name) = &entry.host {
                names.insert(name, number);
            }
        }
        names
    };
    let has = |entries: &[HostEntry], names: &HostNames, host: &Host| match host {
        Host::Name(name) => names.find(name).is_some(),
        other => entries.iter().any(|entry| entry.host == *other),
    };
    let of_file = names(&listed);
    if let Some(missing) = named.iter().find(|choice| !has(&listed, &of_file, &choice.host)) {
        let file = file.display();
        return Err(Failure::usage(format!("'--host {}' is not in the hostfile '{file}'", missing.host)));
    }
    let chosen = names(named);
    Ok(listed.into_iter().filter(|entry| has(named, &chosen, &entry.host)).collect())
}

/// Whether an account is that under which px runs.
fn is_own(user: &str) -> bool {
    words::user(user) == Ok(rustix::process::geteuid().as_raw())
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

//! The hosts that a command line names: `--host`, `--hostfile`, and the files of `--map-by seq` and `rankfile`.
//!
//! `phalanx_dvm::hosts` has the grammars. Here files are read, and every host gets a single name: this machine its own, a host of an allocation the
//! allocation's, any other the name by which it was first mentioned. No name server is asked.

use std::path::Path;

use phalanx_dvm::hosts::{
    Host, HostEntry, HostNames, HostsError, Slots, merge_hosts, parse_hostfile, parse_hosts, parse_rankfile,
    parse_sequence, text_of,
};
use phalanx_dvm::map::{MapBy, Policy};

use crate::args::words;
use crate::failure::Failure;
use crate::resolve::allocation::Allocation;
use crate::resolve::{Here, file};

/// The names of the hosts that were mentioned, in that order.
pub(super) struct Roster<'a> {
    here: &'a Here,
    /// With an allocation, no other hosts can be used.
    allocation: Option<&'a Allocation>,
    numbers: HostNames,
    names: Vec<String>,
    listed: Vec<HostEntry>,
}

impl<'a> Roster<'a> {
    pub(super) fn new(here: &'a Here, allocation: Option<&'a Allocation>) -> Roster<'a> {
        let (numbers, names, listed) = (HostNames::default(), Vec::new(), Vec::new());
        let mut roster = Roster { here, allocation, numbers, names, listed };
        for entry in allocation.iter().flat_map(|allocation| &allocation.hosts) {
            if let Host::Name(name) = &entry.host {
                roster.add(name.clone());
            }
        }
        roster
    }

    /// The names, and the hostfile's entries for hosts that `--host` has chosen from it.
    pub(super) fn names(self) -> (Vec<String>, Vec<HostEntry>) {
        (self.names, self.listed)
    }

    /// The hosts that these two options name; empty if neither is given.
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
                Some(file) => self.chosen(&entries, named, file)?,
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

    /// With both options, `--host` chooses hosts from the file, in its own order and with its own numbers of ranks.
    fn chosen(
        &mut self,
        listed: &[HostEntry],
        named: Vec<HostEntry>,
        file: &Path,
    ) -> Result<Vec<HostEntry>, Failure> {
        let mut places = HostNames::default();
        for (place, entry) in listed.iter().enumerate() {
            if let Host::Name(name) = &entry.host {
                places.insert(name, place);
            }
        }
        let find = |host: &Host| match host {
            Host::Name(name) => places.find(name).and_then(|place| listed.get(place)),
            other => listed.iter().find(|entry| entry.host == *other),
        };
        let mut chosen = Vec::with_capacity(named.len());
        for choice in named {
            let known = find(&choice.host).ok_or_else(|| {
                let file = file.display();
                Failure::usage(format!("'--host {}' is not in the hostfile '{file}'", choice.host))
            })?;
            // `NAME:*` means the number of the host's CPUs, whatever the file states.
            if choice.slots != Slots::Unstated {
                let mut known = known.clone();
                self.call(&mut known.host, "--hostfile")?;
                self.listed.push(known);
            }
            chosen.push(HostEntry {
                host: known.host.clone(),
                max_slots: known.max_slots,
                user: choice.user.or_else(|| known.user.clone()),
                ..choice
            });
        }
        Ok(chosen)
    }

    /// Reads the file that the map policy names. For a sequence without one this is the hostfile.
    pub(super) fn map_file(&mut self, policy: &mut Policy, hostfile: Option<&Path>) -> Result<(), Failure> {
        let of_sequence = || {
            let hostfile = hostfile.filter(|_| policy.map.by == Some(MapBy::Sequence))?;
            Some(hostfile.to_string_lossy().into_owned())
        };
        let Some(file) = policy.map.file.clone().or_else(of_sequence) else { return Ok(()) };
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

    /// Replaces any name of this machine by its own.
    fn localize(&self, host: &mut Host) {
        match host {
            Host::Name(name) if self.here.is_called(name) => name.clone_from(&self.here.hostname),
            _ => {}
        }
    }

    /// Replaces a host's name by px's name for it.
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

/// Whether an account is the one under which px runs.
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

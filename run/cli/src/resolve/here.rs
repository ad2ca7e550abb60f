//! px's own surroundings: everything that a request takes from outside the command line.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use phalanx_dvm::hosts::HostNames;
use phalanx_node::link::own_addresses;

use super::Environment;
use crate::background;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(crate) struct Here {
    pub(crate) env: Environment,
    pub(crate) cwd: PathBuf,
    pub(crate) hostname: String,
    /// The path of this px.
    pub(crate) px: Option<PathBuf>,
    /// Whether a job step of Slurm has begun this process, which then ends with it: all that it starts here is accounted for. Called only
    /// where that matters.
    pub(crate) is_in_step: fn() -> bool,
    /// Lists the addresses of this host. Called if the user has named an address.
    pub(crate) addresses: fn() -> Vec<IpAddr>,
}

impl Here {
    pub(crate) fn find() -> Result<Here, Failure> {
        let cwd = std::env::current_dir().map_err(|e| {
            Failure::new("cannot tell the working directory").because(e).hint("cd to one that exists")
        })?;
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let addresses = || own_addresses().unwrap_or_default().into_iter().map(|own| own.address).collect();
        Ok(Here {
            env: std::env::vars_os().collect(),
            cwd,
            hostname,
            px: std::env::current_exe().ok(),
            // In the background it leaves the step where that is known by ancestry only.
            is_in_step: || !background::is_here() && has_ancestor("slurmstepd"),
            addresses,
        })
    }

    /// Whether `name` means this host.
    pub(super) fn is_called(&self, name: &str) -> bool {
        if let Ok(address) = name.parse::<IpAddr>() {
            return address.is_loopback() || name == self.hostname || (self.addresses)().contains(&address);
        }
        let mut own = HostNames::default();
        own.insert(&self.hostname, 0);
        own.insert("localhost", 0);
        own.find(name).is_some()
    }

    /// The value of a variable, if it is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().find(|(key, _)| key == OsStr::new(name));
        found.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty())
    }

    /// Whether PATH has a program of this name.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let is_program = |path: &Path| {
            std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        };
        let path = self.env.iter().find(|(key, _)| key == OsStr::new("PATH"));
        path.is_some_and(|(_, path)| std::env::split_paths(path).any(|dir| is_program(&dir.join(name))))
    }
}

/// Whether this process descends from one of this name.
fn has_ancestor(name: &str) -> bool {
    let up = |(_, parent): &(String, u32)| named(*parent);
    std::iter::successors(named(std::process::id()), up).skip(1).any(|(found, _)| found == name)
}

/// The name of a process, and its parent.
fn named(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything; the fields after it are the state, and the parent.
    let (before, after) = stat.rsplit_once(')')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some((before.split_once('(')?.1.to_owned(), parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(hostname: &str) -> Here {
        let addresses = || vec!["10.77.0.1".parse().expect("one"), "fd77::1".parse().expect("one")];
        Here {
            env: Vec::new(),
            cwd: "/".into(),
            hostname: hostname.to_owned(),
            px: None,
            is_in_step: || false,
            addresses,
        }
    }

    #[test]
    fn this_machine_has_many_names() {
        let here = called("n1");
        for name in [
            "n1",
            "N1",
            "n1.cluster.org",
            "localhost",
            "localhost.localdomain",
            "127.0.0.1",
            "127.3.2.1",
            "::1",
            "10.77.0.1",
            "fd77:0::1",
        ] {
            assert!(here.is_called(name), "{name}");
        }
        assert!(called("n1.cluster.org").is_called("n1"));
        for name in ["n2", "n11", "n", "10.0.0.1", "n1x.org", "fd77::2"] {
            assert!(!here.is_called(name), "{name}");
        }
        assert!(!called("10.0.0.1").is_called("10"));
    }

    #[test]
    fn programs_are_found_in_path() {
        let mut here = called("n1");
        assert!(!here.has_program("sh"));
        here.env = vec![("PATH".into(), "/nowhere:/bin".into())];
        assert!(here.has_program("sh"));
        assert!(!here.has_program("no-such-program"));
    }
}

//! One host of a cluster: running commands on it, and disturbing it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::roles::JOIN;
use crate::wait::until;

#[derive(Debug)]
pub struct Host {
    name: String,
    number: usize,
    networks: usize,
    /// Its process 1, by its pid on this machine.
    pid: u32,
    /// The process that holds the switch.
    switch: u32,
    program: PathBuf,
}

impl Host {
    pub(crate) fn new(
        name: &str,
        number: usize,
        networks: usize,
        [pid, switch]: [u32; 2],
        program: &Path,
    ) -> Host {
        Host { name: name.to_owned(), number, networks, pid, switch, program: program.to_owned() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address in the first network.
    pub fn ipv4(&self) -> Ipv4Addr {
        self.ipv4_in(0)
    }

    pub fn ipv6(&self) -> Ipv6Addr {
        self.ipv6_in(0)
    }

    /// Its address on `eth0`, `eth1` ...
    pub fn ipv4_in(&self, network: usize) -> Ipv4Addr {
        ipv4(network, self.number)
    }

    pub fn ipv6_in(&self, network: usize) -> Ipv6Addr {
        ipv6(network, self.number)
    }

    /// A command that runs on this host, in the current directory if the host has it. The process that it starts represents the one on
    /// the host: signals are forwarded, both end together, and killing it kills the other.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = join(&self.program, self.pid);
        command.arg(program);
        // These variables describe the machine, not the host.
        for variable in ["TMPDIR", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command to its end; returns its output, or why it failed.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let (program, rest) = words.split_first().context("no command was named")?;
        finish(self.command(program).args(rest), &format!("{} on {}", words.join(" "), self.name))
    }

    /// Its network, for threads of ours to enter.
    pub(crate) fn network(&self) -> Result<File> {
        let path = format!("/proc/{}/ns/net", self.pid);
        File::open(path).with_context(|| format!("the host {} is gone", self.name))
    }

    /// A file of this host, by its path outside of the host.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid)).join(path.trim_start_matches('/'))
    }

    /// Disconnects the host by unplugging its cables from the switches. It keeps its addresses and can notice only by silence.
    pub fn cut(&self) -> Result<()> {
        (0..self.networks).try_for_each(|network| self.cut_from(network))
    }

    /// Plugs the cables back in.
    pub fn rejoin(&self) -> Result<()> {
        (0..self.networks).try_for_each(|network| self.plug(network, "up"))
    }

    /// Disconnects the host from one of several networks.
    pub fn cut_from(&self, network: usize) -> Result<()> {
        self.plug(network, "down")
    }

    fn plug(&self, network: usize, state: &str) -> Result<()> {
        let cable = cable(&self.name, network);
        let words = ["link", "set", &cable, state];
        let mut command = join(&self.program, self.switch);
        finish(command.arg("/usr/sbin/ip").args(words), &format!("ip {}", words.join(" "))).map(drop)
    }

    /// Moves the calling thread, and threads that it starts, into the network of this host: their sockets are those of a process there.
    pub fn enter_network(&self) -> Result<()> {
        let network = self.network()?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("entering the network of {}", self.name))
    }

    /// Stops all processes of the host, and returns when they have stopped.
    pub fn freeze(&self) -> Result<()> {
        // Processes that were not stopped yet may have forked.
        until(&format!("all processes of {} have stopped", self.name), || {
            let running: Vec<u32> = self.processes().into_iter().filter(|&pid| !has_stopped(pid)).collect();
            for pid in &running {
                signal(*pid, Signal::STOP);
            }
            running.is_empty()
        })
    }

    /// Resumes all processes of the host.
    pub fn thaw(&self) -> Result<()> {
        for pid in self.processes() {
            signal(pid, Signal::CONT);
        }
        Ok(())
    }

    /// The living processes of this host, by their pids on this machine, including those in namespaces created on the host.
    pub fn processes(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let root = fs::read_link(format!("/proc/{}/ns/pid", self.pid)).ok();
        pids.filter(|&pid| root.is_some() && self.has(pid, root.as_deref())).collect()
    }

    fn has(&self, pid: u32, namespace: Option<&Path>) -> bool {
        let own = fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let lives = !matches!(state(pid), None | Some('Z' | 'X'));
        // A child of `unshare` on the host is in a descendant of the host's process namespace: its ancestors are in the host's.
        lives
            && (own.as_deref() == namespace
                || parent(pid).is_some_and(|up| up > 1 && up != pid && self.has(up, namespace)))
    }
}

fn join(program: &Path, pid: u32) -> Command {
    let mut command = Command::new(program);
    command.args([JOIN, &pid.to_string()]);
    command
}

pub(crate) fn finish(command: &mut Command, what: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {what}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what} failed ({}): {}", output.status, why.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn host_name(number: usize) -> String {
    format!("n{number}")
}

/// The switch end of a host's cable.
pub(crate) fn cable(host: &str, network: usize) -> String {
    format!("{host}-{network}")
}

pub(crate) fn ipv4(network: usize, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(network).unwrap_or(u8::MAX), u8::try_from(number).unwrap_or(u8::MAX))
}

pub(crate) fn ipv6(network: usize, number: usize) -> Ipv6Addr {
    let [network, number] = [network, number].map(|part| u16::try_from(part).unwrap_or(u16::MAX));
    Ipv6Addr::new(0xfd77, 0, 0, network, 0, 0, 0, number)
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn has_stopped(pid: u32) -> bool {
    // A process that has ended does not run either. When the first thread is seen stopped, all have stopped or soon will.
    matches!(state(pid), None | Some('T' | 't' | 'Z' | 'X'))
}

fn state(pid: u32) -> Option<char> {
    stat(pid).map(|(state, _)| state)
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, even parentheses.
    let mut rest = text[text.rfind(')')? + 1..].split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

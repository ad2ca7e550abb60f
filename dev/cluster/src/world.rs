//! Process 1 of a cluster: creates switches and hosts, reports them, and ends with the process that started it.
//!
//! All files that it writes are in one in-memory file system at `/run`, which is invisible outside.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::cluster::in_new_namespaces;
use crate::debian::debian_file;
use crate::host::{cable, host_name, ipv4, ipv6};
use crate::roles::{HOST, word};

/// The hosts' directories until each host has mounted its own.
pub(crate) const PLACE: &str = "/run/cluster";

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let hosts: usize = word(arguments, 0)?.parse().context("reading the number of hosts")?;
    let networks: usize = word(arguments, 1)?.parse().context("reading the number of networks")?;
    make_place(hosts, &arguments[2..])?;
    rustix::system::sethostname(b"switch").context("setting the name of the switch")?;
    ip("link set lo up")?;
    for network in 0..networks {
        // Otherwise a new port carries nothing for two forward delays; and with snooping, neighbours are not found in time.
        ip(&format!("link add switch{network} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"))?;
        ip(&format!("link set switch{network} up"))?;
    }
    let started: Vec<Starting> = (1..=hosts).map(Starting::begin).collect::<Result<_>>()?;
    let own = fs::read_link(Path::new(PLACE).join("proc/self")).context("reading our process id")?;
    let mut said = String::new();
    let mut lives = Vec::new();
    for starting in started {
        let name = starting.name.clone();
        let (pid, life) = starting.finish(networks).with_context(|| format!("starting the host {name}"))?;
        said.push_str(&format!("host {name} {pid} {}\n", own.display()));
        lives.push(life);
    }
    said.push_str("ready\n");
    std::io::stdout().write_all(said.as_bytes()).context("reporting the hosts")?;
    // No data comes: this waits for the end of the pipe, which signals the end of the cluster.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// Creates directories and files of the hosts, and the shared ones. `/proc` becomes ours; the machine's remains readable at
/// `PLACE/proc`, where a process sees its pid outside.
fn make_place(hosts: usize, shared: &[OsString]) -> Result<()> {
    let open = |path: &OsString| File::open(path).with_context(|| format!("opening {}", path.display()));
    let shared: Vec<(&OsString, File)> =
        shared.iter().map(|path| Ok((path, open(path)?))).collect::<Result<_>>()?;
    let place = Path::new(PLACE);
    mount("cluster", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")
        .context("mounting a file system in memory at /run")?;
    directory(&place.join("proc"), 0o755)?;
    directory(&place.join("shared"), 0o755)?;
    let mut list = Vec::new();
    for (number, (path, file)) in shared.iter().enumerate() {
        let at = place.join(format!("shared/{number}"));
        directory(&at, 0o755)?;
        mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), &at)
            .with_context(|| format!("sharing {}", path.display()))?;
        list.extend_from_slice(path.as_encoded_bytes());
        list.push(0);
    }
    write(&place.join("shared/list"), &list, 0o644)?;
    mount_bind_recursive("/proc", place.join("proc")).context("keeping /proc of the machine")?;
    mount("proc", "/proc", "proc", MountFlags::empty(), None).context("mounting /proc")?;

    let mut table = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    for number in 1..=hosts {
        let name = host_name(number);
        table.push_str(&format!("{} {name}\n{} {name}\n", ipv4(0, number), ipv6(0, number)));
    }
    let shadow = fs::read_to_string("/etc/shadow").unwrap_or_default();
    for number in 1..=hosts {
        let host = place.join(host_name(number));
        for (name, mode) in
            [("tmp", 0o1777), ("shm", 0o1777), ("run", 0o755), ("ssh", 0o755), ("slurm", 0o755)]
        {
            directory(&host.join(name), mode)?;
        }
        for (name, mode) in [("run/lock", 0o1777), ("run/sshd", 0o755), ("run/munge", 0o755)] {
            directory(&host.join(name), mode)?;
        }
        write(&host.join("hosts"), table.as_bytes(), 0o644)?;
        write(&host.join("hostname"), format!("{}\n", host_name(number)).as_bytes(), 0o644)?;
        write(&host.join("shadow"), unlocked(&shadow).as_bytes(), 0o600)?;
    }
    Ok(())
}

/// sshd refuses locked accounts, such as root's on some systems, even with keys. The unlocked ones still have no password.
fn unlocked(shadow: &str) -> String {
    let line = |line: &str| match line.split_once(":!") {
        Some((name, rest)) if !name.contains(':') => {
            let end = rest.find(':').unwrap_or(rest.len());
            format!("{name}:*{}\n", &rest[end..])
        }
        _ => format!("{line}\n"),
    };
    shadow.lines().map(line).collect()
}

/// A host whose namespaces are being created.
struct Starting {
    name: String,
    number: usize,
    unshare: Child,
    said: BufReader<std::process::ChildStdout>,
    life: ChildStdin,
}

impl Starting {
    fn begin(number: usize) -> Result<Starting> {
        let name = host_name(number);
        let program = std::env::current_exe().context("finding our own program")?;
        let mut unshare = in_new_namespaces()?
            .arg(program)
            .args([HOST, &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting the host {name}"))?;
        let pipes = unshare.stdout.take().zip(unshare.stdin.take());
        let (said, life) = pipes.context("no pipes to the host")?;
        Ok(Starting { name, number, unshare, said: BufReader::new(said), life })
    }

    /// Connects it to the switch. Returns its pid as seen by the machine, and the pipe that keeps it alive.
    fn finish(mut self, networks: usize) -> Result<(u32, ChildStdin)> {
        let pid = self.hear()?.parse().context("reading its process id")?;
        // `unshare` is in the new network namespace itself.
        let (name, there) = (&self.name, self.unshare.id());
        let mut line = String::new();
        for network in 0..networks {
            let cable = cable(name, network);
            ip(&format!("link add {cable} type veth peer name eth{network} netns {there}"))?;
            ip(&format!("link set {cable} master switch{network} up"))?;
            line.push_str(&format!("{} {} ", ipv4(network, self.number), ipv6(network, self.number)));
        }
        line.push('\n');
        self.life.write_all(line.as_bytes()).context("telling it its addresses")?;
        let ready = self.hear()?;
        ensure!(ready == "ready", "it says {ready:?}");
        Ok((pid, self.life))
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        self.said.read_line(&mut line).context("reading what it says")?;
        ensure!(line.ends_with('\n'), "it has ended");
        Ok(line.trim_end().to_owned())
    }
}

/// Runs `ip` with these arguments.
pub(crate) fn ip(words: &str) -> Result<()> {
    let output = Command::new(debian_file("/usr/sbin/ip", "iproute2")?)
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .context("running ip")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {words}: {}", why.trim());
    Ok(())
}

fn directory(path: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

fn write(path: &PathBuf, bytes: &[u8], mode: u32) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_accounts_get_no_password_but_are_not_locked() {
        let shadow = "root:!:19000:0:::::\na:!$6$x$y:19000:0:::::\nb:*:1::::::\nc:$6$!z:1:::!:::\n";
        let expected = "root:*:19000:0:::::\na:*:19000:0:::::\nb:*:1::::::\nc:$6$!z:1:::!:::\n";
        assert_eq!(unlocked(shadow), expected);
    }
}

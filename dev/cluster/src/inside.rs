//! Process 1 of a host: mounts the host's own files in their usual places, brings the network up, and stays.
//!
//! It adopts orphans; the kernel removes them when they end, because it ignores SIGCHLD.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive};

use crate::host::host_name;
use crate::join::ignore_children;
use crate::roles::word;
use crate::world::{PLACE, ip};

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let number: usize = word(arguments, 0)?.parse().context("reading the number of the host")?;
    let name = host_name(number);
    let outside = fs::read_link(Path::new(PLACE).join("proc/self")).context("reading our process id")?;
    say(&outside.display().to_string())?;
    rustix::system::sethostname(name.as_bytes()).context("setting the name of the host")?;
    take_files(&Path::new(PLACE).join(&name))?;
    let mut addresses = String::new();
    std::io::stdin().lock().read_line(&mut addresses).context("reading our addresses")?;
    connect(addresses.trim_end())?;
    ignore_children();
    say("ready")?;
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

fn say(line: &str) -> Result<()> {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).context("speaking to the cluster")
}

/// Covers the machine's files with the host's own, where the machine has them.
fn take_files(own: &Path) -> Result<()> {
    let shared = open_shared()?;
    let places = [
        ("tmp", "/tmp"),
        ("shm", "/dev/shm"),
        ("hosts", "/etc/hosts"),
        ("hostname", "/etc/hostname"),
        ("shadow", "/etc/shadow"),
        ("ssh", "/etc/ssh"),
        ("slurm", "/etc/slurm"),
    ];
    for (name, place) in places.into_iter().filter(|(_, place)| Path::new(place).exists()) {
        mount_bind(own.join(name), place).with_context(|| format!("mounting our own {place}"))?;
    }
    // ssh should use the cluster's keys and configuration, not the user's.
    let home = std::env::home_dir().unwrap_or_default();
    let ssh = home.join(".ssh");
    if ssh.is_dir() {
        mount("ssh", &ssh, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=700")
            .with_context(|| format!("hiding {}", ssh.display()))?;
    }
    // The user's shell startup files may be slow, and leave locks behind when the shell is killed.
    for begin in SHELL_FILES.map(|name| home.join(name)).iter().filter(|file| file.is_file()) {
        mount_bind("/dev/null", begin).with_context(|| format!("hiding {}", begin.display()))?;
    }
    // Last, because it hides all the others.
    mount_bind(own.join("run"), "/run").context("mounting our own /run")?;
    for (path, file) in shared {
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), &path)
            .with_context(|| format!("sharing {}", path.display()))?;
    }
    mount("proc", "/proc", "proc", MountFlags::empty(), None).context("mounting /proc")
}

/// The shared directories that would otherwise be hidden.
fn open_shared() -> Result<Vec<(PathBuf, File)>> {
    let place = Path::new(PLACE).join("shared");
    let list = fs::read(place.join("list")).context("reading what is shared")?;
    let mut shared = Vec::new();
    for (number, path) in list.split(|&byte| byte == 0).enumerate().filter(|(_, path)| !path.is_empty()) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        if ["/tmp", "/run", "/dev/shm"].iter().any(|hidden| path.starts_with(hidden)) {
            let at = place.join(number.to_string());
            shared.push((path, File::open(&at).with_context(|| format!("opening {}", at.display()))?));
        }
    }
    Ok(shared)
}

/// The words are one address of each family per network.
fn connect(addresses: &str) -> Result<()> {
    let words: Vec<&str> = addresses.split_whitespace().collect();
    ensure!(!words.is_empty() && words.len().is_multiple_of(2), "the cluster gave us no addresses");
    ip("link set lo up")?;
    for (network, pair) in words.chunks(2).enumerate() {
        ip(&format!("address add {}/24 dev eth{network}", pair[0]))?;
        // No other host can have the address: duplicate detection would take a second.
        ip(&format!("address add {}/64 dev eth{network} nodad", pair[1]))?;
        ip(&format!("link set eth{network} up"))?;
    }
    Ok(())
}

/// Files that shells read even without a login at a terminal.
const SHELL_FILES: [&str; 4] = [".bashrc", ".zshenv", ".cshrc", ".tcshrc"];

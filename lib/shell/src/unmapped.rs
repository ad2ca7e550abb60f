//! Users of other user namespaces. The kernel shows all of them under one number, which a user of this namespace may have as well.
//!
//! Where our own user has that number (a rootless container often runs as `nobody`), the number identifies no user. There a socket is
//! ours only if a process that the kernel lets us inspect has it open; the processes of other users cannot be inspected.

use std::fs;
use std::path::PathBuf;

use rustix::process::geteuid;

/// No user has this number.
pub(crate) const STRANGER: u32 = u32::MAX;

/// The number that stands for users outside of this namespace, if there are any.
pub(crate) fn unmapped_user() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    if knows_all(&map) {
        return None;
    }
    fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

/// Whether this user namespace has a user of this number.
pub(crate) fn is_mapped(uid: u32) -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().unwrap_or(0));
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        first.zip(count).is_some_and(|(first, count)| uid >= first && uid - first < count)
    })
}

/// Whether root is mapped into this namespace under any number.
pub(crate) fn knows_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.lines().any(|line| line.split_ascii_whitespace().nth(1) == Some("0"))
}

/// The uid of our own user, if users of other namespaces may appear under it.
pub(crate) fn shared_user() -> Option<u32> {
    unmapped_user().filter(|user| *user == geteuid().as_raw())
}

/// Whether a process that we may inspect has this socket open.
pub(crate) fn is_held_here(inode: u64) -> bool {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut open = processes
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .flat_map(|process| fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten());
    open.any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
}

/// Whether the kernel lets us inspect this process.
pub(crate) fn is_open(pid: u32) -> bool {
    pid != 0 && fs::read_dir(format!("/proc/{pid}/fd")).is_ok()
}

/// Each line of a map has the first number inside, the first outside, and the count.
fn knows_all(map: &str) -> bool {
    map.lines().any(|line| line.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn namespaces_that_know_everybody_have_no_unmapped_user() {
        assert!(knows_all("         0          0 4294967295\n"));
        assert!(!knows_all("     65534       4242          1\n"));
        assert!(!knows_all(""));
    }

    #[test]
    fn own_sockets_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let inode = fs::metadata(format!("/proc/self/fd/{descriptor}")).unwrap().ino();
        assert!(is_held_here(inode));
        drop(listener);
        assert!(!is_held_here(inode));
        assert!(is_open(std::process::id()) && !is_open(0));
    }
}

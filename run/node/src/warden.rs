//! The warden: a child of the launcher that does nothing until the launcher is gone, and then leaves nothing behind.
//!
//! It is forked before the launcher has threads or much memory, never execs, has a session of its own, and waits for the end of a pipe whose other
//! end only the launcher holds. The process groups that it has to kill stand in memory that both share, so a launch costs no message. Processes that
//! have left their group are found by the marker in the environment of every process of a session. After an orderly end the launcher dismisses the
//! warden, which then has nothing to do.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group, test_kill_process_group,
    waitpid,
};

use crate::pulse::{LOOK, Pulse, Watch};
use crate::session::{self, Lock, Place};
use crate::strays::{self, WARDEN};

/// The launcher's side.
#[derive(Debug)]
pub(crate) struct Warden {
    pid: Pid,
    groups: Groups,
    pulse: Pulse,
    /// Never written to: only its end counts.
    _alive: OwnedFd,
}

impl Warden {
    /// Forks it. The process must have one thread. `is_watched`: it is killed if it stands still for longer than it ever should.
    pub(crate) fn fork(place: &Place, lock: &Lock, is_watched: bool) -> io::Result<Warden> {
        let (alive_here, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        let (groups, pulse) = (Groups::new()?, Pulse::new()?);
        let launcher = getpid();
        // SAFETY: the process has one thread (this function's contract), so the child finds no lock taken by a thread
        // that it does not have. It never returns from `guard`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(alive);
                let watch = is_watched.then(|| pulse.watch());
                guard(&alive_here, lock, place, &groups, |alive| wait_for_the_end(alive, launcher, watch))
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::Other)?;
                Ok(Warden { pid, groups, pulse, _alive: alive })
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse
    }

    /// Ends it before it can do anything.
    pub(crate) fn dismiss(&self) {
        if kill_process(self.pid, Signal::KILL).is_ok() {
            while let Err(Errno::INTR) = waitpid(Some(self.pid), WaitOptions::empty()) {}
        }
    }
}

/// Numbers that this process and those that it forks share, all 0 at first.
pub(crate) fn shared_memory(numbers: usize) -> io::Result<&'static [AtomicI32]> {
    let length = numbers * size_of::<AtomicI32>();
    // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing that exists.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is `length` bytes of zeros, aligned to a page, never unmapped, and from here on reached
    // only through atomics, in this process and in the warden.
    Ok(unsafe { std::slice::from_raw_parts(page.cast::<AtomicI32>(), numbers) })
}

/// The process groups to kill, in memory that the launcher writes and the warden reads. Negative: groups that get SIGTERM first.
#[derive(Debug)]
pub(crate) struct Groups {
    slots: &'static [AtomicI32],
    free: Vec<u32>,
    used: u32,
}

/// The place of a group in [`Groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSlot(Option<u32>);

impl Groups {
    fn new() -> io::Result<Groups> {
        Ok(Groups { slots: shared_memory(SLOTS)?, free: Vec::new(), used: 0 })
    }

    /// A group beyond the capacity is found by the search for the marker.
    pub(crate) fn add(&mut self, group: Pid, is_asked: bool) -> GroupSlot {
        let at = self.free.pop().unwrap_or(self.used);
        let Some(slot) = self.slots.get(at as usize) else { return GroupSlot(None) };
        self.used = self.used.max(at + 1);
        let group = group.as_raw_pid();
        slot.store(if is_asked { -group } else { group }, Ordering::Release);
        GroupSlot(Some(at))
    }

    pub(crate) fn remove(&mut self, slot: GroupSlot) {
        if let Some(at) = slot.0
            && let Some(slot) = self.slots.get(at as usize)
        {
            slot.store(0, Ordering::Release);
            self.free.push(at);
        }
    }

    /// The groups that get SIGTERM first, or the others.
    fn listed(&self, are_asked: bool) -> impl Iterator<Item = Pid> {
        let numbers = self.slots.iter().map(|slot| slot.load(Ordering::Acquire));
        let wanted = numbers.filter(move |number| (*number < 0) == are_asked);
        wanted.filter_map(|number| Pid::from_raw(number.checked_abs()?))
    }

    fn kill(&self, are_asked: bool) {
        for group in self.listed(are_asked) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Sends SIGTERM to the groups that get it first, and waits for a moment.
    fn ask(&self) {
        for group in self.listed(true) {
            let _ = kill_process_group(group, Signal::TERM);
        }
        let mut rounds = (0..ASKED_ROUNDS)
            .take_while(|_| self.listed(true).any(|group| test_kill_process_group(group).is_ok()));
        rounds.by_ref().for_each(|_| std::thread::sleep(ASKED_PAUSE));
    }
}

/// The life of the warden.
fn guard(
    alive: &OwnedFd,
    lock: &Lock,
    place: &Place,
    groups: &Groups,
    wait: impl FnOnce(BorrowedFd<'_>),
) -> ! {
    retire_from_the_terminal();
    let [alive, lock, parent] = keep_only([alive.as_fd(), lock.as_fd(), place.parent().as_fd()]);
    let (lock, place) = (Lock::of(lock), place.with_parent(parent));
    // Sessions that have lost both their launcher and their warden.
    for (abandoned, lock) in place.abandoned() {
        finish(&abandoned, &lock, || 0);
    }
    wait(alive.as_fd());
    groups.kill(false);
    groups.ask();
    finish(&place, &lock, || {
        groups.kill(false);
        groups.kill(true);
        0
    });
    // SAFETY: ends the process at once, without the handlers and buffers that belong to the launcher.
    unsafe { libc::_exit(0) }
}

/// Keeps signals to the launcher's terminal, group or name away from the warden.
fn retire_from_the_terminal() {
    let _ = rustix::process::setsid();
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: ignoring a signal installs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = rustix::thread::set_name(c"phalanx-warden");
    overwrite_command_line();
    let _ = rustix::process::chdir("/");
}

/// Shows another command line in /proc, so that `pkill -f` of the launcher's does not hit the warden.
fn overwrite_command_line() {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // The second field is the name in parentheses, which may hold anything; 48 and 49 are the bounds of argv.
    let Some((_, rest)) = stat.rsplit_once(')') else { return };
    let mut bounds = rest.split_whitespace().skip(45).map_while(|field| field.parse::<usize>().ok());
    let (Some(start), Some(end)) = (bounds.next(), bounds.next()) else { return };
    if start == 0 || end <= start || end - start > 1 << 20 {
        return;
    }
    // SAFETY: the kernel says that these bytes of this process are the strings of argv: they lie on the initial
    // stack, are writable, and nothing in this process reads or borrows them while it runs `guard`.
    let shown = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    shown.fill(0);
    for (to, from) in shown.iter_mut().zip(WARDEN.as_bytes()) {
        *to = *from;
    }
}

/// Closes all other descriptors, and puts the null device on the standard streams: a pipe that takes the launcher's output must end with the
/// launcher.
fn keep_only(fds: [BorrowedFd<'_>; 3]) -> [OwnedFd; 3] {
    let kept: [RawFd; 3] = [3, 4, 5];
    // SAFETY: this process runs nothing but `guard`, which uses and owns only the numbers returned here; the duplicates above 10 keep them from being
    // overwritten before they are moved; all other descriptors that are closed have no user any more.
    unsafe {
        let high = fds.map(|fd| libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, 10));
        for (from, to) in high.into_iter().zip(kept) {
            libc::dup2(from, to);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for to in 0..3 {
            libc::dup2(null, to);
        }
        if libc::syscall(libc::SYS_close_range, 6 as libc::c_uint, libc::c_uint::MAX, 0) != 0 {
            let limit =
                rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(65_536);
            for fd in 6..RawFd::try_from(limit.min(65_536)).unwrap_or(RawFd::MAX) {
                libc::close(fd);
            }
        }
        kept.map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Waits until the launcher is gone, or kills it because it has stood still for too long.
fn wait_for_the_end(alive: BorrowedFd<'_>, launcher: Pid, mut watch: Option<Watch>) {
    let look = watch.as_ref().map(|_| Timespec { tv_sec: LOOK.as_secs() as i64, tv_nsec: 0 });
    loop {
        match poll(&mut [PollFd::new(&alive, PollFlags::IN)], look.as_ref()) {
            Ok(0) if watch.as_mut().is_some_and(Watch::look) => break,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
    // A launcher that is gone is not our parent any more.
    if getppid() == Some(launcher) {
        let _ = kill_process(launcher, Signal::KILL);
    }
}

/// Kills what is left of a session, and removes its files.
fn finish(place: &Place, lock: &Lock, kill_known: impl Fn() -> usize) {
    strays::kill_all(session::marker(place).as_bytes(), kill_known);
    session::clear(place, lock);
}

const SLOTS: usize = 16_384;
/// Enough for `srun` to cancel its step.
const ASKED_ROUNDS: u32 = 150;
const ASKED_PAUSE: Duration = Duration::from_millis(10);

//! What this process inherited from its parent, made safe before anything else happens.
//!
//! The first socket would take the number of a closed standard descriptor; descriptors that the parent left open would leak into every rank; a
//! blocked or ignored signal would break waiting for children. Nothing here decides anything about jobs. Next: [`crate::Session::begin`].

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What ranks get back as we found it.
#[derive(Clone, Debug)]
pub struct Inherited {
    /// The limit of open files, if we raised ours.
    open_files: Option<Rlimit>,
}

impl Inherited {
    /// Puts the process in order. Must be called first in `main`, before a thread exists or a file is opened.
    pub fn take() -> Result<Inherited> {
        open_standard_descriptors().context("cannot open /dev/null in place of a closed standard stream")?;
        close_leaked_ends();
        keep_descriptors_from_children();
        unblock_all_signals();
        survive_file_limits();
        keep_some_memory();
        Ok(Inherited { open_files: raise_open_files() })
    }

    /// The soft and hard limit of open files to restore in ranks, as the kernel takes them.
    pub(crate) fn open_files(&self) -> Option<[u64; 2]> {
        let limit = self.open_files.as_ref()?;
        Some([limit.current, limit.maximum].map(|n| n.unwrap_or(u64::MAX)))
    }
}

/// Lets SIGINT and SIGQUIT end this process again if they were ignored when it was started. Shells do that for what scripts put into the background,
/// but a signal sent to us is meant for us. Must be called before a thread exists.
pub fn heed_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT].into_iter().filter(|signal| is_ignored(*signal)) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all-zero bytes are a valid `sigaction` without flags; the default is no function of ours.
        unsafe {
            (*action.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, action.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// Records the sender of SIGTERM for [`terminated_by`]. Must be called before other code handles SIGTERM: its handler calls this one.
pub(crate) fn note_who_terminates() {
    extern "C" fn note(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: a handler with `SA_SIGINFO` is given the kernel's data on the signal, or nothing; a code of 0 or less means that a process has sent
        // it, and then the data has a pid.
        let sender = unsafe { info.as_ref().filter(|info| info.si_code <= 0).map(|info| info.si_pid()) };
        if let Some(sender) = sender {
            TERMINATED_BY.store(sender, Ordering::Release);
        }
    }
    if disposition(libc::SIGTERM) != Some(libc::SIG_DFL) {
        return;
    }
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = note;
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero bytes are a valid `sigaction`; the handler only writes a number, so it may run at any time.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler as libc::sighandler_t;
        (*action.as_mut_ptr()).sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGTERM, action.as_ptr(), std::ptr::null_mut());
    }
}

/// The process that last sent us SIGTERM.
pub fn terminated_by() -> Option<u32> {
    u32::try_from(TERMINATED_BY.load(Ordering::Acquire)).ok().filter(|pid| *pid > 0)
}

/// Makes [`is_to_stop`] known from now on. Must be called before other handlers of SIGTSTP and SIGCONT are installed: these call this one.
pub(crate) fn note_stops() {
    extern "C" fn note(signal: libc::c_int) {
        TO_STOP.store(signal == libc::SIGTSTP, Ordering::Release);
    }
    for signal in [libc::SIGTSTP, libc::SIGCONT] {
        if !matches!(disposition(signal), Some(libc::SIG_DFL | libc::SIG_IGN)) {
            continue;
        }
        let handler: extern "C" fn(libc::c_int) = note;
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all-zero bytes are a valid `sigaction`; the handler only writes a flag, so it may run at any time.
        unsafe {
            (*action.as_mut_ptr()).sa_sigaction = handler as libc::sighandler_t;
            (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, action.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// Whether SIGTSTP came after the last SIGCONT. Each takes back the other.
pub(crate) fn is_to_stop() -> bool {
    TO_STOP.load(Ordering::Acquire)
}

/// Whether a signal is ignored, and so should stay ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    disposition(signal) == Some(libc::SIG_IGN)
}

/// The signals that have a handler in this process, as a bit set (bit 0 is signal 1).
pub(crate) fn handled_signals() -> u64 {
    (1..=64).fold(0, |set, signal| match disposition(signal) {
        Some(libc::SIG_DFL | libc::SIG_IGN) | None => set,
        Some(_) => set | 1 << (signal - 1),
    })
}

fn disposition(signal: i32) -> Option<libc::sighandler_t> {
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null second argument the call only fills `current`, which has the right type; all-zero bytes are
    // a valid `sigaction`, so reading it is fine even if the call refused the number.
    unsafe {
        match libc::sigaction(signal, std::ptr::null(), current.as_mut_ptr()) {
            0 => Some(current.assume_init().sa_sigaction),
            _ => None,
        }
    }
}

fn open_standard_descriptors() -> io::Result<()> {
    for fd in 0..3 {
        if is_open(fd) {
            continue;
        }
        let opened = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
        // The lowest free number is the closed one, since those below are open.
        std::mem::forget(opened);
    }
    Ok(())
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: F_GETFD takes no pointer and answers EBADF for a number that is not open.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}

/// Our end of the pipe whose other end the process that started this one holds open for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepalivePipe {
    /// Named by the standard.
    ReadEnd(RawFd),
    /// Named by OpenPMIx's library.
    WriteEnd(RawFd),
}

impl KeepalivePipe {
    /// The pipe in `PMIX_KEEPALIVE_PIPE`; a number of no pipe is ignored.
    pub fn of_environment() -> Option<KeepalivePipe> {
        let fd = std::env::var("PMIX_KEEPALIVE_PIPE").ok()?.parse().ok()?;
        pipe(fd)?;
        Some(if mode(fd) == libc::O_WRONLY { Self::WriteEnd(fd) } else { Self::ReadEnd(fd) })
    }
}

/// Which pipe this is, if it is one.
fn pipe(fd: RawFd) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(format!("/proc/self/fd/{fd}")).ok()?;
    metadata.file_type().is_fifo().then(|| (metadata.dev(), metadata.ino()))
}

/// How it was opened: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
fn mode(fd: RawFd) -> libc::c_int {
    // SAFETY: F_GETFL takes no pointer and fails for a number that is not open.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE }
}

/// Closes the other ends of the pipe in `PMIX_KEEPALIVE_PIPE`. OpenPMIx's library leaks its own to what it starts, and then the end of its process would
/// not be seen.
fn close_leaked_ends() {
    let (ours, other) = match KeepalivePipe::of_environment() {
        Some(KeepalivePipe::ReadEnd(fd)) => (pipe(fd), libc::O_WRONLY),
        Some(KeepalivePipe::WriteEnd(fd)) => (pipe(fd), libc::O_RDONLY),
        None => return,
    };
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let all: Vec<RawFd> = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    for fd in all.into_iter().filter(|fd| *fd > 2 && pipe(*fd) == ours && mode(*fd) == other) {
        // SAFETY: the descriptor is inherited: nothing in this process has opened a file yet, so no owner of it exists.
        unsafe { libc::close(fd) };
    }
}

/// Marks everything above the standard streams close-on-exec.
fn keep_descriptors_from_children() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 1 << 2;
    // SAFETY: the call changes flags only; no descriptor is closed, so all owners keep theirs.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC)
    };
    if done == 0 {
        return;
    }
    // Kernels before 5.11.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    for fd in entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<RawFd>().ok()) {
        if fd > 2 {
            // SAFETY: as above: a flag is set, nothing is closed; a number that is not open is refused.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Makes a write beyond the limit of file sizes an error of that write, not our end. Ranks do not inherit handlers: they get the default, as without
/// us.
fn survive_file_limits() {
    extern "C" fn nothing(_: libc::c_int) {}
    if disposition(libc::SIGXFSZ) != Some(libc::SIG_DFL) {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = nothing;
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero bytes are a valid `sigaction` without flags; the handler does nothing, so it may run at any time.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGXFSZ, action.as_ptr(), std::ptr::null_mut());
    }
}

fn unblock_all_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that `sigprocmask` then reads; the old set is not requested.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Output passes through memory that is needed again at once. By default the C library returns it to the kernel after each piece, which costs more
/// than the piece.
fn keep_some_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the calls set two numbers of the allocator, before another thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_MEMORY / 2);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_MEMORY);
    }
}

/// A rank costs up to four descriptors, so the usual soft limit of 1024 is soon reached. Returns the old limit if it was raised.
fn raise_open_files() -> Option<Rlimit> {
    let old = getrlimit(Resource::Nofile);
    let wanted = old.maximum.map_or(ENOUGH_FILES, |hard| hard.min(ENOUGH_FILES));
    let enough = old.current.is_none_or(|soft| soft >= wanted);
    if enough {
        return None;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: old.maximum }) {
        Ok(()) => Some(old),
        Err(_) => None,
    }
}

static TERMINATED_BY: AtomicI32 = AtomicI32::new(0);
static TO_STOP: AtomicBool = AtomicBool::new(false);
const ENOUGH_FILES: u64 = 1 << 17;
/// Bytes of unused memory that are kept.
#[cfg(target_env = "gnu")]
const KEPT_MEMORY: libc::c_int = 4 << 20;

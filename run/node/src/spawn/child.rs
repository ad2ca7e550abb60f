//! The first moments of a process: what happens between `clone` and `execve`.
//!
//! The child shares our memory until it execs, and runs beside us: that saves the copying of page tables that `fork`
//! does and the standstill that `vfork` does, and lets the ranks of a node load on all cores at once. The price is
//! paid in this file. The child
//!
//! * runs on a stack of its own, and reads only its [`Orders`], which are not changed or freed before it has certainly left our memory: a
//!   close-on-exec descriptor that all children of a batch hold has reached its end (the kernel gives up the old memory before it closes descriptors,
//!   in exec and in exit alike);
//! * makes system calls directly, because those of the C library write `errno`, which would be ours;
//! * has every signal blocked until all handlers are reset, so none of our handlers runs in it;
//! * calls nothing that allocates, locks, or can panic, and never returns.

use std::arch::asm;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use phalanx_dvm::SpawnStep;
use rustix::process::Pid;

/// What one child has to do. All pointers stay valid as long as the orders do.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Orders {
    pub(super) path: *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) envp: *const *const c_char,
    /// Null: ours.
    pub(super) cwd: *const c_char,
    pub(super) mask: *const u8,
    /// 0: not bound.
    pub(super) mask_bytes: usize,
    /// Become descriptors 0, 1 and 2. All are above 2 themselves.
    pub(super) stdio: [c_int; 3],
    /// Stays open under its own number; below 0: none.
    pub(super) diag: c_int,
    /// Signals to set to their default, bit 0 being signal 1.
    pub(super) reset: u64,
    /// Soft and hard limit of open files.
    pub(super) open_files: Option<[u64; 2]>,
    pub(super) parent: c_int,
    /// The signal it gets when its parent dies.
    pub(super) last_signal: c_int,
    /// 0 until a step fails; then its code in the upper half and errno in the lower.
    pub(super) failure: AtomicU64,
}

impl Orders {
    /// What failed. Final once the child has left our memory or was reaped.
    pub(super) fn failure(&self) -> Option<(SpawnStep, i32)> {
        let failure = self.failure.load(Ordering::Acquire);
        let step = match failure >> 32 {
            0 => return None,
            BIND => SpawnStep::Bind,
            CHDIR => SpawnStep::Chdir,
            EXEC => SpawnStep::Exec,
            PIPE => SpawnStep::Pipe,
            _ => SpawnStep::Fork,
        };
        Some((step, failure as u32 as i32))
    }
}

/// Stacks for the children of one batch.
#[derive(Debug)]
pub(super) struct Stacks(Box<[MaybeUninit<Stack>]>);

#[derive(Debug)]
#[repr(C, align(16))]
struct Stack([u8; STACK_BYTES]);

impl Stacks {
    pub(super) fn new(count: usize) -> Stacks {
        Stacks(Box::new_uninit_slice(count))
    }

    /// The end of one stack: stacks grow downwards.
    fn top(&mut self, at: usize) -> Option<*mut c_void> {
        let stack = self.0.get_mut(at)?.as_mut_ptr();
        Some(stack.wrapping_add(1).cast())
    }
}

/// Blocks every signal of the calling thread until dropped, the C library's private ones included.
#[derive(Debug)]
pub(super) struct SignalsBlocked {
    before: u64,
}

impl SignalsBlocked {
    pub(super) fn new() -> SignalsBlocked {
        let mut before = 0;
        // SAFETY: both pointers are to eight bytes, the size that the call is given.
        unsafe { mask_signals(&u64::MAX, &mut before) };
        SignalsBlocked { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: as above; the old mask is not requested.
        unsafe { mask_signals(&self.before, ptr::null_mut()) };
    }
}

/// Starts one child.
///
/// # Safety
///
/// `orders`, all that it points to, and the stack `at` must stay where they are, and unchanged but for
/// [`Orders::failure`], until the child has left our memory. `blocked` must outlive the call: it is the proof that no
/// handler can run in the child.
pub(super) unsafe fn start(
    orders: *const Orders,
    stacks: &mut Stacks,
    at: usize,
    _blocked: &SignalsBlocked,
) -> io::Result<Pid> {
    let top = stacks.top(at).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: `run` follows the rules of this file; its stack is unused, aligned and large enough (see `STACK_BYTES`);
    // its argument lives long enough by this function's contract. Without CLONE_FILES, CLONE_FS and CLONE_SIGHAND
    // nothing that the child does to descriptors, directory or handlers reaches us; without CLONE_SETTLS it shares our
    // thread pointer, through which it only reads, if at all.
    let pid = unsafe { libc::clone(run, top, libc::CLONE_VM | libc::SIGCHLD, orders.cast_mut().cast()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::Other.into())
}

/// The child's whole life until exec.
extern "C" fn run(orders: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to orders that live long enough and stay unchanged, but for the atomic.
    let orders = unsafe { &*orders.cast_const().cast::<Orders>() };
    // SAFETY: see `prepare`; the caller is the child.
    let (step, errno) = unsafe { prepare(orders) };
    orders.failure.store(step << 32 | errno, Ordering::Release);
    loop {
        // SAFETY: ends this process only.
        let _ = unsafe { call(libc::SYS_exit_group, [127, 0, 0, 0, 0]) };
    }
}

/// Every step in order; returns which failed, with errno.
///
/// # Safety
///
/// Only for the child: it changes the process that it runs in.
unsafe fn prepare(orders: &Orders) -> (u64, u64) {
    let none = ptr::null::<u8>() as usize;
    // SAFETY: each call gets what the kernel's manual asks for: numbers, or pointers into `orders` and to locals with the sizes that stand beside
    // them.
    unsafe {
        // A group of its own: signals go to a rank with all its descendants, and those of the terminal to us alone.
        if let Err(errno) = call(libc::SYS_setpgid, [0, 0, 0, 0, 0]) {
            return (FORK, errno);
        }
        let on_death = [libc::PR_SET_PDEATHSIG as usize, orders.last_signal as usize, 0, 0, 0];
        if let Err(errno) = call(libc::SYS_prctl, on_death) {
            return (FORK, errno);
        }
        // The launcher may have died before the call above: then the signal would never come.
        if call(libc::SYS_getppid, [0; 5]) != Ok(orders.parent as usize) {
            return (FORK, libc::ESRCH as u64);
        }
        for signal in 1..=64_usize {
            if orders.reset & 1 << (signal - 1) != 0 {
                let default = KernelSigaction::default();
                let _ = call(
                    libc::SYS_rt_sigaction,
                    [signal, &raw const default as usize, none, SIGSET_BYTES, 0],
                );
            }
        }
        if orders.mask_bytes > 0
            && let Err(errno) =
                call(libc::SYS_sched_setaffinity, [0, orders.mask_bytes, orders.mask as usize, 0, 0])
        {
            return (BIND, errno);
        }
        if !orders.cwd.is_null()
            && let Err(errno) = call(libc::SYS_chdir, [orders.cwd as usize, 0, 0, 0, 0])
        {
            return (CHDIR, errno);
        }
        let [stdin, stdout, stderr] = orders.stdio;
        for (from, to) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            if let Err(errno) = call(libc::SYS_dup3, [from as usize, to, 0, 0, 0]) {
                return (PIPE, errno);
            }
        }
        if orders.diag >= 0
            && let Err(errno) = call(libc::SYS_fcntl, [orders.diag as usize, libc::F_SETFD as usize, 0, 0, 0])
        {
            return (PIPE, errno);
        }
        if let Some(limits) = &orders.open_files {
            let _ = call(
                libc::SYS_prlimit64,
                [0, libc::RLIMIT_NOFILE as usize, &raw const *limits as usize, none, 0],
            );
        }
        let unblocked = 0_u64;
        let _ = call(
            libc::SYS_rt_sigprocmask,
            [libc::SIG_SETMASK as usize, &raw const unblocked as usize, none, SIGSET_BYTES, 0],
        );
        match call(libc::SYS_execve, [orders.path as usize, orders.argv as usize, orders.envp as usize, 0, 0])
        {
            Ok(_) => (EXEC, 0),
            Err(errno) => (EXEC, errno),
        }
    }
}

/// # Safety
///
/// `new` must be readable, `old` null or writable.
unsafe fn mask_signals(new: *const u64, old: *mut u64) {
    // SAFETY: by the contract; a full mask cannot fail.
    let _ = unsafe {
        call(
            libc::SYS_rt_sigprocmask,
            [libc::SIG_SETMASK as usize, new as usize, old as usize, SIGSET_BYTES, 0],
        )
    };
}

/// The kernel's `sigaction`, not the C library's; all zero: the default.
#[derive(Default)]
#[repr(C)]
struct KernelSigaction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

/// A system call that leaves `errno` alone.
///
/// # Safety
///
/// As for the call itself.
#[inline(always)]
unsafe fn call(number: c_long, arguments: [usize; 5]) -> Result<usize, u64> {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: the kernel's calling convention: arguments and result in these registers, rcx and r11 lost.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the kernel's calling convention: number in x8, arguments from x0, result in x0.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc 0",
            in("x8") number as isize,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) { Err(result.unsigned_abs() as u64) } else { Ok(result as usize) }
}

const BIND: u64 = 1;
const CHDIR: u64 = 2;
const EXEC: u64 = 3;
const PIPE: u64 = 4;
const FORK: u64 = 5;

const SIGSET_BYTES: usize = size_of::<u64>();
/// The deepest chain is `run`, `prepare`, `call`: some hundred bytes, a few thousand without optimisation.
const STACK_BYTES: usize = 16 << 10;

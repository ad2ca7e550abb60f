//! Whether a process waits for its standard input: only then is a line of a terminal taken from whatever else may want it.
//!
//! The kernel does not notify the writer of a pipe that a reader waits, so we look at what the threads of the process and of its descendants wait for in
//! the kernel: a read of the pipe, or `poll`, `select` or `epoll` with it. The longer the process has not waited, the less often we look. A process
//! that cannot be looked at, or that may read in ways we do not see, counts as waiting: it must get its input. As long as there is input in the pipe,
//! it does not wait: it may just not have got round to leaving the call in which it did.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Looks until the process waits for input. Dropping it stops the looking.
#[derive(Debug)]
pub(crate) struct Watch(AbortHandle);

impl Watch {
    /// Sends `news` when the process, or a descendant, waits for input of the pipe whose writing end this is.
    pub(crate) fn start<T: 'static>(
        pid: Pid,
        pipe: &Rc<pipe::Sender>,
        to: mpsc::Sender<T>,
        news: T,
    ) -> Watch {
        let pipe = Rc::downgrade(pipe);
        let task = async move {
            let mut pause = FIRST_PAUSE;
            loop {
                // If it is closed, the process waits for nothing more. It must not be kept open.
                let Some(pipe) = pipe.upgrade() else { return };
                if waits_for_more(pid.as_raw_nonzero().get().cast_unsigned(), &*pipe) {
                    break;
                }
                drop(pipe);
                tokio::time::sleep(pause).await;
                pause = (pause + pause / 4).min(LONGEST_PAUSE);
            }
            let _ = to.send(news).await;
        };
        Watch(tokio::task::spawn_local(task).abort_handle())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether the process waits for input of this pipe, of which there is none. Only this process writes into it, so it stays empty while we look.
fn waits_for_more(pid: u32, pipe: impl AsFd) -> bool {
    let has_input = rustix::io::ioctl_fionread(&pipe).is_ok_and(|unread| unread > 0);
    let name = rustix::fs::fstat(&pipe).map(|stat| format!("pipe:[{}]", stat.st_ino));
    !has_input && name.map_or(true, |name| waits(pid, &name))
}

fn waits(pid: u32, pipe: &str) -> bool {
    let mut left = vec![pid];
    let mut looked = 0;
    while let Some(pid) = left.pop() {
        looked += 1;
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let call = match fs::read_to_string(thread.path().join("syscall")) {
                Ok(call) => call,
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) || !thread.path().exists() => {
                    continue;
                }
                // What cannot be seen gets its input unasked.
                Err(_) => return true,
            };
            if Call::parse(&call).is_some_and(|call| call.waits_for(pid, pipe)) {
                return true;
            }
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        if does_not_block(pid, pipe) || has_other_calls(pid) || looked > MOST_PROCESSES {
            return true;
        }
    }
    false
}

/// Whether the process has set its standard input not to block: it looks for input without waiting.
fn does_not_block(pid: u32, pipe: &str) -> bool {
    let Ok(info) = fs::read_to_string(format!("/proc/{pid}/fdinfo/0")) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_NONBLOCK != 0) && is_pipe(pid, 0, pipe)
}

/// Whether it is a 32-bit program, whose system calls have other numbers.
fn has_other_calls(pid: u32) -> bool {
    let mut head = [0; 5];
    let read = File::open(format!("/proc/{pid}/exe")).and_then(|mut exe| exe.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}

fn is_pipe(pid: u32, fd: u64, pipe: &str) -> bool {
    fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link.as_os_str() == pipe)
}

/// A system call in which a thread waits.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    number: i64,
    args: [u64; 3],
}

impl Call {
    /// None: the thread runs.
    fn parse(text: &str) -> Option<Call> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        Some(Call { number, args: [next()?, next()?, next()?] })
    }

    fn waits_for(&self, pid: u32, pipe: &str) -> bool {
        let [first, second, _] = self.args;
        match self.number {
            libc::SYS_read | libc::SYS_readv | libc::SYS_splice => is_pipe(pid, first, pipe),
            // What it waits for is in memory that it shares with the kernel.
            libc::SYS_io_uring_enter => true,
            libc::SYS_sendfile => is_pipe(pid, second, pipe),
            libc::SYS_ppoll => polled(pid, first, second).any(|fd| is_pipe(pid, fd, pipe)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => polled(pid, first, second).any(|fd| is_pipe(pid, fd, pipe)),
            libc::SYS_pselect6 => selected(pid, first, second).any(|fd| is_pipe(pid, fd, pipe)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => selected(pid, first, second).any(|fd| is_pipe(pid, fd, pipe)),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                awaited(pid, first).any(|fd| is_pipe(pid, fd, pipe))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => awaited(pid, first).any(|fd| is_pipe(pid, fd, pipe)),
            _ => false,
        }
    }
}

/// The descriptors of a `struct pollfd[count]` in the memory of a process.
fn polled(pid: u32, at: u64, count: u64) -> impl Iterator<Item = u64> {
    let bytes = memory(pid, at, count.min(MOST_POLLED) * 8);
    let entries: Vec<i32> =
        bytes.chunks_exact(8).filter_map(|entry| Some(i32::from_ne_bytes(*entry.first_chunk()?))).collect();
    entries.into_iter().filter_map(|fd| u64::try_from(fd).ok())
}

/// The descriptors of a `fd_set` in the memory of a process.
fn selected(pid: u32, count: u64, at: u64) -> impl Iterator<Item = u64> {
    let bytes = if at == 0 { Vec::new() } else { memory(pid, at, count.min(MOST_POLLED).div_ceil(64) * 8) };
    let bits = (0..).zip(bytes).flat_map(|(at, byte)| (0..8).map(move |bit| (at * 8 + bit, byte >> bit & 1)));
    bits.filter(move |(fd, bit)| *bit == 1 && *fd < count).map(|(fd, _)| fd)
}

/// The descriptors that an epoll descriptor of a process waits for.
fn awaited(pid: u32, epoll: u64) -> impl Iterator<Item = u64> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    let fds =
        info.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok());
    fds.collect::<Vec<u64>>().into_iter()
}

/// Bytes of a process's memory; none if it has gone on meanwhile.
fn memory(pid: u32, at: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let read = File::open(format!("/proc/{pid}/mem")).and_then(|memory| memory.read_exact_at(&mut bytes, at));
    if read.is_err() {
        bytes.clear();
    }
    bytes
}

const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
const MOST_POLLED: u64 = 4096;
/// A rank with more processes than this gets its input unasked.
const MOST_PROCESSES: usize = 256;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use rustix::event::{PollFd, PollFlags, epoll, poll};

    use super::*;

    #[test]
    fn calls_are_read_and_running_threads_are_not_in_one() {
        let call = Call::parse("0 0x3 0x7ffd0 0x20000 0x0 0x0 0x0 0x7ffc 0x7f00\n");
        assert_eq!(call, Some(Call { number: 0, args: [3, 0x7ffd0, 0x20000] }));
        assert_eq!(Call::parse("running\n"), None);
        assert_eq!(Call::parse("-1 0x7ffc 0x7f00\n"), None);
    }

    #[test]
    fn programs_that_wait_for_input_differ_from_others() {
        for (script, expected) in [
            ("exec cat", true),
            ("exec 3<&0; cat <&3", true),
            ("read x", true),
            ("exec sleep 1000", false),
            ("sleep 1000 | cat", false),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
            let mut child = command.spawn().expect("a shell");
            let pipe = name(child.stdin.as_ref().expect("a pipe"));
            let patience = if expected { PATIENCE } else { Duration::from_millis(200) };
            assert_eq!(is_seen(child.id(), &pipe, patience), expected, "{script}");
            let _ =
                rustix::process::kill_process_group(Pid::from_child(&child), rustix::process::Signal::KILL);
            let _ = child.wait();
        }
    }

    /// A process that has been woken may not have run yet. Here it stands, which shows as the same call for as long as we like.
    #[test]
    fn a_process_with_unread_input_does_not_wait_for_more() {
        let mut command = Command::new("cat");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a program that reads");
        let mut input = child.stdin.take().expect("a pipe");
        let (pid, pipe) = (child.id(), name(&input));
        assert!(is_seen(pid, &pipe, PATIENCE) && waits_for_more(pid, &input));
        let signal =
            |signal| rustix::process::kill_process(Pid::from_child(&child), signal).expect("it runs");
        signal(rustix::process::Signal::STOP);
        let status = || fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        wait_until(|| status().contains("T (stopped)"));
        input.write_all(b"a line").expect("room");
        assert!(waits(pid, &pipe) && !waits_for_more(pid, &input));
        signal(rustix::process::Signal::CONT);
        wait_until(|| waits_for_more(pid, &input));
        drop(input);
        assert!(child.wait().expect("its end").success());
    }

    #[test]
    fn polls_of_a_pipe_are_waits_for_input() {
        let me = std::process::id();
        let (poll_end, poll_writer) = rustix::pipe::pipe().expect("a pipe");
        let (epoll_end, epoll_writer) = rustix::pipe::pipe().expect("a pipe");
        let (first, second) = (name(&poll_end), name(&epoll_end));
        assert!(!waits(me, &first) && !waits(me, &second));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = poll(&mut [PollFd::new(&poll_end, PollFlags::IN)], None);
            });
            scope.spawn(move || {
                let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
                epoll::add(&set, &epoll_end, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                    .expect("a set");
                let mut events = Vec::with_capacity(1);
                let _ = epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None);
            });
            let seen = [&first, &second].map(|pipe| is_seen(me, pipe, PATIENCE));
            drop((poll_writer, epoll_writer));
            assert_eq!(seen, [true, true]);
        });
    }

    fn name(pipe: impl AsFd) -> String {
        format!("pipe:[{}]", rustix::fs::fstat(pipe).expect("a pipe").st_ino)
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let since = Instant::now();
        while !condition() {
            assert!(since.elapsed() < PATIENCE, "waited in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_seen(pid: u32, pipe: &str, patience: Duration) -> bool {
        let since = Instant::now();
        while !waits(pid, pipe) {
            if since.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    const PATIENCE: Duration = Duration::from_secs(60);
}

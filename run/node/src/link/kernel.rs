//! What the kernel knows of a connection.

use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::net::TcpStream;

/// How long ago the kernel at the other end has acknowledged anything. It does so, also on being asked for room, as long as the
/// process that owns the connection exists, even if that process is stopped.
pub(super) fn acked_ago(stream: &TcpStream) -> Option<Duration> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is that large.
    let result = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
    };
    let has_it = length as usize >= offset_of!(libc::tcp_info, tcpi_last_ack_recv) + size_of::<u32>();
    if result != 0 || !has_it {
        return None;
    }
    // SAFETY: it consists of numbers, all of which were set to zero.
    let info = unsafe { info.assume_init() };
    Some(Duration::from_millis(info.tcpi_last_ack_recv.into()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_kernel_acknowledges_for_a_process_that_does_not_read() {
        crate::block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _unread = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let silent = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
            let pause = Duration::from_millis(100);
            while acked_ago(&silent).unwrap() < pause {
                std::thread::yield_now();
            }
            stream.write_all(b"?").unwrap();
            while acked_ago(&silent).unwrap() >= pause {
                std::thread::yield_now();
            }
        })
        .unwrap();
    }
}

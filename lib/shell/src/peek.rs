//! Input that is looked at before it is taken, so that it stays for the next reader if it turns out to be unwanted.
//!
//! The kernel shows the next bytes of pipes, stream sockets and regular files without taking them, of terminals and other devices it does not.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::Errno;
use rustix::net::sockopt::socket_type;
use rustix::net::{RecvFlags, SocketType};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice, tee};

/// The next bytes of an input, which are still there. No bytes: the end of the input.
#[derive(Debug)]
pub struct Peek {
    data: Arc<[u8]>,
    taken: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Pipe,
    Socket,
    /// With the place of the first byte.
    File(u64),
}

impl Peek {
    /// Looks at up to `most` bytes. None: this input cannot be looked at. Without input the error is `AGAIN`.
    pub fn of(input: BorrowedFd<'_>, most: usize) -> Result<Option<Peek>, Errno> {
        let mut data = vec![0; most];
        let kind = match FileType::from_raw_mode(fstat(input)?.st_mode) {
            FileType::Fifo => Kind::Pipe,
            FileType::Socket if socket_type(input) == Ok(SocketType::STREAM) => Kind::Socket,
            FileType::RegularFile => match seek(input, SeekFrom::Current(0)) {
                Ok(place) => Kind::File(place),
                Err(_) => return Ok(None),
            },
            _ => return Ok(None),
        };
        match kind.look(input, &mut data) {
            Ok(count) => {
                data.truncate(count);
                Ok(Some(Peek { data: data.into(), taken: 0, kind }))
            }
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => Err(errno),
            // A sandbox may forbid it; reading shows any other error again.
            Err(_) => Ok(None),
        }
    }

    pub fn data(&self) -> &Arc<[u8]> {
        &self.data
    }

    /// How many of the bytes have not been taken.
    pub fn left(&self) -> usize {
        self.data.len() - self.taken
    }

    /// Takes the next `count` of the bytes out of the input. If another process has taken them meanwhile, what follows them is left to it.
    pub fn take(&mut self, input: BorrowedFd<'_>, count: usize) {
        let next = self.data.get(self.taken..).unwrap_or_default();
        let wanted = next.get(..count).unwrap_or(next);
        match self.kind {
            Kind::File(place) => {
                let at = place + self.taken as u64;
                if seek(input, SeekFrom::Current(0)) == Ok(at) {
                    // A file that allowed one seek allows another.
                    let _ = seek(input, SeekFrom::Start(at + wanted.len() as u64));
                }
            }
            Kind::Pipe | Kind::Socket => {
                let mut there = vec![0; wanted.len()];
                if self.kind.look(input, &mut there) == Ok(wanted.len()) && there == wanted {
                    self.kind.consume(input, &mut there);
                }
            }
        }
        self.taken += wanted.len();
    }
}

impl Kind {
    fn look(self, input: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Kind::Pipe => {
                let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                match tee(input, to, into.len(), SpliceFlags::NONBLOCK)? {
                    0 => Ok(0),
                    _ => rustix::io::read(from, into),
                }
            }
            Kind::Socket => Ok(rustix::net::recv(input, into, RecvFlags::PEEK | RecvFlags::DONTWAIT)?.1),
            Kind::File(place) => rustix::io::pread(input, into, place),
        }
    }

    /// Takes as many bytes as `scratch` has, without waiting for any.
    fn consume(self, input: BorrowedFd<'_>, scratch: &mut [u8]) {
        let mut left = scratch.len();
        while left > 0 {
            let taken = match self {
                Kind::Pipe => pipe_with(PipeFlags::CLOEXEC)
                    .and_then(|(_from, to)| splice(input, None, to, None, left, SpliceFlags::NONBLOCK)),
                Kind::Socket | Kind::File(_) => {
                    let scratch = scratch.get_mut(..left).unwrap_or_default();
                    rustix::net::recv(input, scratch, RecvFlags::DONTWAIT).map(|(_, count)| count)
                }
            };
            match taken {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// How much input is looked at before its reader has taken any.
pub const FIRST_PIECE: usize = 4096;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Inputs that hold "one two".
    fn inputs() -> Vec<(OwnedFd, OwnedFd)> {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let (near, far) = UnixStream::pair().expect("sockets");
        let mut file = tempfile::tempfile().expect("a file");
        let other = file.try_clone().expect("a file");
        rustix::io::write(&to, b"one ").expect("room");
        rustix::io::write(&to, b"two").expect("room");
        (&far).write_all(b"one two").expect("room");
        file.write_all(b"one two").expect("room");
        file.rewind().expect("a file");
        vec![(from, to), (near.into(), far.into()), (file.into(), other.into())]
    }

    fn rest(input: OwnedFd, others: OwnedFd) -> String {
        let mut rest = String::new();
        drop(others);
        File::from(input).read_to_string(&mut rest).expect("input");
        rest
    }

    #[test]
    fn what_is_looked_at_stays() {
        for (input, others) in inputs() {
            let peek = Peek::of(input.as_fd(), 5).expect("input").expect("a look");
            assert_eq!(&**peek.data(), b"one t");
            assert_eq!(rest(input, others), "one two");
        }
    }

    #[test]
    fn what_is_taken_goes_in_order() {
        for (input, others) in inputs() {
            let mut peek = Peek::of(input.as_fd(), FIRST_PIECE).expect("input").expect("a look");
            peek.take(input.as_fd(), 1);
            peek.take(input.as_fd(), 3);
            assert_eq!(peek.left(), 3);
            assert_eq!(rest(input, others), "two");
        }
    }

    #[test]
    fn what_another_has_taken_is_not_taken_again() {
        for (input, others) in inputs() {
            let mut peek = Peek::of(input.as_fd(), FIRST_PIECE).expect("input").expect("a look");
            rustix::io::read(&input, &mut [0; 4]).expect("input");
            peek.take(input.as_fd(), 4);
            assert_eq!(rest(input, others), "two");
        }
    }

    #[test]
    fn the_end_and_nothing_yet_differ() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        assert_eq!(Peek::of(from.as_fd(), 8).err(), Some(Errno::AGAIN));
        drop(to);
        let end = Peek::of(from.as_fd(), 8).expect("the end").expect("a look");
        assert!(end.data().is_empty());
        let device = File::open("/dev/null").expect("a device");
        assert!(Peek::of(device.as_fd(), 8).expect("a device").is_none());
    }
}

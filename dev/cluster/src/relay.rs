//! A bad network: connections through a relay are slow, split, stalled or cut, as a test requests.
//!
//! It accepts on one address and connects to another. Bytes of a connection keep their order, and none is lost before a cut.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Host;

/// The treatment of bytes on their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// The delay of each byte.
    pub delay: Duration,
    /// The most bytes that arrive in one piece.
    pub split: Option<usize>,
    /// No bytes arrive while this is set.
    pub stalled: bool,
}

#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    shared: Arc<Shared>,
}

impl Relay {
    /// Accepts connections at `listen` and forwards them to `to`; on this machine, or in the network of a host.
    pub fn start(on: Option<&Host>, listen: SocketAddr, to: SocketAddr) -> Result<Relay> {
        let namespace = on.map(Host::network).transpose()?;
        let shared = Arc::new(Shared::default());
        let (answer, answered) = sync_channel(1);
        let for_thread = shared.clone();
        // A namespace belongs to a thread and to the threads that it starts.
        thread::spawn(move || {
            let listener = namespace
                .map_or(Ok(()), |network| {
                    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
                })
                .map_err(io::Error::from)
                .and_then(|()| TcpListener::bind(listen))
                .map(Arc::new);
            match listener {
                Ok(listener) => {
                    let _ = answer.send(Ok(listener.clone()));
                    for_thread.accept(&listener, to);
                }
                Err(error) => drop(answer.send(Err(error))),
            }
        });
        let listener = answered.recv().context("the relay has ended")?;
        let listener = listener.with_context(|| format!("cannot listen on {listen}"))?;
        let address = listener.local_addr().with_context(|| format!("cannot listen on {listen}"))?;
        Ok(Relay { address, listener, shared })
    }

    /// The address at which it accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, weather: Weather) {
        self.shared.lock().weather = weather;
        self.shared.changed.notify_all();
    }

    /// Ends all connections at once; bytes on their way are lost. New connections are accepted.
    pub fn cut(&self) {
        let mut state = self.shared.lock();
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        state.cuts += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// How many bytes have arrived, over all connections in both directions.
    pub fn passed(&self) -> u64 {
        self.shared.lock().passed
    }

    /// How many pieces have come from the target, delivered or still waiting.
    pub fn answers(&self) -> u64 {
        self.shared.lock().answers
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A connection that has just been accepted must not outlive us.
        self.shared.lock().over = true;
        // Its thread waits in accept, which now fails.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.cut();
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<RelayState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RelayState {
    weather: Weather,
    streams: Vec<TcpStream>,
    cuts: u64,
    passed: u64,
    answers: u64,
    over: bool,
}

impl Shared {
    /// A thread that panicked while holding the lock left the state consistent.
    fn lock(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, to: SocketAddr) {
        while let Ok((near, _)) = listener.accept() {
            // The target does not listen: the connection ends, as it would without us.
            let Ok(far) = TcpStream::connect(to) else { continue };
            let _ = self.join(near, far);
        }
    }

    fn join(self: &Arc<Self>, near: TcpStream, far: TcpStream) -> io::Result<()> {
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let cuts = {
            let mut state = self.lock();
            if state.over {
                return Ok(());
            }
            state.streams.extend([near.try_clone()?, far.try_clone()?]);
            state.cuts
        };
        for (from, to, is_answer) in [(near.try_clone()?, far.try_clone()?, false), (far, near, true)] {
            let (give, take) = sync_channel(ON_THE_WAY);
            let shared = self.clone();
            thread::spawn(move || shared.read(from, &give, is_answer));
            let shared = self.clone();
            thread::spawn(move || shared.write(to, &take, cuts));
        }
        Ok(())
    }

    fn read(&self, mut from: TcpStream, give: &SyncSender<(Instant, Vec<u8>)>, is_answer: bool) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            self.lock().answers += u64::from(is_answer);
            if give.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    }

    fn write(&self, mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>, cuts: u64) {
        for (read_at, bytes) in pieces {
            let mut left = &bytes[..];
            while !left.is_empty() {
                let Some(weather) = self.clear(read_at, cuts) else { return };
                let (piece, rest) = left.split_at(weather.split.unwrap_or(usize::MAX).clamp(1, left.len()));
                if to.write_all(piece).is_err() {
                    return;
                }
                self.lock().passed += piece.len() as u64;
                left = rest;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    /// Waits until bytes read at `read_at` may arrive. None: their connection was cut.
    fn clear(&self, read_at: Instant, cuts: u64) -> Option<Weather> {
        let mut state = self.lock();
        loop {
            if state.cuts != cuts {
                return None;
            }
            let early = (read_at + state.weather.delay).saturating_duration_since(Instant::now());
            if !state.weather.stalled && early.is_zero() {
                return Some(state.weather);
            }
            // `set` wakes us sooner.
            let span = if early.is_zero() { Duration::from_secs(3600) } else { early };
            state = match self.changed.wait_timeout(state, span) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

/// Most pieces that wait in one direction; beyond that, the sender's own network fills up.
const ON_THE_WAY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection through a relay, and its other end.
    fn connected() -> (Relay, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let anywhere = "127.0.0.1:0".parse().unwrap();
        let relay = Relay::start(None, anywhere, listener.local_addr().unwrap()).unwrap();
        let near = TcpStream::connect(relay.address()).unwrap();
        let (far, _) = listener.accept().unwrap();
        (relay, near, far)
    }

    #[test]
    fn split_bytes_arrive_in_order() {
        let (relay, mut near, mut far) = connected();
        relay.set(Weather { split: Some(3), ..Weather::default() });
        let sent: Vec<u8> = (0..10_000).map(|n| n as u8).collect();
        near.write_all(&sent).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        far.read_to_end(&mut got).unwrap();
        assert!(got == sent);
        assert_eq!(relay.passed(), 10_000);
    }

    #[test]
    fn delay_is_at_least_what_was_asked_for() {
        let (relay, mut near, mut far) = connected();
        relay.set(Weather { delay: Duration::from_millis(150), ..Weather::default() });
        let began = Instant::now();
        near.write_all(b"slow").unwrap();
        far.read_exact(&mut [0; 4]).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(150));
    }

    #[test]
    fn nothing_arrives_while_stalled() {
        let (relay, mut near, mut far) = connected();
        relay.set(Weather { stalled: true, ..Weather::default() });
        near.write_all(b"later").unwrap();
        far.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let early = far.read(&mut [0; 8]).unwrap_err().kind();
        assert!(matches!(early, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{early}");
        relay.set(Weather::default());
        far.set_read_timeout(None).unwrap();
        let mut got = [0; 5];
        far.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"later");
    }

    #[test]
    fn cut_ends_both_sides() {
        let (relay, mut near, mut far) = connected();
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0; 1]).unwrap();
        relay.cut();
        assert!(matches!(near.read(&mut [0; 1]), Ok(0) | Err(_)));
        assert!(matches!(far.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}

//! Where other daemons come in. A peer that has not introduced itself is a stranger, and strangers cost little: their number and their time are
//! bounded. When there are too many, the oldest is dropped. A flood of silent strangers does not keep out daemons, which need milliseconds.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::call::{Made, advance};
use super::handshake::{Handshake, random_bytes};
use super::introduction::Introduction;
use super::links::Shared;
use super::refusal::Refusal;

/// Peers that have not introduced themselves yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers(VecDeque<(SocketAddr, AbortHandle)>);

impl Strangers {
    /// Makes room for one more, and returns the stranger that was dropped.
    fn make_room(&mut self, most: usize) -> Option<SocketAddr> {
        self.0.retain(|(_, task)| !task.is_finished());
        if self.0.len() < most {
            return None;
        }
        let (from, task) = self.0.pop_front()?;
        task.abort();
        Some(from)
    }

    pub(super) fn send_away(&mut self) {
        self.0.drain(..).for_each(|(_, task)| task.abort());
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|(_, task)| !task.is_finished()).count()
    }
}

/// Accepts for as long as it is not aborted.
pub(super) async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let mut strangers = shared.strangers.borrow_mut();
                if let Some(gone) = strangers.make_room(shared.limits.strangers) {
                    shared.refused(gone, Refusal::Crowded);
                }
                let task = tokio::task::spawn_local(listen_to(stream, from, shared.clone()));
                strangers.0.push_back((from, task.abort_handle()));
            }
            Err(error) => {
                // Out of descriptors or memory: callers keep waiting, but we must not spin.
                tracing::warn!("cannot accept a link: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn listen_to(mut stream: TcpStream, from: SocketAddr, shared: Rc<Shared>) {
    let _ = stream.set_nodelay(true);
    let own = Introduction { dvm: shared.dvm.clone(), from: shared.me, to: shared.me };
    let mut reply = Vec::new();
    let introduced = match Handshake::answer(&shared.secret, own, random_bytes) {
        Ok(mut handshake) => {
            let words = advance(&mut stream, &mut handshake, &mut reply);
            timeout(shared.limits.handshake, words).await.unwrap_or(Err(Refusal::Slow))
        }
        Err(refusal) => Err(refusal),
    };
    match introduced {
        Ok((peer, sealer, opener)) => {
            shared.establish(Made { stream, peer, sealer, opener, at: from }).await;
        }
        Err(refusal) => {
            shared.refused(from, refusal);
            let _ = timeout(LAST_WORDS, stream.write_all(&reply)).await;
            let _ = stream.shutdown().await;
        }
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a refused peer may take to receive the reason.
const LAST_WORDS: Duration = Duration::from_secs(1);

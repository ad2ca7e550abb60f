//! Making a link: all addresses of a daemon are tried at once, and the first at which it answers is used.
//!
//! An address is used only if the daemon there has proven its identity: the fastest to connect may be another host's, or our own.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::handshake::{Handshake, Progress, random_bytes};
use super::introduction::Introduction;
use super::records::{Opener, Sealer};
use super::refusal::Refusal;
use super::secret::Secret;

/// An established link, with its peer.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) stream: TcpStream,
    pub(super) peer: Introduction,
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
    /// Where the peer is.
    pub(super) at: SocketAddr,
}

/// Calls all addresses. The error has a reason for each.
pub(super) async fn call(
    candidates: &[SocketAddr],
    secret: &Secret,
    own: &Introduction,
    span: Duration,
) -> Result<Made, String> {
    let mut attempts = JoinSet::new();
    for &at in candidates {
        let (secret, own) = (secret.clone(), own.clone());
        attempts.spawn_local(async move {
            let attempt = timeout(span, introduce(at, &secret, own)).await;
            attempt
                .unwrap_or_else(|_| Err(format!("no answer within {} s", span.as_secs_f32())))
                .map_err(|why| format!("{at}: {why}"))
        });
    }
    let mut reasons = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok((mut made, proof))) => {
                // Drops the other attempts before they have proven who we are.
                attempts.abort_all();
                match timeout(span, made.stream.write_all(&proof)).await {
                    Ok(Ok(())) => return Ok(made),
                    _ => reasons.push(format!("{}: the connection was lost at once", made.at)),
                }
            }
            Ok(Err(why)) => reasons.push(why),
            Err(_) => {}
        }
    }
    reasons.sort();
    Err(if reasons.is_empty() { "no address is known".to_owned() } else { reasons.join("; ") })
}

/// All but the proof.
async fn introduce(at: SocketAddr, secret: &Secret, own: Introduction) -> Result<(Made, Vec<u8>), String> {
    let mut stream = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    let made = Handshake::call(secret, own, random_bytes);
    let (mut handshake, first) = made.map_err(|_| "the kernel gives no random bytes".to_owned())?;
    stream.write_all(&first).await.map_err(|error| error.to_string())?;
    let mut reply = Vec::new();
    match advance(&mut stream, &mut handshake, &mut reply).await {
        Ok((peer, sealer, opener)) => Ok((Made { stream, peer, sealer, opener, at }, reply)),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// Reads until the handshake is over. Sends replies on the way, except for the last, which is left in `reply`.
pub(super) async fn advance(
    stream: &mut TcpStream,
    handshake: &mut Handshake,
    reply: &mut Vec<u8>,
) -> Result<(Introduction, Sealer, Opener), Refusal> {
    let mut buffer = [0; 1024];
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer).await else { return Err(Refusal::Closed) };
        match handshake.take(buffer.get(..count).unwrap_or_default(), reply)? {
            Progress::Finished { peer, sealer, opener } => return Ok((peer, sealer, opener)),
            Progress::Unfinished => {
                if stream.write_all(reply).await.is_err() {
                    return Err(Refusal::Closed);
                }
                reply.clear();
            }
        }
    }
}

//! Traffic between daemons: their handshake and their records, from both sides, and users' settings for it.
//!
//! The random bytes are always the same here. So there is exactly one honest conversation, and a peer that is admitted must have sent
//! exactly that.

use std::sync::OnceLock;

use phalanx_dvm::NodeId;
use phalanx_node::link::{Candidates, Handshake, Introduction, Network, Opener, Progress, Sealer, Secret};

/// The first byte selects the side that gets the others, and how they are split.
pub(crate) fn peer(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let size = usize::from(choice >> 3) + 1;
    match choice % 8 {
        0 | 1 => called(bytes, size),
        2 | 3 => caller(bytes, size),
        4 | 5 => records(bytes, size),
        6 => round_trip(bytes, size),
        _ => words(bytes),
    }
}

/// A caller sends us these bytes.
fn called(bytes: &[u8], size: usize) {
    let mut handshake = answering();
    let mut replied = 0;
    for piece in bytes.chunks(size) {
        let mut reply = Vec::new();
        let progress = handshake.take(piece, &mut reply);
        replied += reply.len();
        assert!(replied <= MOST_REPLY, "a stranger gets few words");
        match progress {
            Ok(Progress::Unfinished) => {}
            Ok(Progress::Finished { peer, .. }) => {
                assert_eq!(peer.from, NodeId(1));
                return assert!(bytes.starts_with(&honest().0), "somebody was let in without the secret");
            }
            Err(refusal) => return assert!(!refusal.to_string().is_empty()),
        }
    }
}

/// We call, and this is the answer.
fn caller(bytes: &[u8], size: usize) {
    let (mut handshake, _) = calling();
    for piece in bytes.chunks(size) {
        match handshake.take(piece, &mut Vec::new()) {
            Ok(Progress::Unfinished) => {}
            Ok(Progress::Finished { .. }) => {
                return assert!(bytes.starts_with(&honest().1), "somebody was believed without the secret");
            }
            Err(refusal) => return assert!(!refusal.to_string().is_empty()),
        }
    }
}

/// These bytes arrive over an established link.
fn records(bytes: &[u8], size: usize) {
    let ((mut sealer, _), (_, mut opener)) = linked();
    let (mut sealed, mut out) = (Vec::new(), Vec::new());
    sealer.seal(b"an honest record", &mut sealed);
    for piece in bytes.chunks(size) {
        opener.push(piece);
        let broken = opener.open(&mut out);
        assert!(out.is_empty() || bytes.starts_with(&sealed), "bytes came that nobody has sent");
        if let Err(broken) = broken {
            return assert!(!broken.to_string().is_empty());
        }
    }
}

/// Bytes sent by one end arrive at the other, however the network splits them.
fn round_trip(bytes: &[u8], size: usize) {
    let ((mut sealer, _), (_, mut opener)) = linked();
    let (mut sealed, mut out) = (Vec::new(), Vec::new());
    bytes.chunks(size * 7).for_each(|piece| sealer.seal(piece, &mut sealed));
    for piece in sealed.chunks(size) {
        opener.push(piece);
        opener.open(&mut out).expect("nobody has changed it");
    }
    assert_eq!(out, bytes);
}

fn words(bytes: &[u8]) {
    let _ = Secret::read(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(network) = text.parse::<Network>() {
        assert_eq!(network.to_string().parse().as_ref(), Ok(&network));
    }
    if let Ok(candidates) = text.parse::<Candidates>() {
        assert_eq!(candidates.to_string().parse().as_ref(), Ok(&candidates));
    }
}

fn introduction(from: u32, to: u32) -> Introduction {
    Introduction { dvm: "px-fuzz-1".to_owned(), from: NodeId(from), to: NodeId(to) }
}

fn answering() -> Handshake {
    Handshake::answer(&Secret::from([5; 32]), introduction(0, 0), same_bytes).expect("it needs nothing")
}

fn calling() -> (Handshake, Vec<u8>) {
    Handshake::call(&Secret::from([5; 32]), introduction(1, 0), same_bytes).expect("it needs nothing")
}

fn same_bytes(buffer: &mut [u8]) -> bool {
    buffer.fill(0x5c);
    true
}

type End = (Sealer, Opener);

/// Both ends of an honest link.
fn linked() -> (End, End) {
    let ((mut caller, first), mut called) = (calling(), answering());
    let (mut answer, mut proof) = (Vec::new(), Vec::new());
    let _ = called.take(&first, &mut answer);
    let Ok(Progress::Finished { sealer, opener, .. }) = caller.take(&answer, &mut proof) else {
        panic!("the caller does not believe an honest answer");
    };
    match called.take(&proof, &mut Vec::new()) {
        Ok(Progress::Finished { sealer: other, opener: others, .. }) => ((sealer, opener), (other, others)),
        other => panic!("an honest caller is not let in: {other:?}"),
    }
}

/// The messages of an honest caller, and the answer to them.
fn honest() -> &'static (Vec<u8>, Vec<u8>) {
    static HONEST: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    HONEST.get_or_init(|| {
        let ((mut caller, mut said), mut called) = (calling(), answering());
        let mut answer = Vec::new();
        let _ = called.take(&said, &mut answer);
        let _ = caller.take(&answer, &mut said);
        (said, answer)
    })
}

/// Greeting, verdict and one message.
const MOST_REPLY: usize = 8 + 1 + 2 + 512;

#[cfg(test)]
mod tests {
    use super::*;

    /// The corpus is only useful if it contains honest conversations.
    #[test]
    fn honest_conversations_are_among_the_inputs() {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/link");
        let mut sealed = Vec::new();
        linked().0.0.seal(b"an honest record", &mut sealed);
        let (said, answer) = honest();
        for (name, first, bytes) in
            [("called", 0x40, said), ("caller", 0x42, answer), ("records", 0x44, &sealed)]
        {
            let input = [&[first], &bytes[..]].concat();
            let file = place.join(name);
            if std::env::var_os("WRITE_CORPUS").is_some() {
                std::fs::write(&file, &input).unwrap();
            }
            assert!(std::fs::read(&file).unwrap() == input, "{name}");
        }
    }
}

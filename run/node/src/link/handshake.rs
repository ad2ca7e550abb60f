//! The beginning of a link, as a pure state machine: bytes go in, bytes and a verdict come out.
//!
//! Noise, pattern `NNpsk0`: both sides have a fresh key for this link alone, mixed with the secret. The caller's first message can be read only with
//! the secret, so strangers are detected by one hash, before any arithmetic on curves. An eavesdropper can replay that message; therefore the
//! answerer accepts a caller only after a record under the newly agreed key.
//!
//! ```text
//! caller     greeting, version | length, message 1: who I am, whom I want
//! answerer   greeting, version | verdict | length, message 2: who I am
//! caller     an empty record
//! ```

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, DefaultResolver};
use snow::{Builder, HandshakeState};

use super::introduction::{Introduction, VERSION, fault, greeting};
use super::records::{Opener, Sealer, halves};
use super::refusal::Refusal;
use super::secret::Secret;

/// Fills the buffer with random bytes; `false`: there are none.
pub type Random = fn(&mut [u8]) -> bool;

/// Random bytes of the kernel.
pub fn random_bytes(buffer: &mut [u8]) -> bool {
    let mut rest = buffer;
    while !rest.is_empty() {
        match rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => rest = rest.split_at_mut(count).1,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// One side of a link that is being established.
#[derive(Debug)]
pub struct Handshake {
    own: Introduction,
    noise: Box<HandshakeState>,
    /// Received bytes that were not parsed yet.
    input: Vec<u8>,
    awaited: Awaited,
}

#[derive(Debug)]
enum Awaited {
    /// At the caller.
    Answer,
    /// At the answerer.
    Call,
    /// At the answerer: the caller's introduction has been read.
    Proof {
        peer: Introduction,
        sealer: Sealer,
        opener: Opener,
    },
    Nothing,
}

/// How far it has come.
#[derive(Debug)]
pub enum Progress {
    /// More input is needed.
    Unfinished,
    /// The link is established. The caller must send its reply first: the other side accepts the link only then.
    Finished { peer: Introduction, sealer: Sealer, opener: Opener },
}

impl Handshake {
    /// Begins as caller; also returns the first bytes.
    pub fn call(secret: &Secret, own: Introduction, random: Random) -> Result<(Handshake, Vec<u8>), Refusal> {
        let mut noise = builder(secret, random)?.build_initiator().map_err(|_| Refusal::Malformed)?;
        let mut first = greeting(VERSION).to_vec();
        write_message(&mut noise, &own.encode(), &mut first)?;
        let noise = Box::new(noise);
        Ok((Handshake { own, noise, input: Vec::new(), awaited: Awaited::Answer }, first))
    }

    /// Begins as answerer. The caller's target is not known yet, so `to` in `own` is ignored.
    pub fn answer(secret: &Secret, own: Introduction, random: Random) -> Result<Handshake, Refusal> {
        let noise = builder(secret, random)?.build_responder().map_err(|_| Refusal::Malformed)?;
        Ok(Handshake { own, noise: Box::new(noise), input: Vec::new(), awaited: Awaited::Call })
    }

    /// Takes received bytes. `reply` must be sent even if the peer is refused.
    pub fn take(&mut self, bytes: &[u8], reply: &mut Vec<u8>) -> Result<Progress, Refusal> {
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Answer => {
                self.input.extend_from_slice(bytes);
                self.read_answer(reply)
            }
            Awaited::Call => {
                self.input.extend_from_slice(bytes);
                let read = self.read_call(reply);
                if let Err(refusal) = &read
                    && !matches!(refusal, Refusal::NoDaemon { .. })
                {
                    reply.extend(greeting(VERSION));
                    reply.push(refusal.code());
                }
                read
            }
            Awaited::Proof { peer, sealer, mut opener } => {
                opener.push(bytes);
                Handshake::read_proof(peer, sealer, opener).map(|progress| self.resume(progress))
            }
            Awaited::Nothing => Err(Refusal::Malformed),
        }
    }

    fn read_answer(&mut self, reply: &mut Vec<u8>) -> Result<Progress, Refusal> {
        // A peer of another version sends a verdict after its greeting; the version alone says as much.
        if let Some(refusal) = fault(&self.input) {
            return Err(refusal);
        }
        let Some((verdict, rest)) = self.input.get(GREETING_LENGTH..).and_then(|rest| rest.split_first())
        else {
            self.awaited = Awaited::Answer;
            return Ok(Progress::Unfinished);
        };
        if *verdict != ACCEPTED {
            return Err(Refusal::told(*verdict));
        }
        let Some((message, rest)) = cut(rest)? else {
            self.awaited = Awaited::Answer;
            return Ok(Progress::Unfinished);
        };
        let peer = read_message(&mut self.noise, message)?;
        let rest = rest.to_vec();
        self.check(&peer, self.own.to)?;
        let (mut sealer, mut opener) = self.split()?;
        sealer.seal_proof(reply);
        opener.push(&rest);
        Ok(Progress::Finished { peer, sealer, opener })
    }

    fn read_call(&mut self, reply: &mut Vec<u8>) -> Result<Progress, Refusal> {
        if let Some(refusal) = fault(&self.input) {
            return Err(refusal);
        }
        let cut = self.input.get(GREETING_LENGTH..).map(cut).transpose()?.flatten();
        let Some((message, rest)) = cut else {
            self.awaited = Awaited::Call;
            return Ok(Progress::Unfinished);
        };
        let peer = read_message(&mut self.noise, message)?;
        let rest = rest.to_vec();
        self.check(&peer, peer.from)?;
        if peer.to != self.own.from {
            return Err(Refusal::OtherNode { wanted: peer.to, found: self.own.from });
        }
        let own = Introduction { to: peer.from, ..self.own.clone() };
        let mut answer = greeting(VERSION).to_vec();
        answer.push(ACCEPTED);
        write_message(&mut self.noise, &own.encode(), &mut answer)?;
        reply.append(&mut answer);
        let (sealer, mut opener) = self.split()?;
        opener.push(&rest);
        Handshake::read_proof(peer, sealer, opener).map(|progress| self.resume(progress))
    }

    /// The first record proves that the caller is live, not a replay.
    fn read_proof(peer: Introduction, sealer: Sealer, mut opener: Opener) -> Result<Proof, Refusal> {
        match opener.open_proof() {
            Ok(true) => Ok(Proof::Given { peer, sealer, opener }),
            Ok(false) => Ok(Proof::Missing { peer, sealer, opener }),
            Err(_) => Err(Refusal::Stale),
        }
    }

    fn resume(&mut self, proof: Proof) -> Progress {
        match proof {
            Proof::Given { peer, sealer, opener } => Progress::Finished { peer, sealer, opener },
            Proof::Missing { peer, sealer, opener } => {
                self.awaited = Awaited::Proof { peer, sealer, opener };
                Progress::Unfinished
            }
        }
    }

    fn check(&self, peer: &Introduction, wanted: phalanx_dvm::NodeId) -> Result<(), Refusal> {
        if peer.dvm != self.own.dvm {
            Err(Refusal::OtherDvm { theirs: peer.dvm.clone() })
        } else if peer.from != wanted {
            Err(Refusal::OtherNode { wanted, found: peer.from })
        } else {
            Ok(())
        }
    }

    /// The keys of both directions. The handshake can neither write nor read any more.
    fn split(&mut self) -> Result<(Sealer, Opener), Refusal> {
        let used = builder(&Secret::from([0; 32]), |_| false)?.build_responder();
        let used = used.map_err(|_| Refusal::Malformed)?;
        let noise = std::mem::replace(&mut *self.noise, used);
        Ok(halves(noise.into_stateless_transport_mode().map_err(|_| Refusal::Malformed)?))
    }
}

enum Proof {
    Given { peer: Introduction, sealer: Sealer, opener: Opener },
    Missing { peer: Introduction, sealer: Sealer, opener: Opener },
}

fn builder(secret: &Secret, random: Random) -> Result<Builder<'_>, Refusal> {
    let pattern = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s".parse().map_err(|_| Refusal::Malformed)?;
    let resolver: BoxedCryptoResolver = Box::new(Resolver(random));
    let builder = Builder::with_resolver(pattern, resolver).psk(0, secret.bytes());
    builder.and_then(|builder| builder.prologue(&PROLOGUE)).map_err(|_| Refusal::Malformed)
}

/// Appends length and message.
fn write_message(noise: &mut HandshakeState, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut message = [0; MOST_MESSAGE];
    let length = noise.write_message(payload, &mut message).map_err(|_| Refusal::Malformed)?;
    let message = message.get(..length).ok_or(Refusal::Malformed)?;
    out.extend(u16::try_from(length).map_err(|_| Refusal::Malformed)?.to_be_bytes());
    out.extend_from_slice(message);
    Ok(())
}

fn read_message(noise: &mut HandshakeState, message: &[u8]) -> Result<Introduction, Refusal> {
    let mut payload = [0; MOST_MESSAGE];
    // A peer that knows the secret would not have sent it, whatever is wrong with it.
    let length = noise.read_message(message, &mut payload).map_err(|_| Refusal::Secret)?;
    payload.get(..length).and_then(Introduction::decode).ok_or(Refusal::Malformed)
}

/// A message and what follows it.
type Cut<'a> = (&'a [u8], &'a [u8]);

/// A message, once it is complete, by the length before it. One that is too long is an error at once.
fn cut(bytes: &[u8]) -> Result<Option<Cut<'_>>, Refusal> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > MOST_MESSAGE {
        return Err(Refusal::Malformed);
    }
    Ok(rest.split_at_checked(length))
}

/// The algorithms of the crate, but with our source of random bytes.
struct Resolver(Random);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(Source(self.0)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn snow::types::Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn snow::types::Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn snow::types::Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

struct Source(Random);

impl snow::types::Random for Source {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        if (self.0)(bytes) { Ok(()) } else { Err(snow::Error::Rng) }
    }
}

/// Mixed into the hash, so that a version changed in transit is detected.
static PROLOGUE: [u8; GREETING_LENGTH] = greeting(VERSION);
const GREETING_LENGTH: usize = 8;
const ACCEPTED: u8 = 0;
/// Has room for names and numbers, with keys and tags.
const MOST_MESSAGE: usize = 512;

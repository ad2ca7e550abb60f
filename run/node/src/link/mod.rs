//! Links between daemons, over TCP: bytes go in at one end and come out at the other, unchanged, unread and in order.
//!
//! All daemons of a DVM know one [`Secret`]. A peer that does not know it is refused before it costs anything; one that repeats or changes messages
//! of others is refused as well. [`Handshake`] and the records behind it are pure; the rest moves bytes.
//!
//! * [`Links`] belongs to the owner of a node: it listens, calls others, sends, and reports by [`LinkEvents`] what arrives.
//! * Each link has a bounded queue in both directions. What is not read stays with the sender, for that link alone.
//! * [`choose_addresses`] decides at which addresses of this host others reach us.
//!
//! `phalanx_dvm` defines what the bytes mean.

mod addresses;
mod call;
mod door;
mod flow;
mod handshake;
mod introduction;
mod kernel;
mod links;
mod network;
mod records;
mod refusal;
mod secret;
#[cfg(test)]
mod tests;

pub use addresses::own_addresses;
pub use handshake::{Handshake, Progress, Random, random_bytes};
pub use introduction::{GREETING, Introduction, VERSION};
pub use links::{Candidates, LinkEvent, LinkEvents, LinkLimits, Links, Unsent};
pub use network::{Network, NoAddress, OwnAddress, choose_addresses};
pub use records::{Broken, Opener, Sealer};
pub use refusal::Refusal;
pub use secret::{NoSecret, Secret};

//! Links between daemons, over TCP: bytes go in at one end and come out at the other, unchanged, unread and in order.
//!
//! All daemons of a DVM know one [`Secret`]. Whoever does not know it is refused before it costs anything; whoever repeats or
//! changes what others have said is refused as well. [`Handshake`] and the records behind it are pure; the rest moves bytes.
//!
//! * [`Links`] is what the owner of a node has: it listens, calls others, sends, and tells by [`LinkEvents`] what comes.
//! * Each link has a bounded queue in both directions. What is not read stays with the sender, for that link alone.
//! * [`choose_addresses`] decides at which addresses of this host others reach us.
//!
//! What the bytes mean is the business of `phalanx_dvm`.

mod addresses;
mod call;
mod door;
mod flow;
mod handshake;
mod introduction;
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

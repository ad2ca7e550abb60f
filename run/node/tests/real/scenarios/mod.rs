//! The scenarios.

mod cleaning;
mod sockets;
mod starting;
mod streams;
mod surroundings;

/// One test, run in a process of its own.
pub(crate) type Scenario = (&'static str, fn());

pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    [starting::ALL, streams::ALL, cleaning::ALL, sockets::ALL, surroundings::ALL]
        .into_iter()
        .flatten()
        .copied()
}

/// Programs that scenarios start as processes of their own.
pub(crate) fn parts() -> impl Iterator<Item = Scenario> {
    [cleaning::PARTS, surroundings::PARTS].into_iter().flatten().copied()
}

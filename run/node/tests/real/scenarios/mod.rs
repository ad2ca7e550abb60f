//! What is tried.

mod cleaning;
mod sockets;
mod starting;
mod streams;
mod surroundings;

/// One thing to try, in a process of its own.
pub(crate) type Scenario = (&'static str, fn());

pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    [starting::ALL, streams::ALL, cleaning::ALL, sockets::ALL, surroundings::ALL]
        .into_iter()
        .flatten()
        .copied()
}

/// Programs that scenarios start beside themselves.
pub(crate) fn parts() -> impl Iterator<Item = Scenario> {
    [cleaning::PARTS, surroundings::PARTS].into_iter().flatten().copied()
}

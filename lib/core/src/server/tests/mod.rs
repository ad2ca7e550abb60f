//! The server under scripted clients, a scripted host and a clock that only moves when told.

mod accept;
mod collectives;
mod events;
mod gets;
mod jobs;
mod world;

//! The server under scripted clients, a scripted host and a clock that only moves when told.

mod accept;
mod chaos;
mod clones;
mod collected;
mod collectives;
mod debug;
mod events;
mod gets;
mod hostile;
mod iof;
mod jobs;
mod monitor;
mod resources;
mod topology;
mod upcalls;
mod world;

//! Tests of the server with scripted clients, a scripted host and a simulated clock.

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
mod rights;
mod topology;
mod upcalls;
mod world;

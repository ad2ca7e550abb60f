//! Jobs over several hosts: their start, links, loss and end.

mod allocations;
mod bad_links;
mod features;
mod jobs;
mod links;
mod lost;
mod outcomes;
mod shared_ssh;
mod starts;
mod system;

//! Many simulated nodes, one file per subject.

mod absent;
mod chaos;
mod cleanup;
mod control;
mod descent;
mod directives;
mod iof;
mod lost;
mod one_job;
mod query;
mod relations;
mod restarts;
mod seeds;
mod starts;
mod support;
mod survivors;
mod tools;
mod upcalls;
mod wide;

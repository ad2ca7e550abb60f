//! `px run` and the DVM as launchers: start, spawn and end of jobs.

mod dvm;
mod jobs_together;
mod launcher;
mod leftovers;
mod spawn;

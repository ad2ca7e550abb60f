//! Whole machines against each other, and against sessions that were captured.

mod recorded_clients;
mod sessions;
mod together;
mod tools;

//! Whole machines against each other, and against captured sessions.

mod recorded_clients;
mod sessions;
mod together;
mod tools;

//! Output at the root: who reads it, and what is kept for those who come later.

mod cache;
mod logged;
mod past;
mod pull;
mod readers;
mod retained;
mod waits;

pub(in crate::root) use cache::{Cache, CachePlan};
pub(in crate::root) use pull::OUTPUTS;
pub(crate) use pull::PULL_ATTRIBUTES;
pub(in crate::root) use readers::Readers;

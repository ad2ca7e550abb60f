//! Output at the root: its readers, and what is kept for readers that come later.

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

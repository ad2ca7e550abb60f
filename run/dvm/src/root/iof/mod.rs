//! Output at the root: its readers, and what is kept for readers that come later.

mod cache;
mod logged;
mod past;
mod piece;
mod pull;
mod readers;
mod retained;
mod tap;
mod waits;

pub(in crate::root) use logged::show_logged;
pub(crate) use pull::PULL_ATTRIBUTES;
pub(in crate::root) use pull::{begin_for_parent, end_for_parent, pull, pull_for_parent, stop};
pub(in crate::root) use readers::Readers;
pub(in crate::root) use tap::OUTPUTS;
pub(in crate::root) use waits::explain;

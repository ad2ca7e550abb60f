//! The C interface by itself: C programs on our headers, our library and our launcher. No peer needs to be installed.

mod client;
mod libpmix;

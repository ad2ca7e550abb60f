//! The C interface by itself: programs in C on our headers, our library and our launcher. No peer has to be installed.

mod client;
mod libpmix;

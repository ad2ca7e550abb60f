//! Packing and unpacking: whatever values there are, and the bytes of captured sessions.

mod roundtrip;
mod vectors;

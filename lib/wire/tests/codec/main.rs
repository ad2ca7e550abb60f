//! Packing and unpacking: arbitrary values, and the bytes of captured sessions.

mod roundtrip;
mod vectors;

//! Properties that must hold for any bytes: nothing panics, nothing grows without bound, and anything decoded once
//! decodes again after encoding.
//!
//! Each target takes any input. `cargo xtask fuzz` has libFuzzer search for inputs that break a target; the inputs in
//! `corpus`, and simple mutations of them, are an ordinary test.

// A target reports a failure by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod daemon;
mod hosts;
mod link;
mod script;
mod server;
mod wire;

pub struct Target {
    /// Also the name of its folder in `corpus`.
    pub name: &'static str,
    pub check: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "frame", check: wire::frame },
    Target { name: "hello", check: wire::hello },
    Target { name: "value", check: wire::value },
    Target { name: "request", check: wire::request },
    Target { name: "rendezvous", check: wire::rendezvous },
    Target { name: "collection", check: wire::collection },
    Target { name: "server", check: server::session },
    Target { name: "client", check: client::session },
    Target { name: "hosts", check: hosts::files },
    Target { name: "link", check: link::peer },
    Target { name: "daemon", check: daemon::neighbours },
];

pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

//! One daemon: its decisions and its PMIx server, joined.
//!
//! `daemon.rs` decides on the server's upcalls; calls to the server are carried out at once; only what concerns the outside
//! world leaves as an [`Effect`].

use std::collections::VecDeque;

use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{ConnId, Machine, Outbox, Output, Time, Waiting};

use crate::config::NodeConfig;
use crate::daemon::{Act, Daemon, Happening};
use crate::effect::{Effect, Input};
use crate::start::StartPlan;

/// `S` is the PMIx server; anything that accepts a server's calls will do, so a simulation can script thousands.
#[derive(Debug)]
pub struct Node<S: Machine> {
    daemon: Daemon,
    server: S,
    outbox: Outbox<S::Return, S::Delivery>,
    acts: VecDeque<Act>,
}

impl<S: Machine<Call = ServerCall, Return = ServerReturn>> Node<S> {
    pub fn new(config: NodeConfig, server: S) -> Node<S> {
        Node { daemon: Daemon::new(config), server, outbox: Outbox::default(), acts: VecDeque::new() }
    }

    /// Makes this a root that starts the other daemons itself.
    #[must_use]
    pub fn starting(mut self, plan: StartPlan) -> Node<S> {
        self.daemon.start_others(plan);
        self
    }

    /// Handles one input completely. Effects are to be carried out in order.
    pub fn handle(&mut self, now: Time, input: Input<'_>, effects: &mut VecDeque<Effect>) {
        use phalanx_core::Input as ServerInput;
        let connection = match &input {
            Input::Opened { conn, peer } => Some(ServerInput::Opened { conn: *conn, peer: *peer }),
            Input::Bytes { conn, data } => Some(ServerInput::Bytes { conn: *conn, data }),
            Input::Writable { conn, queued } => Some(ServerInput::Writable { conn: *conn, queued: *queued }),
            Input::Closed { conn, reason } => Some(ServerInput::Closed { conn: *conn, reason: *reason }),
            Input::Looked { look, file } => Some(ServerInput::Looked { look: *look, file: *file }),
            Input::Tick => Some(ServerInput::Tick),
            _ => None,
        };
        if let Some(connection) = connection {
            self.server.handle(now, connection, &mut self.outbox);
        }
        self.daemon.handle(now, Happening::Input(input), &mut self.acts);
        self.settle(now, effects);
    }

    /// When this node next needs an [`Input::Tick`], if nothing else happens before.
    pub fn deadline(&self) -> Option<Time> {
        [self.daemon.deadline(), self.server.deadline()].into_iter().flatten().min()
    }

    /// Whether this connection is not to be read from for now.
    pub fn is_full(&self, conn: ConnId) -> bool {
        self.server.is_full(conn)
    }

    /// What waits in this daemon. Its server explains its own waits.
    pub fn explain(&self) -> Vec<Waiting> {
        self.daemon.explain()
    }

    pub fn server(&self) -> &S {
        &self.server
    }

    pub fn server_mut(&mut self) -> &mut S {
        &mut self.server
    }

    /// Passes calls and answers between daemon and server until both are quiet.
    fn settle(&mut self, now: Time, effects: &mut VecDeque<Effect>) {
        use phalanx_core::Input as ServerInput;
        loop {
            while let Some(output) = self.outbox.pop() {
                match output {
                    Output::Send { conn, frame } => effects.push_back(Effect::Send { conn, frame }),
                    Output::Close { conn } => effects.push_back(Effect::Close { conn }),
                    Output::WriteFile { path, at, bytes } => {
                        effects.push_back(Effect::WriteFile { path, at, bytes })
                    }
                    Output::RemoveFile { path } => effects.push_back(Effect::RemoveFile { path }),
                    Output::LookAt { look, path, reads } => {
                        effects.push_back(Effect::LookAt { look, path, reads })
                    }
                    Output::CallHost { call, op } => {
                        self.daemon.handle(now, Happening::HostCall { call, op }, &mut self.acts);
                    }
                    Output::Return { id, result } => {
                        self.daemon.handle(now, Happening::Returned { id, result }, &mut self.acts);
                    }
                    // A server makes no connections and has no callbacks of its own.
                    Output::Connect { .. } | Output::Deliver { .. } => {}
                }
            }
            let Some(act) = self.acts.pop_front() else { return };
            match act {
                Act::Effect(effect) => effects.push_back(effect),
                Act::Reply { call, reply } => {
                    self.server.handle(now, ServerInput::Host { call, reply }, &mut self.outbox);
                }
                Act::Call { id, call } => {
                    self.server.handle(now, ServerInput::Call { id, call }, &mut self.outbox);
                }
            }
        }
    }
}

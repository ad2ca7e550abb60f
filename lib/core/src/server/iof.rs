//! Forwarded output and input: who pulled which streams, and the bytes on their way to them.
//!
//! Output of ranks comes from the host, which knows where the ranks are; input goes to it. Nothing is kept here: bytes that
//! nobody has pulled are dropped, the host is told that nobody was there, and a peer that does not read is given up like
//! any other.

use std::collections::BTreeMap;

use phalanx_spec::{IofChannel, Status};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::iof::{Deregister, Output, Pull, PullReply, Push};
use phalanx_wire::frame::TAG_IOF;
use phalanx_wire::{Blob, Nspace, ProcId};
use tracing::warn;

use super::host::Then;
use super::limits::MAX_PULLS;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::HostOp;
use crate::machine::ConnId;

#[derive(Debug, Default)]
pub(super) struct Streams {
    pulls: BTreeMap<u64, Pulled>,
    last: u64,
}

#[derive(Debug)]
struct Pulled {
    conn: ConnId,
    by: ProcId,
    sources: Vec<ProcId>,
    channels: IofChannel,
    /// The peer's own number for it; 0 for what it gets without asking.
    handle: u64,
    /// Whether the host knows of it.
    asked: bool,
}

impl Server {
    pub(super) fn on_iof_pull(&mut self, cx: &mut Cx<'_>, from: Asker, pull: Pull) {
        let refused = if pull.sources.is_empty() || pull.channels.is_empty() {
            Some(Status::ERR_BAD_PARAM)
        } else if self.streams.pulls.values().filter(|p| p.conn == from.conn).count() >= MAX_PULLS {
            warn!(proc = %from.proc, limit = MAX_PULLS, "too many streams pulled: refused");
            Some(Status::ERR_OUT_OF_RESOURCE)
        } else {
            None
        };
        if let Some(status) = refused {
            return self.reply(cx, &from, |dialect| PullReply { status, handle: 0 }.encode(dialect));
        }
        let Pull { sources, mut directives, channels, handle } = pull;
        let by = from.proc.clone();
        let number = self.pull(Pulled {
            conn: from.conn,
            by: by.clone(),
            sources: sources.clone(),
            channels,
            handle,
            asked: true,
        });
        directives.extend(from.identity());
        let op = HostOp::IofPull { from: by.clone(), sources, channels, directives, handle: number };
        self.call_host(cx, Some(&by), op, Then::AnswerPull { to: from, handle: number });
    }

    fn pull(&mut self, pulled: Pulled) -> u64 {
        self.streams.last += 1;
        self.streams.pulls.insert(self.streams.last, pulled);
        self.streams.last
    }

    /// A tool gets what the server itself prints without asking.
    pub(super) fn pull_for_tool(&mut self, conn: ConnId) {
        let Some(peer) = self.conns.peer(conn) else { return };
        let (by, sources) = (peer.proc.clone(), vec![self.config.identity.clone()]);
        self.pull(Pulled { conn, by, sources, channels: OUTPUTS, handle: 0, asked: false });
    }

    /// A tool gets the output of what it spawned without asking; whether there is any was settled with the host.
    pub(super) fn pull_for_parent(&mut self, conn: ConnId, child: &Nspace) {
        let Some(peer) = self.conns.peer(conn) else { return };
        let (by, sources) = (peer.proc.clone(), vec![ProcId::all(child)]);
        self.pull(Pulled { conn, by, sources, channels: OUTPUTS, handle: 0, asked: false });
    }

    pub(super) fn on_iof_deregister(&mut self, cx: &mut Cx<'_>, from: Asker, request: &Deregister) {
        let handle = request.handle;
        if self.streams.pulls.get(&handle).is_none_or(|pulled| pulled.conn != from.conn) {
            return self.answer(cx, &from, Status::ERR_NOT_FOUND);
        }
        self.forget_pull(handle);
        let proc = from.proc.clone();
        let op = HostOp::IofStop { from: proc.clone(), handle, directives: request.directives.clone() };
        self.call_host(cx, Some(&proc), op, Then::Answer(from));
    }

    pub(super) fn forget_pull(&mut self, handle: u64) {
        self.streams.pulls.remove(&handle);
    }

    pub(super) fn forget_pulls_of(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let gone: Vec<(u64, Pulled)> =
            self.streams.pulls.extract_if(.., |_, pulled| pulled.conn == conn).collect();
        for (handle, pulled) in gone {
            if pulled.asked {
                let op = HostOp::IofStop { from: pulled.by, handle, directives: Vec::new() };
                self.call_host(cx, None, op, Then::Nothing);
            }
        }
    }

    /// The host has output of a process.
    pub(super) fn on_output(
        &mut self,
        cx: &mut Cx<'_>,
        source: ProcId,
        channel: IofChannel,
        data: Blob,
    ) -> Status {
        let wanted = |pulled: &Pulled| {
            pulled.channels.intersects(channel) && pulled.sources.iter().any(|wanted| wanted.covers(&source))
        };
        let to: Vec<(ConnId, u64)> =
            self.streams.pulls.values().filter(|p| wanted(p)).map(|p| (p.conn, p.handle)).collect();
        if to.is_empty() {
            return Status::ERR_NOT_FOUND;
        }
        for (conn, handle) in to {
            let Some(dialect) = self.conns.peer(conn).map(|peer| peer.dialect) else { continue };
            let output =
                Output { source: source.clone(), channel, handle, info: Vec::new(), data: data.clone() };
            self.send(cx, conn, TAG_IOF, &output.encode(dialect));
        }
        Status::SUCCESS
    }

    pub(super) fn on_iof_push(&mut self, cx: &mut Cx<'_>, from: Asker, push: Push) {
        let proc = from.proc.clone();
        let Push { targets, directives, data } = push;
        let op = HostOp::PushStdin { from: proc.clone(), targets, directives, data };
        self.call_host(cx, Some(&proc), op, Then::Answer(from));
    }
}

const OUTPUTS: IofChannel = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0 | IofChannel::STDDIAG.0);

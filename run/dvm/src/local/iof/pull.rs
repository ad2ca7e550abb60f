//! Pulls: which streams the server of some daemon wants for its clients and tools.
//!
//! The root creates a tap for each pull and sends it the matching output (`root/iof/readers.rs`); the tap's daemon hands that
//! to its server and reports when it has left. A stop first delivers everything that was written before it.

use std::collections::BTreeMap;

use phalanx_core::server::{OutputTo, ServerCall, ServerReturn};
use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::iof::DROPPED;
use phalanx_wire::{Info, Nspace, Value};
use std::sync::Arc;

use crate::local::calls::Call;
use crate::local::job::Jobs;
use crate::local::turn::Cx;
use crate::msg::{Forward, NodeTable, TapName, Up};

/// Output that our server has been given and has not passed on, by reader.
#[derive(Debug, Default)]
pub(in crate::local) struct Delivering(BTreeMap<TapName, UnderWay>);

impl Delivering {
    pub(in crate::local) fn know(&self, nspace: &Nspace) -> bool {
        self.0.keys().any(|name| name.is_for(nspace))
    }
}

#[derive(Debug, Default)]
struct UnderWay {
    pieces: usize,
    /// Pieces that have left and were not reported yet.
    left: Vec<(u64, usize)>,
    left_bytes: usize,
}

impl Delivering {
    /// Output for a reader here.
    pub(in crate::local) fn give(
        &mut self,
        cx: &mut Cx<'_>,
        jobs: &Jobs,
        table: &Arc<NodeTable>,
        output: &Forward,
    ) {
        let Forward { to, piece, proc, pid, names_place, channel, data, lost } = output;
        self.0.entry(to.clone()).or_default().pieces += 1;
        let mut info = Vec::new();
        if *lost > 0 {
            info.push(Info::new(DROPPED, *lost));
        }
        if data.is_empty() {
            info.push(Info::new(keys::IOF_COMPLETE, true));
        }
        if *names_place {
            let desc = jobs.get(&proc.nspace).map(|job| job.desc.clone());
            let node = desc.and_then(|desc| desc.node_of(proc.rank));
            info.extend(node.map(|node| Info::new(keys::HOSTNAME, &*table.name(node))));
            info.extend(pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid))));
        }
        let purpose = Call::Output { to: to.clone(), piece: *piece, bytes: data.len() };
        let to = match to {
            TapName::Pull(handle) => OutputTo::Pull(*handle),
            TapName::Parent(parent, _) => OutputTo::Parent(parent.clone()),
        };
        let (source, channel, data) = (proc.clone(), *channel, data.clone().into());
        cx.call(ServerCall::Output { to, source, channel, data, info }, purpose);
    }

    /// Our server has passed a piece on. Reported to the root in steps, or when nothing is left.
    pub(in crate::local) fn left(
        &mut self,
        cx: &mut Cx<'_>,
        to: TapName,
        piece: u64,
        bytes: usize,
        result: &ServerReturn,
    ) {
        let Some(open) = self.0.get_mut(&to) else { return };
        open.pieces -= 1;
        let gone = *result == ServerReturn::Done(Status::ERR_NOT_FOUND);
        if !gone {
            let held = if let ServerReturn::Held(held) = result { *held } else { 0 };
            open.left.push((piece, held));
            open.left_bytes += bytes;
        }
        let last = open.pieces == 0;
        if !gone && !last && open.left_bytes < TELL_AFTER {
            return;
        }
        let pieces = std::mem::take(&mut open.left);
        open.left_bytes = 0;
        if last {
            self.0.remove(&to);
        }
        cx.post(Up::OutputLeft { to, pieces, gone });
    }
}

const TELL_AFTER: usize = 32 << 10;

//! Which daemons want which events of the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Event;
use phalanx_spec::{IofChannel, Range, Status, keys};
use phalanx_wire::{Info, Nspace, ProcId};

use crate::id::NodeId;
use crate::msg::Down;
use crate::ranges::Ranges;
use crate::root::turn::Cx;

/// Which daemons have clients that registered for a code. A client that registers for all codes gets runtime events only if it
/// names the code as well.
#[derive(Debug, Default)]
pub(super) struct Interests(BTreeMap<Status, Ranges>);

impl Interests {
    /// Returns those of the codes that no client there had registered for.
    pub(super) fn add(&mut self, node: NodeId, codes: &[Status]) -> Vec<Status> {
        let is_new = |code: &Status| {
            let nodes = self.0.entry(*code).or_default();
            let is_new = !nodes.contains(node.0);
            nodes.insert(node.0);
            is_new
        };
        codes.iter().copied().filter(is_new).collect()
    }

    pub(super) fn remove(&mut self, node: NodeId, codes: &[Status]) {
        for code in codes {
            if let Some(nodes) = self.0.get_mut(code) {
                nodes.remove(node.0);
            }
        }
        self.0.retain(|_, nodes| !nodes.is_empty());
    }

    /// Raises an event of the runtime for clients that registered for its code.
    pub(super) fn raise(&self, cx: &mut Cx<'_>, event: Event, number: u64, concerned: Option<Arc<[Nspace]>>) {
        if let Some(to) = self.0.get(&event.code).cloned() {
            cx.cast(to, Down::Announce { event: Arc::new(event), number, concerned, ago: None });
        }
    }

    /// A stream of a process is over, or its remaining contents are lost. Processes of any job may read it.
    pub(super) fn tell_stream(
        &self,
        cx: &mut Cx<'_>,
        number: u64,
        (code, proc, channel): (Status, ProcId, IofChannel),
    ) {
        let info = vec![
            Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
            // A plain number, because OpenPMIx's libraries cannot copy channels.
            Info::new(CHANNEL, channel.0),
        ];
        // The source is the whole job: the source of an event is not notified, and this process may want the event.
        self.raise(cx, announcement(code, ProcId::all(&proc.nspace), info), number, None);
    }
}

/// Not delivered to handlers of all events.
pub(super) fn announcement(code: Status, source: ProcId, mut info: Vec<Info>) -> Event {
    info.push(Info::new(keys::EVENT_NON_DEFAULT, true));
    Event { code, source, range: Range::SESSION, info }
}

/// The key for the channel in an event.
const CHANNEL: &str = "phalanx.iof.channel";

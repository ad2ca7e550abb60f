//! The other daemons, from the view of this node's owner: carries out decisions about links and reports what happens to them.

use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::{Effect, Input, NodeId};
use tokio::sync::oneshot;

use crate::link::{Candidates, LinkEvent, LinkEvents, Links, Unsent};
use crate::procs::Happenings;

/// Links to other daemons; none if the DVM has one node.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(Option<(Links, LinkEvents)>);

impl Neighbours {
    pub(crate) fn new(links: Links, events: LinkEvents) -> Neighbours {
        Neighbours(Some((links, events)))
    }

    /// The next thing that happens to a link.
    pub(crate) async fn next(&mut self) -> LinkEvent {
        if let Some((_, events)) = &mut self.0
            && let Some(event) = events.next().await
        {
            return event;
        }
        std::future::pending().await
    }

    /// Carries out a decision about links.
    pub(crate) fn carry_out(&mut self, effect: Effect, news: &mut Happenings) {
        let Some((links, _)) = &mut self.0 else {
            if let Effect::Connect { to, .. } = effect {
                let why = "this daemon has no links".to_owned();
                news.push(Input::LinkDown { peer: to, why });
            }
            return;
        };
        match effect {
            Effect::Connect { to, address } => match address.parse::<Candidates>() {
                Ok(candidates) => links.call(to, candidates),
                Err(error) => {
                    tracing::warn!(node = to.0, %error, "cannot call a daemon");
                    news.push(Input::LinkDown { peer: to, why: error });
                }
            },
            Effect::Link { to, bytes } => send(links, to, bytes, news),
            Effect::Unlink { to } => links.close(to, "it is not wanted any more"),
            _ => {}
        }
    }

    /// Turns an event into the node's input.
    pub(crate) fn told(&mut self, event: LinkEvent, mut input: impl FnMut(Input<'_>)) {
        match event {
            LinkEvent::Up { peer, at } => {
                tracing::info!(node = peer.0, %at, "linked");
                input(Input::LinkUp { peer });
            }
            LinkEvent::Bytes { peer, data } => {
                input(Input::LinkBytes { peer, bytes: &data });
                if let Some((links, _)) = &self.0 {
                    links.taken(peer, data.len());
                }
            }
            LinkEvent::Acked { peer, ago } => input(Input::LinkAcked { peer, ago }),
            LinkEvent::Down { peer, why } => {
                tracing::info!(node = peer.0, why, "no link");
                input(Input::LinkDown { peer, why });
            }
            // The log has their addresses and the reason.
            LinkEvent::Refused { .. } | LinkEvent::Room { .. } => {}
        }
    }

    /// The link to the daemon above this one: its address and port, and that daemon.
    pub(crate) fn above(&self) -> Option<String> {
        let (node, at) = self.0.as_ref()?.0.above()?;
        Some(format!("{at} (daemon {})", node.0))
    }

    /// Replies when everything queued until now has left, or after a moment.
    pub(crate) fn tell_when_said(&self, reply: oneshot::Sender<()>) {
        let left: Vec<_> = self.0.iter().flat_map(|(links, _)| links.left()).collect();
        tokio::task::spawn_local(async move {
            let all = async {
                for left in left {
                    left.await;
                }
            };
            let _ = tokio::time::timeout(MOMENT, all).await;
            let _ = reply.send(());
        });
    }

    /// Lets queued data leave for a moment, then ends all links.
    pub(crate) async fn end(self) {
        if let Some((links, events)) = self.0 {
            drop(events);
            links.finish("the DVM has ended").await;
        }
    }
}

/// How long a neighbour may take to receive what was queued for it.
const MOMENT: Duration = Duration::from_secs(1);

fn send(links: &mut Links, to: NodeId, bytes: Arc<[u8]>, news: &mut Happenings) {
    match links.send(to, bytes) {
        Ok(()) => {}
        Err(why @ Unsent::Full) => {
            tracing::warn!(node = to.0, %why, "link dropped");
            news.push(Input::LinkDown { peer: to, why: why.to_string() });
        }
        // The event that reports its loss is on its way.
        Err(Unsent::NoLink) => {}
    }
}

//! Dispatches the server's replies to the verbs.

use phalanx_spec::Status;

use super::link::{Cx, status};
use super::pending::{Awaited, Pending};
use super::{
    Tables, connect, credential, debug, event, fence, finalize, get, group, iof, publish, query, resolve,
    spawn,
};

impl Tables {
    pub(super) fn on_reply(&mut self, cx: &mut Cx<'_>, tag: u32, entry: Pending, payload: &[u8]) {
        let dialect = cx.link.config.dialect;
        if let Awaited::Get { request } = &entry.what
            && self.shared.is_led_by(tag, &request.proc)
        {
            return self.shared.on_values(cx, tag, entry, payload);
        }
        let Pending { call, what, .. } = entry;
        if what.tells_of_others() {
            cx.link.store.outdate_collected();
        }
        let link = &*cx.link;
        let result = match what {
            Awaited::JobData => return self.on_job_data(cx, payload),
            Awaited::Hold => return self.on_hold(cx, payload),
            Awaited::LastFence => return finalize::say_goodbye(cx, call),
            Awaited::Finalize => return finalize::on_goodbye(cx, call),
            Awaited::Registration { handler } => event::registered(link, &mut self.chains, handler, payload),
            Awaited::Get { ref request } => get::got(link, request, payload),
            Awaited::Refresh { ref request } => get::refreshed(link, request, payload),
            Awaited::Fence { .. } => fence::fenced(link, payload),
            Awaited::Status { .. } => status(payload, dialect),
            Awaited::Infos { .. } => query::infos(payload, dialect),
            Awaited::Query { ref own, .. } => query::answered(own.clone(), payload, dialect),
            Awaited::Lookup { .. } => publish::found(payload, dialect),
            Awaited::Peers { .. } => resolve::peers(payload, dialect),
            Awaited::Nodes { .. } => resolve::nodes(payload, dialect),
            Awaited::Spawned { .. } => spawn::spawned(link, payload),
            Awaited::Connected { .. } => connect::connected(link, payload),
            Awaited::Group { ref id, ref procs } => {
                group::group_constructed(link, &mut self.groups, id, procs, payload)
            }
            Awaited::ContextId { id, members, given } => {
                return self.inviting().on_context_id(cx, call, id, (members, given), payload);
            }
            // No reply ends these: events do.
            Awaited::Invitation(_) | Awaited::Join { .. } => return,
            Awaited::Pull { handler } => self.streams.pulled(link, handler, payload),
            Awaited::EndOfPull { handler } => self.streams.pull_ended(link, handler, payload),
            Awaited::Push { .. } => iof::pushed(payload, dialect),
            Awaited::Credential => credential::given(payload, dialect),
        };
        let result = result.unwrap_or_else(|error| {
            tracing::warn!(%error, ?what, "the server's reply cannot be read");
            what.failed(Status::ERR_UNPACK_FAILURE)
        });
        cx.give_back(call, result);
    }

    /// The server has registered this process for the debugger's release.
    fn on_hold(&mut self, cx: &mut Cx<'_>, payload: &[u8]) {
        if let Err(error) = debug::on_hold(cx, payload) {
            self.fail_init(cx, error);
        }
    }
}

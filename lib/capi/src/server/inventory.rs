//! Inventories of nodes.

use phalanx_spec::Status;

use super::init::serving;
use super::register::{at_once, ending};
use crate::client::calls::{InfoCallback, OpCallback, hand_over};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::told;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// Of this node, or of another as far as the host has provided it. The callback releases its arguments.
    fn PMIx_server_collect_inventory(
        directives: Ptr<pmix_info_t>, count: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let directives = from_c::readable_infos(directives, count)?;
        let callback = callback.ok_or(BAD)?;
        let collected = move |found: Result<Vec<_>, _>| match found {
            Ok(infos) => hand_over(callback, Status::SUCCESS, &infos, cbdata),
            Err(error) => hand_over(callback, told(error), &[], cbdata),
        };
        serving.server.collect_inventory_then(&directives, collected).map_err(told)
    }

    /// Without a callback the call waits, and returns that the operation is complete.
    fn PMIx_server_deliver_inventory(
        info: Ptr<pmix_info_t>, count: usize, directives: Ptr<pmix_info_t>, ndirectives: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let info = from_c::readable_infos(info, count)?;
        let directives = from_c::readable_infos(directives, ndirectives)?;
        let server = &serving.server;
        match callback {
            Some(callback) => {
                server.deliver_inventory_then(&info, &directives, ending(callback, cbdata)).map_err(told)
            }
            None => at_once(server.deliver_inventory(&info, &directives)),
        }
    }
}

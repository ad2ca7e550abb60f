//! Output of processes, for local readers.

use phalanx_spec::{IofChannel, Status};

use super::init::serving;
use super::register::{at_once, ending};
use crate::client::calls::OpCallback;
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::told;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// No bytes: the stream has ended.
    fn PMIx_server_IOF_deliver(
        source: Ptr<pmix_proc_t>, channel: u16, data: Ptr<pmix_byte_object_t>, info: Ptr<pmix_info_t>, count: usize,
        callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let source = from_c::proc(&source.read().ok_or(BAD)?)?;
        let info = from_c::infos(info, count)?;
        if channel == 0 {
            return Err(BAD);
        }
        let data = data.read().map(from_c::blob).unwrap_or_default();
        let (server, channel) = (&serving.server, IofChannel(channel));
        match callback {
            // It is no fault of the host if there is no reader.
            Some(callback) => server
                .iof_deliver_then(&source, channel, data, &info, move |ended| match ended {
                    Err(error) if error.status() == Status::ERR_NOT_FOUND => ending(callback, cbdata)(Ok(())),
                    ended => ending(callback, cbdata)(ended),
                })
                .map_err(told),
            None => match server.iof_deliver(&source, channel, data, &info) {
                Err(error) if error.status() == Status::ERR_NOT_FOUND => at_once(Ok(())),
                ended => at_once(ended),
            },
        }
    }
}

//! Monitoring: has processes watched, and sends signs of life.

use phalanx_spec::Status;
use phalanx_wire::cmd::monitor::Monitor;
use pmix::ClientCall;

use super::calls::{InfoCallback, done, infos, infos_then};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};

exported! {
    fn PMIx_Process_monitor(
        what: Ptr<pmix_info_t>, error: i32, directives: Ptr<pmix_info_t>, ndirs: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        infos(call(what, error, directives, ndirs)?, results, nresults)
    }

    fn PMIx_Process_monitor_nb(
        what: Ptr<pmix_info_t>, error: i32, directives: Ptr<pmix_info_t>, ndirs: usize, callback: InfoCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        infos_then(call(what, error, directives, ndirs)?, callback, cbdata)
    }

    fn PMIx_Heartbeat() {
        // Without a client there is no way to report the error.
        let _ = done(ClientCall::Heartbeat);
    }
}

fn call(
    what: Ptr<pmix_info_t>,
    error: i32,
    directives: Ptr<pmix_info_t>,
    ndirs: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    let what = from_c::info(&what.read().ok_or(BAD)?)?;
    Ok(ClientCall::Monitor(Monitor {
        what,
        error: Status(error),
        directives: from_c::infos(directives, ndirs)?,
    }))
}

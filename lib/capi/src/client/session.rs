//! Session control: directives for a whole session.

use phalanx_wire::cmd::session::SessionControl;
use pmix::ClientCall;

use super::calls::{InfoCallback, infos, infos_then};
use crate::from_c;
use crate::guard::exported;
use crate::instance::instance;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// Without a callback the call waits; what the host has to say beyond a status is then lost.
    fn PMIx_Session_control(
        session: u32, directives: Ptr<pmix_info_t>, ndirs: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        let call = ClientCall::from(SessionControl { session, directives: from_c::infos(directives, ndirs)? });
        if callback.is_some() { infos_then(call, callback, cbdata) } else { infos(call, Ptr::NULL, Ptr::NULL) }
    }
}

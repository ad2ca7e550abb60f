//! Committed values of a local process, for the server of another node.

use phalanx_spec::Status;

use super::init::serving;
use crate::cmem;
use crate::from_c;
use crate::guard::{BAD, Code, exported};
use crate::instance::told;
use crate::layout::pmix_proc_t;
use crate::pointer::{Opaque, Ptr};

/// `pmix_dmodex_response_fn_t`
type DmodexCallback = Option<extern "C" fn(Code, Ptr<u8>, usize, Ptr<Opaque>)>;

exported! {
    /// Waits until the process has committed something. The callback's bytes are freed when it returns.
    fn PMIx_server_dmodex_request(proc: Ptr<pmix_proc_t>, callback: DmodexCallback, cbdata: Ptr<Opaque>) -> Code {
        let serving = serving()?;
        let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
        let callback = callback.ok_or(BAD)?;
        serving
            .server
            .dmodex_request_then(&proc, None, move |committed| match committed {
                Ok(blob) => {
                    let bytes = cmem::bytes(blob.as_bytes());
                    callback(Status::SUCCESS.0, bytes, blob.len(), cbdata);
                    cmem::free(bytes);
                }
                Err(error) => callback(told(error).0, Ptr::NULL, 0, cbdata),
            })
            .map_err(told)
    }
}

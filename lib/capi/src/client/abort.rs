//! Abort: end processes.

use phalanx_spec::Status;
use pmix::ClientCall;

use super::calls::done;
use crate::from_c;
use crate::guard::exported;
use crate::instance::instance;
use crate::layout::pmix_proc_t;
use crate::pointer::Ptr;

exported! {
    /// No processes: the whole job.
    fn PMIx_Abort(status: i32, message: Ptr<u8>, procs: Ptr<pmix_proc_t>, nprocs: usize) -> Code {
        instance()?;
        let procs = from_c::procs(procs, nprocs)?;
        let message = from_c::text(message).filter(|text| !text.as_bytes().is_empty());
        done(ClientCall::Abort { status: Status(status), message, procs })
    }
}

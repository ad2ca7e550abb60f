//! Init and finalize, counted; whether there is a client; progress by the program.

use phalanx_spec::keys;
use phalanx_wire::InfoList;

use crate::guard::exported;
use crate::instance;
use crate::layout::*;
use crate::pointer::Ptr;
use crate::{from_c, to_c};

exported! {
    /// `proc` (may be NULL) is set to the name of this process.
    fn PMIx_Init(proc: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let info = from_c::infos(info, count)?;
        if info.is_set(keys::EXTERNAL_PROGRESS) {
            return Err(phalanx_spec::Status::ERR_NOT_SUPPORTED);
        }
        let instance = instance::acquire()?;
        proc.write(to_c::proc(instance.client.proc()));
        Ok(())
    }

    fn PMIx_Finalize(info: Ptr<pmix_info_t>, count: usize) -> Code {
        instance::release(&from_c::infos(info, count)?)
    }

    fn PMIx_Initialized() -> i32 {
        i32::from(instance::is_initialized())
    }

    /// Nothing is left to do where a progress thread makes it.
    fn PMIx_Progress() {
        if let Ok(instance) = instance::instance() {
            instance.client.progress();
        }
    }

    /// The thread ends with the last finalize.
    fn PMIx_Progress_thread_stop(info: Ptr<pmix_info_t>, count: usize) {
        let _ = (info, count);
    }
}

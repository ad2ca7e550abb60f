//! Init and finalize, counted; whether there is a client; progress by the program.

use pmix::Client;

use crate::guard::exported;
use crate::instance;
use crate::layout::*;
use crate::pointer::Ptr;
use crate::role::Role;
use crate::{from_c, to_c};

exported! {
    /// `proc` (may be NULL) is set to the name of this process.
    fn PMIx_Init(proc: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let info = from_c::readable_infos(info, count)?;
        let drive = Client::drive_of(&info).map_err(instance::told)?;
        let instance = instance::acquire(|| Ok(Role::Client(Client::init_driven(drive).map_err(instance::told)?)))?;
        proc.write(to_c::proc(instance.client.proc()));
        Ok(())
    }

    fn PMIx_Finalize(info: Ptr<pmix_info_t>, count: usize) -> Code {
        instance::release(&from_c::infos(info, count)?)
    }

    fn PMIx_Initialized() -> i32 {
        i32::from(instance::is_initialized())
    }

    /// Does what can be done without waiting, if the program makes progress itself. Callbacks run in here.
    fn PMIx_Progress() {
        if let Ok(instance) = instance::instance() {
            instance.client.progress();
        }
    }

    /// Not supported: the thread ends with the last finalize, and the function has no way to say so.
    fn PMIx_Progress_thread_stop(info: Ptr<pmix_info_t>, count: usize) {
        let _ = (info, count);
        tracing::warn!("PMIx_Progress_thread_stop is not supported: the progress thread ends with the last finalize");
    }
}

//! Init and finalize, counted; whether there is a client; progress by the program.

use phalanx_spec::keys;
use pmix::{Client, InfoList, Value};

use crate::guard::exported;
use crate::instance;
use crate::layout::*;
use crate::native::Native;
use crate::pointer::Ptr;
use crate::{from_c, to_c, verbose};

exported! {
    /// `proc` (may be NULL) is set to the name of this process.
    fn PMIx_Init(proc: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        verbose::start();
        let info = from_c::readable_infos(info, count)?;
        let drive = Client::drive_of(&info).map_err(instance::told)?;
        let instance = instance::acquire(|| Ok(Native::Client(Client::init_driven(drive).map_err(instance::told)?)))?;
        proc.write(to_c::proc(instance.client.proc()));
        Ok(())
    }

    fn PMIx_Finalize(info: Ptr<pmix_info_t>, count: usize) -> Code {
        instance::release(&from_c::infos(info, count)?)
    }

    fn PMIx_Initialized() -> i32 {
        i32::from(instance::is_initialized())
    }

    /// Makes progress without waiting, if the program drives progress itself. Callbacks run in here.
    fn PMIx_Progress() {
        instance::each_role(Native::progress);
    }

    /// From here on the program makes progress. There is only one thread, so any name but its own has no effect.
    fn PMIx_Progress_thread_stop(info: Ptr<pmix_info_t>, count: usize) {
        let Ok(info) = from_c::readable_infos(info, count) else { return };
        let names = [keys::PROGRESS_THREAD_NAME, NAME_IN_6_1].into_iter().find_map(|key| info.find(key));
        if names.and_then(Value::as_str).is_some_and(|name| name != pmix::PROGRESS_THREAD) {
            return;
        }
        let flushes = info.find(keys::PROGRESS_THREAD_FLUSH).is_none_or(Value::is_true);
        instance::each_role(|role| role.stop_progress_thread(flushes));
    }
}

/// The attribute's key in the headers of OpenPMIx 6.1: that of an event handler's name.
const NAME_IN_6_1: &str = keys::EVENT_HDLR_NAME;

//! Process sets: names that the host gives to sets of processes.

use super::init::serving;
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::told;
use crate::layout::pmix_proc_t;
use crate::pointer::Ptr;

exported! {
    fn PMIx_server_define_process_set(members: Ptr<pmix_proc_t>, count: usize, name: Ptr<u8>) -> Code {
        let serving = serving()?;
        let name = from_c::name(name)?;
        let members = from_c::procs(members, count)?;
        if members.is_empty() || name.is_empty() {
            return Err(BAD);
        }
        serving.server.define_process_set(&name, &members).map_err(told)
    }

    fn PMIx_server_delete_process_set(name: Ptr<u8>) -> Code {
        let serving = serving()?;
        serving.server.delete_process_set(&from_c::name(name)?).map_err(told)
    }
}

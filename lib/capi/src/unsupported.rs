//! What the runtime has no meaning for yet. The one place that says so.
//!
//! Arguments are not looked at, so none are declared: in C's calling convention the caller alone cares for them.

use phalanx_spec::Status;

use crate::guard::exported;
use crate::instance::instance;

macro_rules! not_supported {
    ($($name:ident)+) => {
        exported! {
            $(fn $name() -> Code {
                instance()?;
                Err(Status::ERR_NOT_SUPPORTED)
            })+
        }
    };
}

// Calls of clients.
not_supported! {
    PMIx_Register_attributes
}

macro_rules! servers_lack {
    ($($name:ident)+) => {
        exported! {
            $(fn $name() -> Code {
                crate::instance::serving()?;
                Err(Status::ERR_NOT_SUPPORTED)
            })+
        }
    };
}

// Calls of servers.
servers_lack! {
    PMIx_server_collect_inventory PMIx_server_collect_job_info PMIx_server_deliver_inventory
    PMIx_server_deregister_resources PMIx_server_register_resources
}

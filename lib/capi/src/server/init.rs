//! Init and finalize of a server, counted like those of a client.

use phalanx_spec::Status;

use super::module;
use super::serving::Serving;
use crate::guard::exported;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};
use crate::{from_c, instance, verbose};

exported! {
    /// Ignores the variables that would connect this process to a server of its own.
    fn PMIx_server_init(module: Ptr<Opaque>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        verbose::start();
        let info = from_c::readable_infos(info, count)?;
        let module = module::module(module, &info)?;
        instance::acquire_server(|| Serving::start(module, &info))
    }

    fn PMIx_server_finalize() -> Code {
        instance::release_server()
    }
}

/// The server, if this process is one.
pub(super) fn serving() -> Result<std::sync::Arc<Serving>, Status> {
    instance::serving()
}

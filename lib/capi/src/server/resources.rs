//! What the host registers about the machine, and about itself.

use phalanx_spec::DataType;
use phalanx_wire::Value;

use super::init::serving;
use super::register::{at_once, ending};
use crate::client::calls::OpCallback;
use crate::guard::{BAD, exported};
use crate::instance::told;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::{argv, data, from_c};

exported! {
    /// All jobs get it. Without a callback the call waits, and returns that the operation is complete.
    fn PMIx_server_register_resources(
        info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let info = from_c::readable_infos(info, count)?;
        let server = &serving.server;
        match callback {
            Some(callback) => server.register_resources_then(&info, ending(callback, cbdata)).map_err(told),
            None => at_once(server.register_resources(&info)),
        }
    }

    fn PMIx_server_deregister_resources(
        info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let info = from_c::readable_infos(info, count)?;
        let server = &serving.server;
        match callback {
            Some(callback) => server.deregister_resources_then(&info, ending(callback, cbdata)).map_err(told),
            None => at_once(server.deregister_resources(&info)),
        }
    }

    /// The host's part of answers to queries of attribute support.
    fn PMIx_Register_attributes(function: Ptr<u8>, attributes: argv::Argv) -> Code {
        let serving = serving()?;
        let function = from_c::name(function)?;
        let attributes = argv::texts(attributes).into_iter().map(String::from_utf8);
        let attributes = attributes.collect::<Result<Vec<_>, _>>().map_err(|_| BAD)?;
        let attributes: Vec<&str> = attributes.iter().map(String::as_str).collect();
        serving.server.register_attributes(&function, &attributes).map_err(told)
    }

    /// Appends one byte object per job to the buffer.
    fn PMIx_server_collect_job_info(
        procs: Ptr<pmix_proc_t>, count: usize, buffer: Ptr<pmix_data_buffer_t>,
    ) -> Code {
        let serving = serving()?;
        let procs = from_c::procs(procs, count)?;
        if procs.is_empty() || buffer.is_null() {
            return Err(BAD);
        }
        for job in serving.server.collect_job_info(&procs).map_err(told)? {
            data::pack(buffer, DataType::BYTE_OBJECT, &[Value::ByteObject(job)])?;
        }
        Ok(())
    }
}

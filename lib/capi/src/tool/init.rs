//! Init and finalize of a tool, counted like those of a client; and the tool as a server.

use std::path::Path;

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Value};
use pmix::{Drive, Tool};

use crate::guard::exported;
use crate::instance::{self, told};
use crate::layout::*;
use crate::native::Native;
use crate::pointer::{Opaque, Ptr};
use crate::server::module;
use crate::server::serving::Serving;
use crate::{from_c, to_c, verbose};

exported! {
    /// `proc` (may be NULL) is set to the name of this tool.
    fn PMIx_tool_init(proc: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        verbose::start();
        let info = from_c::readable_infos(info, count)?;
        let drive = if info.is_set(keys::EXTERNAL_PROGRESS) { Drive::Host } else { Drive::Thread };
        let instance =
            instance::acquire(|| Ok(Native::Tool(Tool::init_driven(&info, drive).map_err(told)?)))?;
        // An existing file has led to a server instead.
        let file = info.find(keys::LAUNCHER_RENDEZVOUS_FILE).and_then(Value::as_str);
        file.filter(|file| !Path::new(file).exists()).map(str::to_owned).into_iter().for_each(instance::leave_address);
        proc.write(to_c::proc(instance.client.proc()));
        Ok(())
    }

    fn PMIx_tool_finalize() -> Code {
        instance::release(&[])
    }

    /// From here on the tool serves processes that it starts, and other tools.
    fn PMIx_tool_set_server_module(module: Ptr<Opaque>) -> Code {
        let instance = instance::instance()?;
        let Native::Tool(_) = &instance.client else { return Err(Status::ERR_INIT) };
        let mut info = vec![Info::new(keys::SERVER_TOOL_SUPPORT, true)];
        info.extend(instance::file_for_address().map(|file| Info::new(keys::LAUNCHER_RENDEZVOUS_FILE, file)));
        let module = module::module(module, &info)?;
        instance::serve_as_tool(|| Serving::start(module, &info))
    }
}

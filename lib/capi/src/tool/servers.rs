//! Several servers at once: attach, disconnect, list, and select the primary one.

use std::sync::Arc;

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, ProcId};
use pmix::Tool;

use crate::guard::{BAD, exported};
use crate::instance::{Instance, instance, told};
use crate::layout::*;
use crate::native::Native;
use crate::pointer::Ptr;
use crate::{cmem, from_c, to_c};

exported! {
    /// Sets both names if there is room for them: the tool's, which does not change, and the server's.
    fn PMIx_tool_attach_to_server(
        me: Ptr<pmix_proc_t>, server: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize,
    ) -> Code {
        attach(me, server, &from_c::readable_infos(info, count)?)
    }

    /// The name of releases before 4.0, where a tool had one server: the new one becomes the primary one.
    fn PMIx_tool_connect_to_server(me: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let mut info = from_c::readable_infos(info, count)?;
        info.push(Info::new(keys::PRIMARY_SERVER, true));
        attach(me, Ptr::NULL, &info)
    }

    fn PMIx_tool_disconnect(server: Ptr<pmix_proc_t>) -> Code {
        let server = named(server)?;
        with_tool(|tool| tool.detach(&server).map_err(told))
    }

    fn PMIx_tool_is_connected() -> bool {
        with_tool(|tool| Ok(tool.is_connected())).unwrap_or(false)
    }

    /// The caller frees the array.
    fn PMIx_tool_get_servers(servers: Ptr<Ptr<pmix_proc_t>>, count: Ptr<usize>) -> Code {
        if servers.is_null() || count.is_null() {
            return Err(BAD);
        }
        servers.write(Ptr::NULL);
        count.write(0);
        let all = with_tool(|tool| tool.servers().map_err(told))?;
        if all.is_empty() {
            return Err(Status::ERR_UNREACH);
        }
        let all: Vec<_> = all.iter().map(|it| to_c::proc(&it.server)).collect();
        servers.write(cmem::array_of(&all));
        count.write(all.len());
        Ok(())
    }

    fn PMIx_tool_set_server(server: Ptr<pmix_proc_t>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let server = named(server)?;
        let info = from_c::readable_infos(info, count)?;
        with_tool(|tool| tool.set_server(&server, &info).map_err(told))
    }
}

fn attach(me: Ptr<pmix_proc_t>, server: Ptr<pmix_proc_t>, info: &[Info]) -> Result<(), Status> {
    with_tool(|tool| {
        let found = tool.attach(info).map_err(told)?;
        me.write(to_c::proc(tool.proc()));
        server.write(to_c::proc(&found));
        Ok(())
    })
}

/// Runs a call that only tools can make. Other processes count as not initialized for it.
fn with_tool<T>(run: impl FnOnce(&Tool) -> Result<T, Status>) -> Result<T, Status> {
    let instance: Arc<Instance> = instance()?;
    match &instance.client {
        Native::Tool(tool) => run(tool),
        Native::Client(_) | Native::Server(_) => Err(Status::ERR_INIT),
    }
}

fn named(server: Ptr<pmix_proc_t>) -> Result<ProcId, Status> {
    let servers = from_c::procs(server, 1)?;
    servers.into_iter().next().ok_or(BAD)
}

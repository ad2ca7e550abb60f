//! The host's table of upcalls, `pmix_server_module_t`, which does not record its size and has grown.
//!
//! Releases 4.0 to 4.2 have 28 entries; all later ones begin with the same 28. After them 5.0 has one more, 6.0 two, and 6.1
//! has inserted two others. So 28 entries are read of every host, and more only if the host states the size of the structure
//! that it was compiled with; our header adds it to the arguments of init, and others may. The size determines the layout.
//! Nothing else is evidence: after the table of an older host lie other data of it, which must neither be read nor called.

use phalanx_spec::Status;
use phalanx_wire::{Info, InfoList};

use crate::client::calls::{InfoCallback, OpCallback, ReleaseCallback};
use crate::client::publish::LookupCallback;
use crate::client::spawn::SpawnCallback;
use crate::guard::Code;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr, plain};

/// The size of the host's structure, among the arguments of init. Our own hint: other libraries ignore it.
pub(super) const MODULE_SIZE: &str = "phalanx.module.size";

/// `pmix_modex_cbfunc_t`
pub(super) type ModexCallback =
    extern "C" fn(Code, Ptr<u8>, usize, Ptr<Opaque>, ReleaseCallback, Ptr<Opaque>);
/// `pmix_credential_cbfunc_t`
pub(super) type CredentialCallback =
    extern "C" fn(Code, Ptr<pmix_byte_object_t>, Ptr<pmix_info_t>, usize, Ptr<Opaque>);
/// `pmix_validation_cbfunc_t`
pub(super) type ValidationCallback = extern "C" fn(Code, Ptr<pmix_info_t>, usize, Ptr<Opaque>);
/// `pmix_tool_connection_cbfunc_t`
pub(super) type ToolCallback = extern "C" fn(Code, Ptr<pmix_proc_t>, Ptr<Opaque>);

type Proc = Ptr<pmix_proc_t>;
type Infos = Ptr<pmix_info_t>;
type Data = Ptr<Opaque>;

/// The type of two entries: `client_connected` and `client_finalized`.
pub(super) type ClientFn = extern "C" fn(Proc, Data, OpCallback, Data) -> Code;
pub(super) type AbortFn = extern "C" fn(Proc, Data, i32, Ptr<u8>, Proc, usize, OpCallback, Data) -> Code;
pub(super) type FenceFn =
    extern "C" fn(Proc, usize, Infos, usize, Ptr<u8>, usize, Option<ModexCallback>, Data) -> Code;
pub(super) type DmodexFn = extern "C" fn(Proc, Infos, usize, Option<ModexCallback>, Data) -> Code;
pub(super) type PublishFn = extern "C" fn(Proc, Infos, usize, OpCallback, Data) -> Code;
pub(super) type LookupFn = extern "C" fn(Proc, Ptr<Ptr<u8>>, Infos, usize, LookupCallback, Data) -> Code;
pub(super) type UnpublishFn = extern "C" fn(Proc, Ptr<Ptr<u8>>, Infos, usize, OpCallback, Data) -> Code;
pub(super) type SpawnFn =
    extern "C" fn(Proc, Infos, usize, Ptr<pmix_app_t>, usize, SpawnCallback, Data) -> Code;
pub(super) type ConnectFn = extern "C" fn(Proc, usize, Infos, usize, OpCallback, Data) -> Code;
pub(super) type RegisterEventsFn = extern "C" fn(Ptr<i32>, usize, Infos, usize, OpCallback, Data) -> Code;
pub(super) type DeregisterEventsFn = extern "C" fn(Ptr<i32>, usize, OpCallback, Data) -> Code;
pub(super) type NotifyFn = extern "C" fn(Code, Proc, u8, Infos, usize, OpCallback, Data) -> Code;
pub(super) type QueryFn = extern "C" fn(Proc, Ptr<pmix_query_t>, usize, InfoCallback, Data) -> Code;
pub(super) type ToolFn = extern "C" fn(Infos, usize, Option<ToolCallback>, Data);
pub(super) type LogFn = extern "C" fn(Proc, Infos, usize, Infos, usize, OpCallback, Data);
pub(super) type AllocateFn = extern "C" fn(Proc, u8, Infos, usize, InfoCallback, Data) -> Code;
pub(super) type ControlFn = extern "C" fn(Proc, Proc, usize, Infos, usize, InfoCallback, Data) -> Code;
pub(super) type MonitorFn = extern "C" fn(Proc, Infos, Code, Infos, usize, InfoCallback, Data) -> Code;
pub(super) type CredentialFn = extern "C" fn(Proc, Infos, usize, Option<CredentialCallback>, Data) -> Code;
pub(super) type ValidateFn =
    extern "C" fn(Proc, Ptr<pmix_byte_object_t>, Infos, usize, Option<ValidationCallback>, Data) -> Code;
pub(super) type IofFn = extern "C" fn(Proc, usize, Infos, usize, u16, OpCallback, Data) -> Code;
pub(super) type StdinFn =
    extern "C" fn(Proc, Proc, usize, Infos, usize, Ptr<pmix_byte_object_t>, OpCallback, Data) -> Code;
pub(super) type GroupFn = extern "C" fn(u32, Ptr<u8>, Proc, usize, Infos, usize, InfoCallback, Data) -> Code;
pub(super) type FabricFn = extern "C" fn(Proc, u32, Infos, usize, InfoCallback, Data) -> Code;
pub(super) type Connected2Fn = extern "C" fn(Proc, Data, Infos, usize, OpCallback, Data) -> Code;
pub(super) type Tool2Fn = extern "C" fn(Infos, usize, Option<ToolCallback>, Data) -> Code;
pub(super) type Log2Fn = extern "C" fn(Proc, Infos, usize, Infos, usize, OpCallback, Data) -> Code;
pub(super) type BlockFn = extern "C" fn(
    Proc,
    u8,
    Ptr<u8>,
    Ptr<pmix_resource_unit_t>,
    usize,
    Infos,
    usize,
    OpCallback,
    Data,
) -> Code;
pub(super) type SessionFn = extern "C" fn(Proc, u32, Infos, usize, InfoCallback, Data) -> Code;

plain! {
    Option<ClientFn> Option<AbortFn> Option<FenceFn> Option<DmodexFn> Option<PublishFn> Option<LookupFn>
    Option<SpawnFn> Option<ConnectFn> Option<RegisterEventsFn> Option<DeregisterEventsFn>
    Option<NotifyFn> Option<QueryFn> Option<ToolFn> Option<LogFn> Option<AllocateFn> Option<ControlFn>
    Option<MonitorFn> Option<CredentialFn> Option<ValidateFn> Option<IofFn> Option<StdinFn> Option<GroupFn>
    Option<FabricFn> Option<Connected2Fn> Option<Tool2Fn> Option<Log2Fn> Option<UnpublishFn> Option<BlockFn>
}

/// A copy of the host's table. No request uses `listener`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Module {
    pub(super) client_connected: Option<ClientFn>,
    pub(super) client_finalized: Option<ClientFn>,
    pub(super) abort: Option<AbortFn>,
    pub(super) fence: Option<FenceFn>,
    pub(super) direct_modex: Option<DmodexFn>,
    pub(super) publish: Option<PublishFn>,
    pub(super) lookup: Option<LookupFn>,
    pub(super) unpublish: Option<UnpublishFn>,
    pub(super) spawn: Option<SpawnFn>,
    pub(super) connect: Option<ConnectFn>,
    pub(super) disconnect: Option<ConnectFn>,
    pub(super) register_events: Option<RegisterEventsFn>,
    pub(super) deregister_events: Option<DeregisterEventsFn>,
    pub(super) notify_event: Option<NotifyFn>,
    pub(super) query: Option<QueryFn>,
    pub(super) tool_connected: Option<ToolFn>,
    pub(super) log: Option<LogFn>,
    pub(super) allocate: Option<AllocateFn>,
    pub(super) job_control: Option<ControlFn>,
    pub(super) monitor: Option<MonitorFn>,
    pub(super) get_credential: Option<CredentialFn>,
    pub(super) validate_credential: Option<ValidateFn>,
    pub(super) iof_pull: Option<IofFn>,
    pub(super) push_stdin: Option<StdinFn>,
    pub(super) group: Option<GroupFn>,
    pub(super) fabric: Option<FabricFn>,
    pub(super) client_connected2: Option<Connected2Fn>,
    pub(super) tool_connected2: Option<Tool2Fn>,
    pub(super) log2: Option<Log2Fn>,
    pub(super) session_control: Option<SessionFn>,
    pub(super) resource_block: Option<BlockFn>,
}

/// Copies the table of a host. A NULL table offers nothing.
pub(crate) fn module(at: Ptr<Opaque>, init: &[Info]) -> Result<Module, Status> {
    if at.is_null() {
        return Ok(Module::default());
    }
    let size = match init.find(MODULE_SIZE) {
        None => ENTRIES_OF_4,
        Some(bytes) => {
            let bytes = bytes.as_u64().and_then(|bytes| usize::try_from(bytes).ok());
            bytes.map(|bytes| bytes / size_of::<Data>()).ok_or(Status::ERR_BAD_PARAM)?
        }
    };
    let entries = Entries { at, count: size };
    let (tool_connected2, log2, session_control, resource_block) = match size {
        ENTRIES_OF_5 => (None, None, Some(28), None),
        ENTRIES_OF_6_0 => (None, None, Some(28), Some(29)),
        ENTRIES_OF_6_1 => (Some(28), Some(29), Some(30), Some(31)),
        _ => (None, None, None, None),
    };
    Ok(Module {
        client_connected: entries.get(0),
        client_finalized: entries.get(1),
        abort: entries.get(2),
        fence: entries.get(3),
        direct_modex: entries.get(4),
        publish: entries.get(5),
        lookup: entries.get(6),
        unpublish: entries.get(7),
        spawn: entries.get(8),
        connect: entries.get(9),
        disconnect: entries.get(10),
        register_events: entries.get(11),
        deregister_events: entries.get(12),
        notify_event: entries.get(14),
        query: entries.get(15),
        tool_connected: entries.get(16),
        log: entries.get(17),
        allocate: entries.get(18),
        job_control: entries.get(19),
        monitor: entries.get(20),
        get_credential: entries.get(21),
        validate_credential: entries.get(22),
        iof_pull: entries.get(23),
        push_stdin: entries.get(24),
        group: entries.get(25),
        fabric: entries.get(26),
        client_connected2: entries.get(27),
        tool_connected2: tool_connected2.and_then(|index| entries.get(index)),
        log2: log2.and_then(|index| entries.get(index)),
        session_control: session_control.and_then(|index| entries.get(index)),
        resource_block: resource_block.and_then(|index| entries.get(index)),
    })
}

const ENTRIES_OF_4: usize = 28;
const ENTRIES_OF_5: usize = 29;
const ENTRIES_OF_6_0: usize = 30;
const ENTRIES_OF_6_1: usize = 32;

struct Entries {
    at: Ptr<Opaque>,
    count: usize,
}

impl Entries {
    fn get<T>(&self, index: usize) -> Option<T>
    where
        Option<T>: crate::pointer::Plain,
    {
        if index >= self.count {
            return None;
        }
        // SAFETY: the type of the host's table guarantees that it holds functions, each as long as a pointer; NULL is none.
        unsafe { self.at.cast::<Option<T>>().at(index) }.read().flatten()
    }
}

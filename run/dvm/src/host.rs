//! The host's side of a PMIx server: every upcall that this runtime carries out, and where it goes.
//!
//! This is the one place that says what is supported; whatever is not named here is refused with
//! `PMIX_ERR_NOT_SUPPORTED`. The table of what each function honours is what queries are told of, and what a required
//! directive is looked up in before anything is done.

use phalanx_core::output::{BUFFER_ATTRIBUTES, FILE_ATTRIBUTES, FORM_ATTRIBUTES};
use phalanx_core::support::{self, Honoured};
use phalanx_core::{HostCallId, HostOp, HostReply};
use phalanx_spec::{Status, attribute, keys};
use phalanx_wire::{Info, Key};

use crate::daemon::{Cx, Daemon};
use crate::fence;
use crate::msg::{Kind, Part, Up, cleanup, control, environment};
use crate::procs::Pmix;
use crate::root::{debug, event, group, iof, log, publish, query, spawn, stdin};

/// What each function honours.
pub(crate) const FUNCTIONS: &[Honoured] = &[
    ("PMIx_Connect", &[fence::ATTRIBUTES]),
    ("PMIx_Disconnect", &[fence::ATTRIBUTES]),
    ("PMIx_Fence", &[fence::ATTRIBUTES]),
    ("PMIx_Group_construct", &[group::ATTRIBUTES]),
    ("PMIx_Group_destruct", &[group::DESTRUCT_ATTRIBUTES]),
    ("PMIx_IOF_deregister", &[]),
    ("PMIx_IOF_pull", &[iof::PULL_ATTRIBUTES]),
    ("PMIx_IOF_push", &[stdin::PUSH_ATTRIBUTES]),
    ("PMIx_Job_control", &[control::ATTRIBUTES, cleanup::ATTRIBUTES]),
    ("PMIx_Log", &[log::ATTRIBUTES]),
    ("PMIx_Lookup", &[publish::LOOKUP_ATTRIBUTES]),
    ("PMIx_Notify_event", &[event::ATTRIBUTES]),
    ("PMIx_Publish", &[publish::PUBLISH_ATTRIBUTES]),
    ("PMIx_Query_info", &[query::KEYS, query::QUALIFIERS]),
    ("PMIx_Register_event_handler", &[]),
    (
        "PMIx_Spawn",
        &[
            spawn::ATTRIBUTES,
            spawn::APP_ATTRIBUTES,
            environment::ATTRIBUTES,
            debug::ATTRIBUTES,
            FORM_ATTRIBUTES,
            FILE_ATTRIBUTES,
            BUFFER_ATTRIBUTES,
        ],
    ),
    ("PMIx_Unpublish", &[publish::UNPUBLISH_ATTRIBUTES]),
];

impl Daemon {
    /// An upcall of our own server.
    pub(crate) fn on_host_call(&mut self, cx: &mut Cx<'_>, id: HostCallId, mut op: HostOp) {
        if let Some(directive) = unknown_directive(&mut op) {
            self.tell_unknown(cx, &op, &directive);
            if !fail_collective(&mut op) {
                return cx.reply(id, HostReply::Done(Status::ERR_NOT_SUPPORTED));
            }
        }
        let done = |cx: &mut Cx<'_>| cx.reply(id, HostReply::Done(Status::SUCCESS));
        match op {
            HostOp::ClientConnected { proc } => {
                self.on_client(cx, &proc, Pmix::Connected);
                done(cx);
            }
            HostOp::ClientFinalized { proc, others: true } => {
                self.on_client(cx, &proc, Pmix::Leaving);
                done(cx);
            }
            HostOp::ClientFinalized { proc, others: false } => {
                self.on_client(cx, &proc, Pmix::Finalized);
                self.tell_of_tool(cx, &proc);
                done(cx);
            }
            HostOp::ClientLost { proc } => {
                self.on_client(cx, &proc, Pmix::Lost);
                self.tell_of_tool(cx, &proc);
                self.acknowledge_loss(cx, id, proc);
            }
            HostOp::Abort { from, status, message, procs } => {
                self.post(cx, Up::Abort { from, status, message, procs });
                done(cx);
            }
            HostOp::Fence { procs, data, info } => self.on_fence(cx, id, &procs, &info, data),
            HostOp::Connect { procs, info } => {
                self.join_collective(cx, id, Kind::Connect, &procs, &info, None, Part::Nothing);
            }
            HostOp::Disconnect { procs, info } => {
                self.join_collective(cx, id, Kind::Disconnect, &procs, &info, None, Part::Nothing);
            }
            HostOp::GroupConstruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(
                    cx,
                    id,
                    Kind::GroupConstruct,
                    &procs,
                    &info,
                    name,
                    Part::Infos(info.clone()),
                );
            }
            HostOp::GroupDestruct { id: name, procs, info } => {
                let name = Some(name.into());
                self.join_collective(cx, id, Kind::GroupDestruct, &procs, &info, name, Part::Nothing);
            }
            HostOp::DirectModex { proc, info } => self.on_direct_modex(cx, id, proc, &info),
            op @ (HostOp::Publish { .. }
            | HostOp::Lookup { .. }
            | HostOp::Unpublish { .. }
            | HostOp::Spawn { .. }
            | HostOp::RegisterEvents { .. }
            | HostOp::DeregisterEvents { .. }
            | HostOp::Notify { .. }
            | HostOp::Query { .. }
            | HostOp::ToolConnected { .. }
            | HostOp::IofPull { .. }
            | HostOp::IofStop { .. }
            | HostOp::PushStdin { .. }
            | HostOp::GroupAssemble { .. }
            | HostOp::Log { .. }) => self.ask_root(cx, id, op),
            HostOp::JobControl { from, targets, directives } => {
                self.on_job_control(cx, id, from, targets, directives);
            }
            HostOp::Allocate { .. }
            | HostOp::ResourceBlock { .. }
            | HostOp::SessionControl { .. }
            | HostOp::Monitor { .. }
            | HostOp::GetCredential { .. }
            | HostOp::ValidateCredential { .. }
            | HostOp::FabricRegister { .. }
            | HostOp::FabricUpdate { .. } => cx.reply(id, HostReply::Done(Status::ERR_NOT_SUPPORTED)),
        }
    }

    /// The caller is told a status only; the user is told what it was about, once.
    fn tell_unknown(&mut self, cx: &mut Cx<'_>, op: &HostOp, directive: &Key) {
        let function = op.function().unwrap_or_default();
        if self.unknown.len() >= MOST_UNKNOWN || !self.unknown.insert((function, directive.clone())) {
            return;
        }
        let name = attribute(directive.as_str()).map_or("an attribute", |attribute| attribute.name);
        let text =
            format!("{function} was refused: it requires {name} ({directive}), which is not supported");
        self.post(cx, Up::Note { nspace: None, text });
    }
}

/// The first directive that must be honoured and that nobody honours.
fn unknown_directive(op: &mut HostOp) -> Option<Key> {
    if let HostOp::Spawn { apps, .. } = &*op {
        let of_apps = apps.iter().flat_map(|app| &app.info);
        let mut of_job_only = of_apps.filter(|info| info.is_required() && !spawn::is_of_app(info));
        if let Some(info) = of_job_only.next() {
            return Some(info.key.clone());
        }
    }
    let honoured: Vec<&str> = support::honoured(FUNCTIONS, op.function()?)?.collect();
    let mut directives = op.directives_mut().into_iter();
    let unknown = |info: &&mut Info| info.is_required() && !honoured.contains(&info.key.as_str());
    directives.find(unknown).map(|info| info.key.clone())
}

/// Others take part in a collective, and wait: it is to fail for all of them. `false`: it is no collective.
fn fail_collective(op: &mut HostOp) -> bool {
    match op {
        HostOp::Fence { info, .. }
        | HostOp::Connect { info, .. }
        | HostOp::Disconnect { info, .. }
        | HostOp::GroupConstruct { info, .. }
        | HostOp::GroupDestruct { info, .. } => {
            info.insert(0, Info::new(keys::LOCAL_COLLECTIVE_STATUS, Status::ERR_NOT_SUPPORTED));
            true
        }
        _ => false,
    }
}

/// Directives that the user is told of.
const MOST_UNKNOWN: usize = 64;

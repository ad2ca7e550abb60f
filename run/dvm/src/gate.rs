//! What this runtime supports, and what becomes of upcalls that require more.
//!
//! The table of what each function honours is what queries are told of, and what a required directive is looked up in before
//! anything is done.

use std::collections::BTreeSet;

use phalanx_core::HostOp;
use phalanx_core::output::{BUFFER_ATTRIBUTES, FILE_ATTRIBUTES, FORM_ATTRIBUTES};
use phalanx_core::support::{self, Honoured};
use phalanx_spec::{Status, attribute, keys};
use phalanx_wire::{Info, Key};

use crate::local::fence;
use crate::msg::{cleanup, control, environment};
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

/// Looks at the upcalls of our server before anybody acts upon them.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Directives that the user was told of.
    told: BTreeSet<(&'static str, Key)>,
}

/// An upcall that requires what nobody honours.
#[derive(Debug)]
pub(crate) struct Unsupported {
    /// The caller is told a status only; the user is told what it was about, once.
    pub(crate) note: Option<String>,
    /// Others wait for it: it goes on, and is to fail for all of them.
    pub(crate) goes_on: bool,
}

impl Gate {
    pub(crate) fn check(&mut self, op: &mut HostOp) -> Result<(), Unsupported> {
        let Some(directive) = unknown_directive(op) else { return Ok(()) };
        Err(Unsupported { note: self.note(op, &directive), goes_on: fail_collective(op) })
    }

    fn note(&mut self, op: &HostOp, directive: &Key) -> Option<String> {
        let function = op.function().unwrap_or_default();
        if self.told.len() >= MOST_TOLD || !self.told.insert((function, directive.clone())) {
            return None;
        }
        let name = attribute(directive.as_str()).map_or("an attribute", |attribute| attribute.name);
        Some(format!("{function} was refused: it requires {name} ({directive}), which is not supported"))
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
const MOST_TOLD: usize = 64;

//! A get that waits.

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, Key, ProcId};

use super::deliver::Recipient;
use super::known::Waits;
use super::told::is_plain;
use crate::machine::Time;
use crate::qualified::qualifiers;
use crate::server::timers::TimerId;

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) to: Recipient,
    pub(super) target: ProcId,
    pub(super) key: Option<Key>,
    pub(super) info: Vec<Info>,
    /// Any new value of the target will do.
    pub(super) partial: bool,
    pub(super) waits: Waits,
    pub(super) since: Time,
    pub(super) timer: Option<TimerId>,
    /// The status when its time is up.
    pub(super) overdue: Status,
}

impl Pending {
    /// The key by which the host checks whether the wanted values are there.
    pub(super) fn required(&self) -> Option<Key> {
        let key = self.key.as_ref()?;
        let waits_for_any = !qualifiers(&self.info).is_empty() && !key.is_reserved();
        if waits_for_any { Key::new(keys::QUALIFIED_VALUE).ok() } else { Some(key.clone()) }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.to.asker().is_some_and(|asker| is_plain(asker.conn, &self.info))
    }
}

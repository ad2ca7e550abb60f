//! Put: offers values to other processes, from the next commit on.

use phalanx_spec::Scope;
use phalanx_wire::{Kval, Value};

use super::{Client, key};
use crate::error::Error;

impl Client {
    /// Offers a value to other processes, from the next [`commit`](Client::commit) on (`PMIx_Put`). This process sees it at
    /// once. A key that was put before gets the new value.
    pub fn put(&self, scope: Scope, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        let key = key(name)?;
        if key.is_reserved() {
            return Err(Error::ReservedKey { key: name.to_owned() });
        }
        if ![Scope::LOCAL, Scope::REMOTE, Scope::GLOBAL, Scope::INTERNAL].contains(&scope) {
            return Err(Error::Scope(scope));
        }
        self.store.put(scope, Kval { key, value: value.into() });
        Ok(())
    }
}

//! Put: offers values to other processes, from the next commit on.

use phalanx_core::opened_qualified;
use phalanx_spec::{Scope, keys};
use phalanx_wire::{Kval, ProcId, Value};

use super::{Client, key};
use crate::error::Error;

impl Client {
    /// Offers a value to other processes, from the next [`commit`](Client::commit) on (`PMIx_Put`). This process sees it at
    /// once. A key that was put before gets the new value.
    pub fn put(&self, scope: Scope, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        if key(name)?.is_reserved() {
            return Err(Error::ReservedKey { key: name.to_owned() });
        }
        self.put_any(scope, name, value)
    }

    /// Like [`put`](Client::put), for keys of the standard as well: Open MPI 4 puts `pmix.cpuset`. The value of `pmix.qual.val` is
    /// an array of a key with its value and of qualifiers: a get finds it only with that key and exactly these qualifiers.
    pub fn put_any(&self, scope: Scope, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        let key = key(name)?;
        if ![Scope::LOCAL, Scope::REMOTE, Scope::GLOBAL, Scope::INTERNAL].contains(&scope) {
            return Err(Error::Scope(scope));
        }
        let value = value.into();
        if key == keys::QUALIFIED_VALUE && opened_qualified(&value).is_none() {
            let problem = "not an array of a key with its value and at least one qualifier".to_owned();
            return Err(Error::Attribute { key: keys::QUALIFIED_VALUE, problem });
        }
        self.store.put(scope, Kval { key, value });
        Ok(())
    }

    /// Stores a value of any process for this process alone (`PMIx_Store_internal`).
    pub fn store_internal(&self, proc: &ProcId, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        let kval = Kval { key: key(name)?, value: value.into() };
        self.store.keep(proc, kval);
        Ok(())
    }
}

//! Publish, lookup, unpublish: values that are found by key alone.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::{Info, Pdata};

use super::{Client, keys_of, unexpected};
use crate::error::Error;

impl Client {
    /// Publishes values under their keys, for all processes in range (`PMIx_Publish`). Data and directives (`pmix.range`,
    /// `pmix.persist`, `pmix.timeout`) are mixed in `info`.
    pub fn publish(&self, info: &[Info]) -> Result<(), Error> {
        self.done(ClientCall::Publish(Publish { uid: 0, info: info.to_vec() }), || "publish".into())
    }

    /// The values published under these keys (`PMIx_Lookup`). If only some exist, those. With `pmix.wait` the host waits for
    /// the rest.
    pub fn lookup(&self, names: &[&str], info: &[Info]) -> Result<Vec<Pdata>, Error> {
        let call = ClientCall::Lookup(Published { uid: 0, keys: keys_of(names)?, info: info.to_vec() });
        let operation = || format!("lookup of {}", names.join(", "));
        match self.call(call)? {
            ClientReturn::Found(status, data) if status.is_success() || !data.is_empty() => Ok(data),
            // OpenPMIx 5.0 reports that it has found some of the keys, and then does not send them.
            ClientReturn::Found(status, _) => Err(Error::Failed { operation: operation(), status }),
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Removes what this process has published under these keys; none: everything (`PMIx_Unpublish`).
    pub fn unpublish(&self, names: &[&str], info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Unpublish(Published { uid: 0, keys: keys_of(names)?, info: info.to_vec() });
        self.done(call, || format!("unpublish of {}", names.join(", ")))
    }
}

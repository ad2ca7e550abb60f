//! Fence: waits for other processes.

use phalanx_core::ClientCall;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::{Info, ProcId};

use super::{Client, done};
use crate::error::Error;

impl Client {
    /// Waits until all these processes have called it with the same participants; none: the whole job (`PMIx_Fence`).
    ///
    /// With `pmix.collect` (`keys::COLLECT_DATA`) their committed values are exchanged on the way. `pmix.timeout` limits the
    /// wait, in seconds.
    pub fn fence(&self, procs: &[ProcId], info: &[Info]) -> Result<(), Error> {
        let operation = || match procs {
            [] => format!("fence of {}", self.job()),
            _ => format!("fence of {} participants", procs.len()),
        };
        self.done(ClientCall::Fence(Fence { procs: procs.to_vec(), info: info.to_vec() }), operation)
    }

    /// The same without waiting (`PMIx_Fence_nb`): `then` runs where progress is made, and must not block. It does not run if
    /// this call fails.
    pub fn fence_then(
        &self,
        procs: &[ProcId],
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let call = ClientCall::Fence(Fence { procs: procs.to_vec(), info: info.to_vec() });
        self.submit(call, move |result| then(result.and_then(|result| done(result, || "fence".into()))))
    }
}

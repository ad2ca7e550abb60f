//! The host's answer to one request: given once, at once or later, on any thread, even when the server is gone.

use std::marker::PhantomData;

use phalanx_core::{GroupFormed, HostReply};
use phalanx_spec::Status;
use phalanx_wire::{Blob, Info, Nspace, Pdata, ProcId};

use crate::engine::{Afterwards, HostAnswer};

/// The means for a host to answer one request. Dropped unused, it refuses with `PMIX_ERROR` and logs that.
#[must_use = "dropping it refuses the request"]
pub struct Done<T: Outcome> {
    answer: Option<HostAnswer>,
    after: Afterwards,
    operation: &'static str,
    outcome: PhantomData<fn(T)>,
}

/// The type of a request's answer.
pub trait Outcome: Sized {
    #[doc(hidden)]
    fn into_reply(result: Result<Self, Status>) -> HostReply;
}

/// A credential, and infos about it.
pub type Credential = (Blob, Vec<Info>);

impl<T: Outcome> Done<T> {
    pub(super) fn new(answer: HostAnswer, operation: &'static str) -> Done<T> {
        Done { answer: Some(answer), after: Afterwards::default(), operation, outcome: PhantomData }
    }

    /// Grants the request.
    pub fn complete(self, outcome: T) {
        self.end(T::into_reply(Ok(outcome)));
    }

    /// Refuses it. A status that means success is invalid here: it becomes `PMIX_ERROR`.
    pub fn refuse(self, status: Status) {
        let status = if status.is_success() { Status::ERROR } else { status };
        self.end(T::into_reply(Err(status)));
    }

    /// Runs this when the server has taken the answer, grant or refusal: where progress is made, and never before the answering
    /// call has returned. Hosts may hold locks when they answer, and need them again to release what they gave.
    pub fn afterwards(mut self, run: impl FnOnce() + Send + 'static) -> Done<T> {
        self.after = Afterwards::new(run);
        self
    }

    /// The request, in the standard's terms.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    fn end(mut self, reply: HostReply) {
        if let Some(answer) = self.answer.take() {
            answer.send(reply, std::mem::take(&mut self.after));
        }
    }
}

impl Done<Vec<Info>> {
    /// Grants it partly, as the status states, such as `PMIX_QUERY_PARTIAL_SUCCESS`.
    pub fn complete_partly(self, status: Status, outcome: Vec<Info>) {
        self.end(HostReply::Infos(status, outcome));
    }
}

impl<T: Outcome> Drop for Done<T> {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take()
            && answer.send(T::into_reply(Err(Status::ERROR)), std::mem::take(&mut self.after))
        {
            tracing::warn!(
                operation = self.operation,
                "the host dropped a request without an answer: refused"
            );
        }
    }
}

impl<T: Outcome> std::fmt::Debug for Done<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("operation", &self.operation).finish_non_exhaustive()
    }
}

impl Outcome for () {
    fn into_reply(result: Result<(), Status>) -> HostReply {
        HostReply::Done(result.err().unwrap_or(Status::SUCCESS))
    }
}

impl Outcome for Vec<Info> {
    fn into_reply(result: Result<Vec<Info>, Status>) -> HostReply {
        match result {
            Ok(info) => HostReply::Infos(Status::SUCCESS, info),
            Err(status) => HostReply::Infos(status, Vec::new()),
        }
    }
}

macro_rules! outcomes {
    ($($outcome:ty => $reply:ident)+) => {$(
        impl Outcome for $outcome {
            fn into_reply(result: Result<$outcome, Status>) -> HostReply {
                HostReply::$reply(result)
            }
        }
    )+};
}
outcomes! {
    Blob => Modex
    Vec<Pdata> => Lookup
    Nspace => Spawned
    Credential => Credential
    ProcId => ToolAdmitted
    GroupFormed => Group
}

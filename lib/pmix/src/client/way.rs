//! The path of a call to the machine of this process, which is a client's or a tool's.

use std::io;
use std::sync::Arc;

use phalanx_core::{self as core, ClientCall, ClientReturn, HandlerId, ToolCall, ToolReturn};

use crate::engine::{Callback, Engine, Explanation};
use crate::error::Error;

pub(crate) enum Way {
    Client(Engine<core::Client>),
    Tool(Arc<Engine<core::Tool>>),
}

macro_rules! on_either {
    ($way:expr, $engine:ident => $what:expr) => {
        match $way {
            Way::Client($engine) => $what,
            Way::Tool($engine) => $what,
        }
    };
}

impl Way {
    pub(super) fn call(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        match self {
            Way::Client(engine) => engine.call(call),
            Way::Tool(engine) => Ok(of_client(engine.call(ToolCall::Client(call))?)),
        }
    }

    /// As [`Engine::call_after`].
    pub(super) fn call_after(
        &self,
        call: ClientCall,
        before: impl FnOnce(&ClientReturn) + Send + 'static,
    ) -> Result<ClientReturn, Error> {
        match self {
            Way::Client(engine) => engine.call_after(call, before),
            Way::Tool(engine) => {
                let before = move |answer: &ToolReturn| {
                    if let ToolReturn::Client(answer) = answer {
                        before(answer);
                    }
                };
                Ok(of_client(engine.call_after(ToolCall::Client(call), before)?))
            }
        }
    }

    /// Makes the last call of this process, and ends its engine.
    pub(super) fn call_last(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        match self {
            Way::Client(engine) => engine.call_last(call),
            Way::Tool(_) => {
                let result = self.call(call);
                if !matches!(result, Err(Error::OnProgressThread)) {
                    self.stop();
                }
                result
            }
        }
    }

    pub(super) fn call_then(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        match self {
            Way::Client(engine) => engine.call_then(call, then),
            Way::Tool(engine) => {
                engine.call_then(ToolCall::Client(call), move |result| then(result.map(of_client)))
            }
        }
    }

    pub(super) fn keep(&self, callback: Callback) -> Result<HandlerId, Error> {
        on_either!(self, engine => engine.keep(callback))
    }

    pub(super) fn keep_for(&self, handler: HandlerId, callback: Callback) -> Result<(), Error> {
        on_either!(self, engine => engine.keep_for(handler, callback))
    }

    pub(super) fn forget(&self, handler: HandlerId) -> Result<(), Error> {
        on_either!(self, engine => engine.forget(handler))
    }

    pub(super) fn explain(&self) -> Result<Explanation, Error> {
        on_either!(self, engine => engine.explain())
    }

    pub(super) fn hear(&self) {
        on_either!(self, engine => engine.hear());
    }

    pub(super) fn progress(&self) {
        on_either!(self, engine => engine.progress());
    }

    pub(super) fn stop_thread(&self, flushes: bool) {
        on_either!(self, engine => engine.stop_thread(flushes));
    }

    pub(super) fn stop(&self) {
        on_either!(self, engine => engine.stop());
    }

    pub(super) fn abandon(&self) {
        on_either!(self, engine => engine.abandon());
    }

    pub(super) fn take_trouble(&self) -> Option<io::Error> {
        on_either!(self, engine => engine.take_trouble())
    }

    pub(super) fn is_progress_thread(&self) -> bool {
        on_either!(self, engine => engine.is_progress_thread())
    }
}

/// A tool answers a client's calls like a client, unless it has not been initialized.
fn of_client(result: ToolReturn) -> ClientReturn {
    match result {
        ToolReturn::Client(result) => result,
        ToolReturn::Done(status) => ClientReturn::Done(status),
        ToolReturn::Asked(_) | ToolReturn::Attached(_) | ToolReturn::Servers(_) => {
            ClientReturn::Done(phalanx_spec::Status::ERROR)
        }
    }
}

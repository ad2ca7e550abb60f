//! Several servers at once: attach, detach, list, and select the primary one.

use std::time::Duration;

use phalanx_core::{AttachedServer, ToolCall, ToolReturn};
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, ProcId};

use super::Tool;
use super::connect::ServerSearch;
use super::directives::{CONNECTION_ATTRIBUTES, Directives, OWN_ATTRIBUTES, number};
use crate::error::Error;
use crate::support::check_required;

impl Tool {
    /// Attaches to one more server (`PMIx_tool_attach_to_server`), which `info` selects as for [`init`](Tool::init). Servers
    /// that the tool is connected to are passed over. Returns the server's name.
    ///
    /// The new server becomes the primary one with `pmix.pri.srvr`, or if there is no other.
    pub fn attach(&self, info: &[Info]) -> Result<ProcId, Error> {
        self.check_pid()?;
        check_required(info, &[CONNECTION_ATTRIBUTES, OWN_ATTRIBUTES])?;
        let directives = Directives::read(info)?;
        let attached = ServerSearch::new(&self.engine, &directives, &self.hostname, None)?.run()?;
        attached.server.ok_or(Error::Ended)
    }

    /// Leaves a server (`PMIx_tool_disconnect`).
    pub fn detach(&self, server: &ProcId) -> Result<(), Error> {
        self.tool_done(ToolCall::Detach(server.clone()), || format!("disconnection from server {server}"))
    }

    /// The servers of this tool (`PMIx_tool_get_servers`): the primary one first, the others in the order of their attachment.
    pub fn servers(&self) -> Result<Vec<AttachedServer>, Error> {
        self.check_pid()?;
        match self.engine.call(ToolCall::Servers)? {
            ToolReturn::Servers(servers) => Ok(servers),
            _ => Err(Error::Ended),
        }
    }

    pub fn is_connected(&self) -> bool {
        self.servers().is_ok_and(|servers| !servers.is_empty())
    }

    /// Makes one of this tool's servers the primary one (`PMIx_tool_set_server`). With `pmix.wait.conn` it may be attached
    /// later; `pmix.timeout` limits the wait, in seconds.
    pub fn set_server(&self, server: &ProcId, info: &[Info]) -> Result<(), Error> {
        check_required(info, &[SET_ATTRIBUTES])?;
        let timeout = number(info, keys::TIMEOUT)?.filter(|seconds| *seconds > 0);
        let call = ToolCall::SetServer {
            server: server.clone(),
            wait: info.is_set(keys::WAIT_FOR_CONNECTION),
            timeout: timeout.map(|seconds| Duration::from_secs(seconds.into())),
        };
        self.tool_done(call, || format!("making server {server} the primary one"))
    }

    fn tool_done(&self, call: ToolCall, operation: impl FnOnce() -> String) -> Result<(), Error> {
        self.check_pid()?;
        match self.engine.call(call)? {
            ToolReturn::Done(Status::SUCCESS) => Ok(()),
            ToolReturn::Done(status) => Err(Error::Failed { operation: operation(), status }),
            _ => Err(Error::Ended),
        }
    }
}

/// The attributes that `Tool::set_server` honours.
const SET_ATTRIBUTES: &[&str] = &[keys::WAIT_FOR_CONNECTION, keys::TIMEOUT];

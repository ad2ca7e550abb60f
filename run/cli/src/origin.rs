//! Whoever has started this launcher and waits for it: `PMIX_LAUNCHER_RNDZ_URI` names their address, and we connect back.
//!
//! Jobs in somebody else's DVM need none of this: their `px run` is a tool, whose library does the same.

use pmix::{Info, Range, Status, Tool, Value, keys};

use crate::failure::Failure;
use crate::tool;

/// The connection, for as long as this launcher lives. None: nobody waits.
#[derive(Debug)]
pub(crate) struct Origin(Option<Tool>);

impl Origin {
    /// To be called when the warden has been forked: a connection has threads.
    pub(crate) fn of_environment() -> Result<Origin, Failure> {
        let uri = std::env::var("PMIX_LAUNCHER_RNDZ_URI").ok().filter(|uri| !uri.is_empty());
        let Some(uri) = uri else { return Ok(Origin(None)) };
        let info = [Info::new(keys::SERVER_URI, uri), Info::new(keys::LAUNCHER, true)];
        Tool::init(&info).map(|tool| Origin(Some(tool))).map_err(|error| {
            tool::failed("cannot connect back to the process that started this launcher", &error)
                .hint("PMIX_LAUNCHER_RNDZ_URI says where; without it px starts on its own")
        })
    }

    /// Tells them that we take commands, and where.
    pub(crate) fn ready(&self, nspace: &str, uri: &str) {
        let Some(tool) = &self.0 else { return };
        let info = [
            Info::new(keys::SERVER_NSPACE, nspace),
            Info::new(keys::SERVER_URI, uri),
            Info::new(keys::SERVER_PIDINFO, Value::Pid(std::process::id())),
        ];
        if let Err(error) = tool.notify(Status::LAUNCHER_READY, Range::SESSION, &info) {
            tracing::warn!(%error, "whoever has started this launcher does not hear that it is ready");
        }
    }
}

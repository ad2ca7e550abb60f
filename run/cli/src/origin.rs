//! The process that started this launcher and waits for it: `PMIX_LAUNCHER_RNDZ_URI` has its address, and we connect back.
//!
//! Jobs in another process's DVM need none of this: their `px run` is a tool, and its library does the same.

use pmix::{Event, Info, Range, Status, Tool, Value, Verdict, keys};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::tool;

/// The connection, for as long as this launcher lives. None: no process waits for us.
#[derive(Debug)]
pub(crate) struct Origin(Option<Back>);

#[derive(Debug)]
struct Back {
    tool: Tool,
    is_lost: watch::Receiver<bool>,
}

impl Origin {
    /// Must be called after the warden was forked: a connection has threads.
    pub(crate) fn of_environment() -> Result<Origin, Failure> {
        let uri = std::env::var("PMIX_LAUNCHER_RNDZ_URI").ok().filter(|uri| !uri.is_empty());
        let Some(uri) = uri else { return Ok(Origin(None)) };
        let info = [Info::new(keys::SERVER_URI, uri), Info::new(keys::LAUNCHER, true)];
        Back::connect(&info).map(|back| Origin(Some(back))).map_err(|error| {
            tool::failed("cannot connect back to the process that started this launcher", &error)
                .hint("PMIX_LAUNCHER_RNDZ_URI says where; without it px starts on its own")
        })
    }

    /// Returns when that process is gone; never without a connection.
    pub(crate) async fn lost(&self) {
        let Some(back) = &self.0 else { return std::future::pending().await };
        // The connection lives as long as `self`.
        let _ = back.is_lost.clone().wait_for(|is_lost| *is_lost).await;
    }

    /// Announces to that process that we take commands, and where.
    pub(crate) fn ready(&self, nspace: &str, uri: &str) {
        let Some(Back { tool, .. }) = &self.0 else { return };
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

impl Back {
    fn connect(info: &[Info]) -> Result<Back, pmix::Error> {
        let tool = tool::init(info)?;
        let (tell, is_lost) = watch::channel(false);
        let lost = tell.clone();
        tool.register_event_handler(&[Status::ERR_LOST_CONNECTION], &[], move |_: &Event, _: &[Info]| {
            lost.send_replace(true);
            Verdict { status: Status::SUCCESS, results: Vec::new() }
        })?;
        // The connection may have been lost before the handler was registered.
        if !tool.is_connected() {
            tell.send_replace(true);
        }
        Ok(Back { tool, is_lost })
    }
}

//! Publishes the address of this node's server in rendezvous files, so that tools find it.
//!
//! Files that the user asked for by name are written at once; if that fails, the node does not start. The files that tools search for lie in the
//! session directory. They are written when a tool may look for them: when a process has connected, or the node has lived for a moment. Most launches
//! of programs without PMIx end sooner and never need the directory.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use anyhow::{Context, Result};
use phalanx_dvm::Cleanup;
use phalanx_shell::rendezvous::{Announcement, Notice};
use phalanx_wire::Text;
use tokio::time::Instant;

use crate::cleanup::Cleanups;
use crate::session::Session;

/// The rendezvous files of this node. Dropping it removes them.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    /// What is still to be written, and when.
    due: Option<(Instant, Notice)>,
    /// Why it could not be written.
    failed: Option<String>,
    written: Vec<Announcement>,
}

impl Announcer {
    /// Writes the files that the user asked for by name.
    pub(crate) fn new(notice: Option<Notice>) -> Result<Announcer> {
        let Some(notice) = notice else { return Ok(Announcer::default()) };
        let inside = Notice { system_dir: None, files: Vec::new(), ..notice.clone() };
        let outside = Notice { server_dir: None, ..notice };
        let written = match outside.system_dir.is_some() || !outside.files.is_empty() {
            true => vec![Announcement::make(&outside)?],
            false => Vec::new(),
        };
        Ok(Announcer { due: Some((Instant::now() + DELAY, inside)), failed: None, written })
    }

    /// Registers the files outside of the session directory with the warden.
    pub(crate) fn note(&self, session: &mut Session, cleanups: &mut Cleanups) {
        let Some((_, notice)) = &self.due else { return };
        for file in self.written.iter().flat_map(Announcement::files) {
            let file = Text::from_bytes(file.as_os_str().as_bytes());
            cleanups.register(session.dir_if_possible(), &notice.uri.server.nspace, file, Cleanup::File);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due.as_ref().map(|(at, _)| *at)
    }

    /// Writes the files that tools search for, unless it has tried before. The error says why tools cannot find the node.
    pub(crate) fn announce(&mut self, session: &mut Session) -> Result<(), String> {
        if let Some((_, notice)) = self.due.take() {
            match write(&notice, session) {
                Ok(written) => self.written.push(written),
                Err(error) => self.failed = Some(format!("{error:#}")),
            }
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}

fn write(notice: &Notice, session: &mut Session) -> Result<Announcement> {
    let dir = session.dir().display().to_string();
    session.use_dir().with_context(|| format!("cannot make the session directory {dir}"))?;
    Ok(Announcement::make(notice)?)
}

/// Launches that end sooner need no directory. Users cannot name a launcher to a tool any sooner, unless it prints its name.
const DELAY: Duration = Duration::from_millis(20);

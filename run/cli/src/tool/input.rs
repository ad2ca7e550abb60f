//! Our own standard input, pushed to ranks of a server's job. Input that no rank wants stays for the next reader.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::Duration;

use phalanx_shell::stdin::Collection;
use phalanx_wire::cmd::iof::UNTIL_READ;
use pmix::{Info, ProcId, Status, Tool};

use super::choice;

/// The reading, on a thread that ends with the process. It does not keep the tool alive: a push may wait for a rank that never reads.
pub(crate) struct Reading {
    collection: Arc<Collection>,
    /// Disconnected when the reading has ended.
    end: Receiver<()>,
}

impl Reading {
    /// `failed` gets errors other than that no rank wants more.
    pub(crate) fn begin(
        tool: &Arc<Tool>,
        targets: Vec<ProcId>,
        failed: impl Fn(&pmix::Error) + Send + 'static,
    ) -> io::Result<Reading> {
        let mut collection = Collection::new()?;
        // A server that is not ours would take a question for the end of input.
        let is_ours = || choice::lasts(tool).is_some();
        if rustix::termios::isatty(rustix::stdio::stdin()) && is_ours() {
            let (tool, targets) = (Arc::downgrade(tool), targets.clone());
            collection =
                collection.asking(move || push(&tool, &targets, &[], true).map_err(|error| error.status()));
        }
        let collection = Arc::new(collection);
        let (ended, end) = mpsc::channel();
        let tool = Arc::downgrade(tool);
        let mut is_first = true;
        let push = move |data: &[u8]| {
            let _: &mpsc::Sender<()> = &ended;
            let until_read = std::mem::take(&mut is_first) && !data.is_empty();
            push(&tool, &targets, data, until_read).map_err(|error| {
                if !matches!(error.status(), Status(1..) | Status::ERR_NOT_FOUND | Status::ERR_IOF_COMPLETE) {
                    failed(&error);
                }
                error.status()
            })
        };
        collection.clone().spawn(push)?;
        Ok(Reading { collection, end })
    }

    /// The job has ended: waits until what its ranks have read is taken out of our input, or the next reader would get it again.
    pub(crate) fn finish(self) {
        self.collection.stop();
        // A server of ours answers all pushes at the end of a job.
        let _ = self.end.recv_timeout(PATIENCE);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.collection.stop();
    }
}

/// `until_read`: returns when a rank has read it, or waits for input if there is none.
fn push(tool: &Weak<Tool>, targets: &[ProcId], data: &[u8], until_read: bool) -> Result<(), pmix::Error> {
    let gone = || pmix::Error::Failed { operation: "push of input".into(), status: Status::ERR_NOT_FOUND };
    let tool = tool.upgrade().ok_or_else(gone)?;
    let directives = [Info::new(UNTIL_READ, true)];
    tool.iof_push(targets, data, if until_read { &directives } else { &[] })
}

const PATIENCE: Duration = Duration::from_secs(5);

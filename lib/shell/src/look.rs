//! Files watched from outside.

use std::thread;

use phalanx_core::FileLook;
use rustix::fs::{Stat, stat};

/// Examines a file on a thread of its own, since its file system may not answer for long, and passes the result to `told`. `None`: the
/// file does not exist, or cannot be examined. Returns `false` if no thread could be started; then `told` is not called.
#[must_use]
pub fn look_at(path: String, told: impl FnOnce(Option<FileLook>) + Send + 'static) -> bool {
    let look = move || told(stat(path.as_str()).ok().as_ref().map(seen));
    let thread = thread::Builder::new().name("look".to_owned()).stack_size(STACK).spawn(look);
    thread.inspect_err(|error| tracing::warn!(%error, "cannot look at a file")).is_ok()
}

fn seen(stat: &Stat) -> FileLook {
    FileLook {
        identity: (stat.st_dev, stat.st_ino),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        accessed: (stat.st_atime, i64::try_from(stat.st_atime_nsec).unwrap_or(0)),
        modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
    }
}

const STACK: usize = 64 << 10;

//! Files watched from outside.

use std::thread;

use phalanx_core::FileLook;
use rustix::fs::{
    AtFlags, CWD, Stat, StatVfsMountFlags, Timespec, Timestamps, UTIME_OMIT, stat, statvfs, utimensat,
};

/// Examines a file on a thread of its own, since its file system may not answer for long, and passes the result to `told`. `None`: the
/// file does not exist, or cannot be examined. Returns `false` if no thread could be started; then `told` is not called.
///
/// `reads`: the time of access must be another one when the file has been read next. Most file systems set it at a read only if it is not later than
/// the last change (`relatime`), so the file is changed in nothing but the time of its last change. Where that is not possible, or reading leaves no
/// trace, each look shows an access: no alert is better than a false one.
#[must_use]
pub fn look_at(path: String, reads: bool, told: impl FnOnce(Option<FileLook>) + Send + 'static) -> bool {
    let look = move || {
        let mut look = stat(path.as_str()).ok().as_ref().map(seen);
        if let Some(look) = look.as_mut().filter(|look| reads && !shows_next_read(&path, look.accessed)) {
            look.accessed = now();
        }
        told(look);
    };
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

/// Arranges that the next read changes the time of access.
fn shows_next_read(path: &str, (seconds, nanoseconds): (i64, i64)) -> bool {
    let Ok(mount) = statvfs(path) else { return false };
    if mount.f_flag.contains(StatVfsMountFlags::NOATIME) {
        return false;
    }
    if !mount.f_flag.contains(StatVfsMountFlags::RELATIME) {
        return true;
    }
    let times = Timestamps {
        last_access: Timespec { tv_sec: seconds, tv_nsec: nanoseconds },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    };
    let set = utimensat(CWD, path, &times, AtFlags::empty());
    set.inspect_err(|error| tracing::warn!(path, %error, "cannot see whether this file is read")).is_ok()
}

fn now() -> (i64, i64) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    (now.tv_sec, now.tv_nsec)
}

const STACK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_read_of_a_file_shows() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        std::fs::write(&file, "text").expect("a file");
        let look = || {
            let (tell, told) = mpsc::channel();
            let path = file.to_str().expect("a path").to_owned();
            assert!(look_at(path, true, move |look| tell.send(look).expect("a test")));
            told.recv().expect("an answer").expect("a file")
        };
        let mut before = look();
        for _ in 0..3 {
            // The kernel's clock for files ticks a few times a second at worst.
            while rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse).tv_nsec
                == before.accessed.1
            {}
            std::fs::read(&file).expect("a file");
            let after = look();
            assert!(after.accessed != before.accessed, "{after:?}");
            before = after;
        }
    }
}

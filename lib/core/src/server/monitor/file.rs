//! A file that gives signs of life by its changes.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::{InfoList, Value};

use crate::machine::FileLook;

#[derive(Clone, Debug)]
pub(super) struct WatchedFile {
    /// As the request names it, and where it is.
    name: String,
    path: String,
    size: bool,
    access: bool,
    modify: bool,
    last: Last,
    /// A look is under way.
    is_looked_at: bool,
}

/// The result of the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Last {
    Never,
    Missing,
    Like(FileLook),
}

/// The comparison with the last look.
pub(super) enum Seen {
    /// There was no earlier look.
    First,
    Changed,
    Same,
}

impl WatchedFile {
    /// The files of a request, and which of their changes count. Older releases put the path into the kind of change, too.
    /// `pid`: the process whose directory relative paths begin at.
    pub(super) fn all(request: &Monitor, pid: Option<u32>) -> Result<Vec<WatchedFile>, Status> {
        let wants =
            |key| request.directives.find(key).is_some_and(|value| path(value).is_some() || value.is_true());
        let (size, access) = (wants(keys::MONITOR_FILE_SIZE), wants(keys::MONITOR_FILE_ACCESS));
        // By default, modifications count.
        let modify = wants(keys::MONITOR_FILE_MODIFY) || !(size || access);
        let kinds = [keys::MONITOR_FILE_ACCESS, keys::MONITOR_FILE_MODIFY];
        let paths = match &request.what.value {
            Value::DataArray(array) => array.items.iter().map(path).collect::<Option<Vec<_>>>(),
            value => path(value)
                .or_else(|| kinds.iter().find_map(|kind| path(request.directives.find(kind)?)))
                .map(|path| vec![path]),
        };
        let paths = paths.filter(|paths| !paths.is_empty()).ok_or(Status::ERR_BAD_PARAM)?;
        let file = |name: String| {
            let path = match pid.filter(|_| !name.starts_with('/')) {
                Some(pid) => format!("/proc/{pid}/cwd/{name}"),
                None => name.clone(),
            };
            WatchedFile { name, path, size, access, modify, last: Last::Never, is_looked_at: true }
        };
        Ok(paths.into_iter().map(file).collect())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its being read is a sign of life.
    pub(super) fn counts_reads(&self) -> bool {
        self.access
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path to look at now; `None` while a look is under way.
    pub(super) fn look(&mut self) -> Option<String> {
        (!std::mem::replace(&mut self.is_looked_at, true)).then(|| self.path.clone())
    }

    /// A file that appears, reappears or is replaced has changed; a missing one has not.
    pub(super) fn seen(&mut self, look: Option<FileLook>) -> Seen {
        self.is_looked_at = false;
        let now = look.map_or(Last::Missing, Last::Like);
        let before = std::mem::replace(&mut self.last, now.clone());
        match (before, now) {
            (Last::Never, _) => Seen::First,
            (_, Last::Missing | Last::Never) => Seen::Same,
            (Last::Missing, Last::Like(_)) => Seen::Changed,
            (Last::Like(before), Last::Like(now)) => {
                let is_other = before.identity != now.identity;
                let is_new = (self.size && before.size != now.size)
                    || (self.access && before.accessed != now.accessed)
                    || (self.modify && before.modified != now.modified);
                if is_other || is_new { Seen::Changed } else { Seen::Same }
            }
        }
    }
}

fn path(value: &Value) -> Option<String> {
    value.as_str().filter(|path| !path.is_empty()).map(str::to_owned)
}

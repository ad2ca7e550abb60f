//! `--report`: where the exit report goes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_shell::files::Outlet;

use crate::failure::Failure;

/// Where the exit report goes.
#[derive(Debug)]
pub(crate) enum ExitReport {
    /// `-`
    StandardOutput,
    File(PathBuf),
    /// Open from the beginning: a pipe without a reader would stop px at the end.
    Outlet(PathBuf, Outlet),
}

impl ExitReport {
    pub(crate) fn to(path: &Path) -> Result<ExitReport, Failure> {
        if path.as_os_str() == "-" {
            return Ok(ExitReport::StandardOutput);
        }
        match Outlet::open(path) {
            Ok(Some(outlet)) => Ok(ExitReport::Outlet(path.to_owned(), outlet)),
            Ok(None) => Ok(ExitReport::File(path.to_owned())),
            Err(error) => Err(cannot_write(path).because(error)),
        }
    }

    /// Does nothing for standard output, which is written together with the ranks' output.
    pub(crate) fn write(self, text: &str, patience: Duration) -> Result<(), Failure> {
        let (path, written) = match self {
            ExitReport::StandardOutput => return Ok(()),
            ExitReport::File(path) => {
                let written = std::fs::write(&path, text);
                (path, written)
            }
            ExitReport::Outlet(path, outlet) => (path, outlet.write_patiently(text.as_bytes(), patience)),
        };
        written.map_err(|error| cannot_write(&path).because(error))
    }
}

fn cannot_write(path: &Path) -> Failure {
    Failure::new(format!("cannot write the report '{}'", path.display()))
}

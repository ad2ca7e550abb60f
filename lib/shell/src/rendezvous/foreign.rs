//! Files of other users where root's server should be found. No tool trusts such a file, so it must not block the server.

use std::io;

use rustix::fs::{FileType, Stat};
use rustix::process::geteuid;

use super::spot::Spot;

/// Removes another user's file that is in root's way; returns whether there was one. Directories stay.
pub(super) fn displace(spot: &Spot, aside: &Spot) -> io::Result<bool> {
    let may_go =
        |stat: &Stat| stat.st_uid != 0 && FileType::from_raw_mode(stat.st_mode) != FileType::Directory;
    if !geteuid().is_root() || !spot.stat().as_ref().is_some_and(may_go) {
        return Ok(false);
    }
    spot.rename_to(aside)?;
    if aside.stat().as_ref().is_some_and(may_go) {
        aside.remove()?;
    } else {
        // Another server of root's was faster.
        aside.rename_to(spot)?;
    }
    Ok(true)
}

//! The processes that a cluster is made of. They are the program `cluster` under another first argument.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{inside, join, world};

pub(crate) const WORLD: &str = "role-world";
pub(crate) const HOST: &str = "role-host";
pub(crate) const JOIN: &str = "role-join";

/// Plays a part of a cluster, if the arguments say so.
pub fn run_role(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let (role, rest) = arguments.split_first()?;
    match role.to_str()? {
        WORLD => Some(world::run(rest).map(|()| ExitCode::SUCCESS)),
        HOST => Some(inside::run(rest).map(|()| ExitCode::SUCCESS)),
        JOIN => Some(join::run(rest)),
        _ => None,
    }
}

/// A word of the command line that a role was started with.
pub(crate) fn word(words: &[OsString], at: usize) -> Result<&str> {
    match words.get(at).and_then(|word| word.to_str()) {
        Some(word) => Ok(word),
        None => bail!("the role was started without its argument {at}"),
    }
}

//! The processes that clusters and worlds consist of. They run the program `cluster`, or another that calls [`run_role`] first, with
//! a role as the first argument.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{alone, bare, emptied, inside, join, world};

pub(crate) const ALONE: &str = "role-alone";
pub(crate) const BARE: &str = "role-bare";
pub(crate) const EMPTIED: &str = "role-emptied";
pub(crate) const WORLD: &str = "role-world";
pub(crate) const HOST: &str = "role-host";
pub(crate) const JOIN: &str = "role-join";

/// Plays the role that the first argument names, if it names one.
pub fn run_role(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let (role, rest) = arguments.split_first()?;
    match role.to_str()? {
        ALONE => Some(alone::run(rest)),
        BARE => Some(bare::run(rest)),
        EMPTIED => Some(emptied::run(rest)),
        WORLD => Some(world::run(rest).map(|()| ExitCode::SUCCESS)),
        HOST => Some(inside::run(rest).map(|()| ExitCode::SUCCESS)),
        JOIN => Some(join::run(rest)),
        _ => None,
    }
}

/// An argument of the role.
pub(crate) fn word(words: &[OsString], at: usize) -> Result<&str> {
    match words.get(at).and_then(|word| word.to_str()) {
        Some(word) => Ok(word),
        None => bail!("the role was started without its argument {at}"),
    }
}

//! `px completions SHELL`: the completion script, generated from the table of options.

use clap::CommandFactory;

use crate::args::{CompletionsArgs, Px};
use crate::failure::Failure;

pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Px::command(), "px", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}

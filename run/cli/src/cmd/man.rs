//! `px man [DIR]`: the man pages, made from the table of options.

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{ManArgs, Px};
use crate::failure::Failure;

pub(crate) fn run(args: &ManArgs) -> Result<u8, Failure> {
    let mut px = Px::command();
    px.build();
    match &args.dir {
        None => super::print(&page(&run_page(&px))?.1),
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .map_err(|e| Failure::new(format!("cannot make '{}'", dir.display())).because(e))?;
            write(dir, &px)?;
            px.get_subcommands()
                .filter(|command| !command.is_hide_set())
                .flat_map(|command| std::iter::once(command).chain(command.get_subcommands()))
                .filter(|command| command.get_name() != "help")
                .try_for_each(|command| write(dir, command))?;
            Ok(0)
        }
    }
}

fn run_page(px: &clap::Command) -> clap::Command {
    px.find_subcommand("run").cloned().unwrap_or_else(|| px.clone())
}

fn write(dir: &Path, command: &clap::Command) -> Result<(), Failure> {
    let (name, page) = page(command)?;
    let path = dir.join(name);
    std::fs::write(&path, page)
        .map_err(|e| Failure::new(format!("cannot write '{}'", path.display())).because(e))
}

/// `px-run.1` and its text.
fn page(command: &clap::Command) -> Result<(String, Vec<u8>), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(name.clone())
        .render(&mut page)
        .map_err(|e| Failure::new("cannot make a man page").because(e))?;
    Ok((format!("{name}.1"), page))
}

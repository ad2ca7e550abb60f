//! `px man [DIR]`: the man pages, generated from the table of options and from [`sections`].

mod sections;

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::args::{ManArgs, Px};
use crate::compat::mpirun;
use crate::failure::Failure;
use sections::{Row, Sections};

pub(crate) fn run(args: &ManArgs) -> Result<u8, Failure> {
    let mut px = Px::command();
    px.build();
    let Some(dir) = &args.dir else {
        return super::print(&String::from_utf8_lossy(&page(&run_page(&px))?.1));
    };
    std::fs::create_dir_all(dir)
        .map_err(|e| Failure::new(format!("cannot make '{}'", dir.display())).because(e))?;
    write(dir, page(&px)?)?;
    for command in pages(&px) {
        write(dir, page(command)?)?;
    }
    write(dir, mpirun_page()?)
}

/// The commands with a page of their own.
fn pages(px: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    px.get_subcommands()
        .filter(|command| !command.is_hide_set())
        .flat_map(|command| std::iter::once(command).chain(command.get_subcommands()))
        .filter(|command| command.get_name() != "help")
}

fn run_page(px: &clap::Command) -> clap::Command {
    px.find_subcommand("run").cloned().unwrap_or_else(|| px.clone())
}

fn write(dir: &Path, (name, text): (String, Vec<u8>)) -> Result<u8, Failure> {
    let path = dir.join(name);
    std::fs::write(&path, text)
        .map_err(|e| Failure::new(format!("cannot write '{}'", path.display())).because(e))?;
    Ok(0)
}

/// `px-run.1` and its text.
fn page(command: &clap::Command) -> Result<(String, Vec<u8>), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = Vec::new();
    sections_of(command, &name, &mut text).map_err(|e| Failure::new("cannot make a man page").because(e))?;
    Ok((format!("{name}.1"), text))
}

fn sections_of(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let man = Man::new(command.clone()).title(name);
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    render(&sections::of(name)).to_writer(page)
}

/// The page of px's dialect under the names `mpirun`, `mpiexec` and `prterun`.
fn mpirun_page() -> Result<(String, Vec<u8>), Failure> {
    let mut page = Roff::default();
    let version = format!("px {}", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["px-mpirun", "1", "", version.as_str()]);
    page.control("SH", ["NAME"]);
    page.text([roman("px-mpirun - px, called as mpirun, mpiexec or prterun")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("mpirun"), roman(" [OPTIONS] PROGRAM [ARG]... [: [OPTIONS] PROGRAM [ARG]...]...")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "Under one of these names px understands the options of Open MPI's mpirun, PRRTE's prterun and MPICH's \
         mpiexec, with one dash or two. The command line becomes the same request as that of px run. \
         An option that px does not understand is refused.",
    )]);
    page.control("SH", ["OPTIONS"]);
    for (option, help) in mpirun::options() {
        entry(&mut page, vec![bold(option)], help);
    }
    let mut text = Vec::new();
    page.to_writer(&mut text)
        .and_then(|()| render(&sections::of("px-mpirun")).to_writer(&mut text))
        .map_err(|e| Failure::new("cannot make a man page").because(e))?;
    Ok(("px-mpirun.1".to_owned(), text))
}

fn render(sections: &Sections) -> Roff {
    let mut page = Roff::default();
    table(&mut page, "SIGNALS", sections.signals);
    table(&mut page, "EXIT STATUS", sections.exit_status);
    table(&mut page, "ENVIRONMENT", sections.environment);
    table(&mut page, "FILES", sections.files);
    table(&mut page, "EXAMPLES", sections.examples);
    if !sections.see_also.is_empty() {
        page.control("SH", ["SEE ALSO"]);
        let mut names = Vec::new();
        for (index, name) in sections.see_also.iter().enumerate() {
            names.extend([roman(if index > 0 { ", " } else { "" }), bold(*name), roman("(1)")]);
        }
        page.text(names);
    }
    page
}

fn table(page: &mut Roff, heading: &str, rows: &[Row]) {
    if !rows.is_empty() {
        page.control("SH", [heading]);
    }
    for (term, meaning) in rows {
        entry(page, vec![bold(*term)], meaning);
    }
}

fn entry(page: &mut Roff, term: Vec<Inline>, meaning: &str) {
    page.control("TP", []);
    page.text(term);
    page.text([roman(meaning)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use clap::Parser;

    use super::*;
    use crate::args::split;

    fn names() -> BTreeSet<String> {
        let mut px = Px::command();
        px.build();
        let shown = |command: &clap::Command| command.get_display_name().unwrap_or("px").to_owned();
        let mut names: BTreeSet<String> = pages(&px).map(shown).collect();
        names.extend(["px".to_owned(), "px-mpirun".to_owned()]);
        names
    }

    #[test]
    fn every_page_has_examples_and_no_other_page_is_described() {
        let described: BTreeSet<String> =
            sections::PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(described, names());
        for (name, sections) in sections::PAGES {
            assert!(!sections.examples.is_empty(), "{name}");
        }
    }

    #[test]
    fn examples_are_valid_command_lines() {
        for (example, _) in sections::PAGES.iter().flat_map(|(_, sections)| sections.examples) {
            let words: Vec<OsString> = example.split(' ').map(OsString::from).collect();
            let (program, args) = words.split_first().expect("a program");
            let refused = match (mpirun::dialect(program), args) {
                (Some(name), _) => mpirun::parse(name, args.to_vec(), None).err().map(|e| e.message),
                (None, [run, args @ ..]) if run == "run" => {
                    split::run_line(args.to_vec()).err().map(|refusal| format!("{refusal:?}"))
                }
                (None, _) => Px::try_parse_from(&words).err().map(|e| e.to_string()),
            };
            assert_eq!(refused, None, "{example}");
        }
    }

    #[test]
    fn related_pages_exist() {
        let names = names();
        for page in sections::PAGES.iter().flat_map(|(_, sections)| sections.see_also) {
            assert!(names.contains(*page), "{page}");
        }
    }
}

//! `cargo xtask`: the project's own chores.
//!
//! One file per chore, one row in [`CHORES`] each. A chore gets the arguments after its name and either succeeds or
//! reports an error; nothing here ends up in a product.

mod abi;
mod bench;
mod cargo;
mod ci;
mod circles;
mod cluster;
mod debian;
mod deps;
mod dist;
mod fuzz;
mod r#gen;
mod report;
mod slowest;
mod sources;
mod survey;
mod test;
mod words;
mod world;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

struct Chore {
    name: &'static str,
    usage: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "ci",
        usage: "ci [--strict]",
        summary: "check everything: what a change has to pass",
        run: ci::run,
    },
    Chore {
        name: "test",
        usage: test::USAGE,
        summary: "run the tests; without --no-peers also those against programs of others, which root gets installed",
        run: test::run,
    },
    Chore {
        name: "bench",
        usage: "bench [SUBJECT..] [OPTION..]",
        summary: "measure px beside other launchers and print ratios; `bench --help` names what there is",
        run: bench::run,
    },
    Chore {
        name: "cluster",
        usage: "cluster [-n HOSTS] [--networks N] [--slurm] [--] [COMMAND [ARGUMENT..]]",
        summary: "run a command over several hosts that are made on this machine, with ssh between them; as root",
        run: cluster::run,
    },
    Chore {
        name: "gen",
        usage: "gen [--check]",
        summary: "write the generated sources; with --check only tell whether they are current",
        run: r#gen::run,
    },
    Chore {
        name: "dist",
        usage: "dist [--dev]",
        summary: "put together what is installed: px, library, headers, man pages, completions, the guide; and Debian packages; with --dev unoptimized",
        run: dist::run,
    },
    Chore {
        name: "abi",
        usage: "abi [FILE..]",
        summary: "check which systems libpmix.so.2, or these files, can be loaded on",
        run: abi::run,
    },
    Chore {
        name: "fuzz",
        usage: "fuzz [TARGET..] [--seconds N]",
        summary: "look for inputs that decoders and machines do not stand, so long for each target",
        run: fuzz::run,
    },
    Chore {
        name: "survey",
        usage: "survey",
        summary: "ask launchers of others what they do with our tools, and print a table: by hand, when a peer has changed",
        run: survey::run,
    },
    Chore { name: "deps", usage: "deps", summary: "check who depends on whom", run: deps::run },
    Chore {
        name: "sources",
        usage: "sources",
        summary: "check length and names of files, and where unsafe is used",
        run: sources::run,
    },
    Chore {
        name: "words",
        usage: "words [--list]",
        summary: "check that comments and documents name their subjects; with --list print the counts",
        run: words::run,
    },
];

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let args: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match phalanx_cluster::run_role(&words).unwrap_or_else(|| dispatch(&args).map(|()| ExitCode::SUCCESS)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else { bail!("no chore named\n{}", usage()) };
    if matches!(name.as_str(), "-h" | "--help" | "help") {
        println!("{}", usage());
        return Ok(());
    }
    match CHORES.iter().find(|chore| chore.name == name) {
        Some(chore) => (chore.run)(rest),
        None => bail!("unknown chore {name:?}\n{}", usage()),
    }
}

fn usage() -> String {
    let width = CHORES.iter().map(|chore| chore.usage.len()).max().unwrap_or(0);
    let mut text = String::from("usage: cargo xtask CHORE [ARGUMENT..]\n");
    for chore in CHORES {
        text += &format!("\n  {:width$}  {}", chore.usage, chore.summary);
    }
    text
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
}

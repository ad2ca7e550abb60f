//! `cargo xtask sources`: rules for our sources that the compiler does not check.
//!
//! Files stay short enough to read, names of files are specific, and `unsafe` appears only in the
//! files that [`UNSAFE_FILES`] lists. Generated files are exempt from the first rule.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::circles;

/// Files that use the operating system or C programs' pointers in ways that need `unsafe`. Keep it short.
const UNSAFE_FILES: &[&str] = &[
    "dev/cluster/src/join.rs",
    "dev/testkit/tests/footprint/main.rs",
    "lib/capi/src/client/spawn.rs",
    "lib/capi/src/cmem.rs",
    "lib/capi/src/data.rs",
    "lib/capi/src/element.rs",
    "lib/capi/src/frameworks.rs",
    "lib/capi/src/from_c.rs",
    "lib/capi/src/guard.rs",
    "lib/capi/src/hwloc.rs",
    "lib/capi/src/instance.rs",
    "lib/capi/src/names.rs",
    "lib/capi/src/pointer.rs",
    "lib/capi/src/release.rs",
    "lib/capi/src/server/args.rs",
    "lib/capi/src/server/module.rs",
    "lib/capi/src/strings.rs",
    "lib/capi/src/structs.rs",
    "lib/capi/src/to_c.rs",
    "lib/capi/src/value.rs",
    "lib/pmix/src/forked.rs",
    "lib/pmix/tests/process/ranks.rs",
    "lib/pmix/tests/process/waits.rs",
    "lib/shell/src/thread.rs",
    "lib/wire/tests/allocations.rs",
    "run/node/src/link/kernel.rs",
    "run/node/src/sink.rs",
    "run/node/src/spawn/bind.rs",
    "run/node/src/spawn/child.rs",
    "run/node/src/spawn/env.rs",
    "run/node/src/spawn/mod.rs",
    "run/node/src/startup.rs",
    "run/node/src/warden.rs",
    "run/node/src/watched.rs",
    "run/node/tests/real/launcher.rs",
    "run/node/tests/real/scenarios/surroundings.rs",
];

const MOST_LINES: usize = 800;

const NAMELESS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];

/// Folders inside a crate that may use only these other parts of it; they receive everything else as arguments.
const ROOMS: &[(&str, &[&str])] = &[
    ("run/dvm/src/encoding", &[]),
    ("run/dvm/src/local", &["config", "effect", "environment", "id", "msg", "ranges", "signals", "timers"]),
    ("run/dvm/src/msg", &["column", "encoding", "hosts", "id", "ranges", "signals"]),
    ("run/dvm/src/overlay", &["encoding", "id", "ranges", "timers"]),
    (
        "run/dvm/src/root",
        &[
            "column", "config", "hosts", "id", "job", "map", "models", "msg", "ranges", "report", "signals",
            "spawn", "timers",
        ],
    ),
    (
        "run/dvm/src/start",
        &["config", "effect", "encoding", "fleet", "hosts", "id", "msg", "signals", "timers"],
    ),
];

/// Folders in which each kind of tests is one binary: a folder with a `main.rs`.
const TESTS_IN_FOLDERS: &[&str] =
    &["dev/cluster/tests", "dev/interop/tests", "dev/testkit/tests", "run/cli/tests"];

const WINGS: &[&str] = &["lib", "run", "dev"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "sources takes no arguments");
    let mut faults = Vec::new();
    for wing in WINGS {
        visit(Path::new(wing), &mut faults)?;
    }
    circles::check(&mut faults)?;
    for listed in UNSAFE_FILES {
        let text = fs::read_to_string(crate::root().join(listed)).unwrap_or_default();
        if !text.lines().any(is_unsafe) {
            faults
                .push(format!("{listed}: needs no unsafe; take it off the list in dev/xtask/src/sources.rs"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("sources that break the rules:\n{}", faults.join("\n")),
    }
}

/// Checks everything below `dir`, a path relative to the root.
fn visit(dir: &Path, faults: &mut Vec<String>) -> Result<()> {
    let listing =
        fs::read_dir(crate::root().join(dir)).with_context(|| format!("listing {}", dir.display()))?;
    let mut entries = listing.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = dir.join(entry.file_name());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if NAMELESS.contains(&stem.as_str()) {
            faults.push(format!("{}: the name says nothing about what is inside", path.display()));
        }
        if entry.file_type()?.is_dir() {
            if stem != "target" {
                visit(&path, faults)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("reading {}", path.display()))?;
            check(&path, &text, faults);
        }
    }
    Ok(())
}

fn check(path: &Path, text: &str, faults: &mut Vec<String>) {
    let shown = path.display();
    let generated = path.parent().is_some_and(|dir| dir.ends_with("src/gen"));
    if path.parent().is_some_and(|dir| TESTS_IN_FOLDERS.iter().any(|tests| dir == Path::new(tests))) {
        faults.push(format!(
            "{shown}: would be linked as a binary of its own; move it into a folder beside it"
        ));
    }
    let lines = text.lines().count();
    if lines > MOST_LINES && !generated {
        faults.push(format!("{shown}: {lines} lines, at most {MOST_LINES}"));
    }
    if !UNSAFE_FILES.iter().any(|listed| Path::new(listed) == path) {
        for (index, _) in text.lines().enumerate().filter(|(_, line)| is_unsafe(line)) {
            faults.push(format!("{shown}:{}: unsafe outside of the files that may use it", index + 1));
        }
    }
    for (room, may_use) in ROOMS.iter().filter(|(room, _)| path.starts_with(room)) {
        let own = Path::new(room).file_name().unwrap_or_default().to_string_lossy();
        for (index, part) in parts_used(text).filter(|(_, part)| *part != own && !may_use.contains(part)) {
            faults.push(format!("{shown}:{}: {room} must not know crate::{part}", index + 1));
        }
    }
}

/// The parts of its own crate that a file names, with their line numbers.
fn parts_used(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code =
        text.lines().enumerate().map(|(index, line)| (index, line.split("//").next().unwrap_or_default()));
    code.flat_map(|(index, line)| {
        line.split("crate::").skip(1).map(move |rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (index, &rest[..end])
        })
    })
}

/// Whether a line opens something unsafe: a block, a function, an implementation, an attribute.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].trim_start();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '"')
            && (after.is_empty()
                || after.starts_with(['{', '('])
                || ["fn ", "impl ", "impl<", "extern ", "trait "].iter().any(|next| after.starts_with(next)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_distinguished_from_mentions_of_it() {
        let word = "unsafe";
        for line in
            ["    ? { f() }", "pub ? fn f() {", "#[?(no_mangle)]", "? impl<T> Send for X<T> {}", "    ?"]
        {
            assert!(is_unsafe(&line.replace('?', word)), "{line}");
        }
        for line in ["#![forbid(?_code)]", "// ? { }", "let ?_files = 1;", "\"?\"", "not ? at all"] {
            assert!(!is_unsafe(&line.replace('?', word)), "{line}");
        }
    }

    #[test]
    fn rooms_know_only_what_they_may() {
        let path = Path::new("run/dvm/src/overlay/post.rs");
        let mut faults = Vec::new();
        check(path, "use crate::ranges::Ranges;\n// crate::root\nuse crate::overlay::Tree;", &mut faults);
        assert!(faults.is_empty(), "{faults:?}");
        check(path, "\nfn f(root: &crate::root::Root) {}", &mut faults);
        assert_eq!(faults, ["run/dvm/src/overlay/post.rs:2: run/dvm/src/overlay must not know crate::root"]);
    }

    #[test]
    fn long_files_are_found() {
        let mut faults = Vec::new();
        check(Path::new("lib/core/src/fence.rs"), &"\n".repeat(MOST_LINES), &mut faults);
        assert!(faults.is_empty());
        check(Path::new("lib/core/src/fence.rs"), &"\n".repeat(MOST_LINES + 1), &mut faults);
        assert_eq!(faults, ["lib/core/src/fence.rs: 801 lines, at most 800"]);
    }
}

//! `cargo xtask gen`: turns `lib/spec/data/*.toml` into checked-in sources: Rust below `lib/spec/src/gen`, the structs of the
//! C interface, parts of its headers, the list of its library's exports.
//!
//! [`data`] and [`abi`] read the data; [`rust`], [`layout`] and [`c`] turn it into text; this file only compares and writes. A test makes
//! the same comparison, so a change of the data without its sources does not pass.

mod abi;
mod c;
mod data;
mod layout;
mod rust;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const DATA: &str = "lib/spec/data";
const SOURCES: &str = "lib/spec/src/gen";
const LAYOUT: &str = "lib/capi/src/gen/layout.rs";
const NAMES: &str = "lib/capi/src/gen/name_block.rs";
const EXPORTS: &str = "lib/libpmix/exports.txt";
const CHECKS: &str = "lib/libpmix/tests/c";
const INCLUDE: &str = "lib/libpmix/include";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("gen takes only --check"),
    };
    let root = crate::root();
    let stale = stale(root)?;
    if check {
        return match stale.is_empty() {
            true => Ok(()),
            false => bail!("{}\nhint: run `cargo xtask gen`", explain(root, &stale)),
        };
    }
    for (path, text) in &stale {
        let target = root.join(path);
        match text {
            Some(text) => fs::write(&target, text),
            None => fs::remove_file(&target),
        }
        .with_context(|| format!("writing {path}"))?;
        println!("{path}");
    }
    Ok(())
}

/// Files that differ from the data: path below the root, and the text it should have (none: it should not exist).
fn stale(root: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let spec = data::Spec::read(&root.join(DATA))?;
    let abi = abi::Abi::read(&root.join(DATA))?;
    let wanted = rust::sources(&spec)?;
    let dir = root.join(SOURCES);
    fs::create_dir_all(&dir).with_context(|| format!("creating {SOURCES}"))?;
    let mut stale = BTreeMap::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("listing {SOURCES}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !wanted.contains_key(name.as_str()) {
            stale.insert(format!("{SOURCES}/{name}"), None);
        }
    }
    for (name, text) in wanted {
        if fs::read_to_string(dir.join(name)).ok().as_deref() != Some(&text) {
            stale.insert(format!("{SOURCES}/{name}"), Some(text));
        }
    }
    let mut elsewhere = vec![
        (LAYOUT.to_owned(), layout::source(&abi)?),
        (NAMES.to_owned(), layout::names(&spec)),
        (EXPORTS.to_owned(), c::exports(&abi)),
        (format!("{CHECKS}/layout.c"), c::layout_check(&spec, &abi)),
        (format!("{CHECKS}/exports.c"), c::exports_check(&abi)),
    ];
    for name in c::HEADERS {
        let path = format!("{INCLUDE}/{name}");
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        elsewhere.push((path, c::header(name, &text, &spec, &abi)?));
    }
    for (path, text) in elsewhere {
        if fs::read_to_string(root.join(&path)).ok().as_deref() != Some(&text) {
            stale.insert(path, Some(text));
        }
    }
    Ok(stale)
}

/// Names each stale file with the first line that differs.
fn explain(root: &Path, stale: &BTreeMap<String, Option<String>>) -> String {
    let mut text = String::from("generated sources are not current:");
    for (path, wanted) in stale {
        let Some(wanted) = wanted else {
            text += &format!("\n{path}: not generated from anything");
            continue;
        };
        let found = fs::read_to_string(root.join(path)).unwrap_or_default();
        let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
        let line = |text: &str| text.lines().nth(same).unwrap_or("(end of file)").to_owned();
        text += &format!("\n{path}:{}:\n- {}\n+ {}", same + 1, line(&found), line(wanted));
    }
    text
}

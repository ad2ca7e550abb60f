//! `cargo xtask gen`: turns `lib/spec/data/*.toml` into the checked-in sources below `lib/spec/src/gen`.
//!
//! The data is read by [`data`], turned into Rust by [`rust`]; this file only compares and writes. A test runs
//! the same comparison, so a change of the data without its sources does not pass.

mod data;
mod rust;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const DATA: &str = "lib/spec/data";
const SOURCES: &str = "lib/spec/src/gen";

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

/// Files that differ from what the data says: path below the root, and the text it should have (none: it should not exist).
fn stale(root: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let wanted = rust::sources(&data::Spec::read(&root.join(DATA))?)?;
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

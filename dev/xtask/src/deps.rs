//! `cargo xtask deps`: which crates may depend on which.
//!
//! Code linked into other people's processes stays small and free of runtimes and proc macros; pure crates cannot
//! reach the operating system; the arrows between our crates point one way. The edges between our crates come from `cargo
//! metadata`. The crates below a product come from `cargo tree`, package by package: metadata would count
//! features that only another member of the workspace requests.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::cargo::capture;

/// Each crate of ours with those it may use. Crates below `dev/` may use any.
const MAY_USE: &[(&str, &[&str])] = &[
    ("phalanx-spec", &[]),
    ("phalanx-topo", &[]),
    ("phalanx-wire", &["phalanx-spec"]),
    ("phalanx-core", &["phalanx-spec", "phalanx-topo", "phalanx-wire"]),
    ("phalanx-shell", &["phalanx-core", "phalanx-spec", "phalanx-wire"]),
    ("pmix", &["phalanx-core", "phalanx-shell", "phalanx-spec", "phalanx-topo", "phalanx-wire"]),
    (
        "phalanx-capi",
        &["phalanx-core", "phalanx-shell", "phalanx-spec", "phalanx-topo", "phalanx-wire", "pmix"],
    ),
    ("phalanx-libpmix", &["phalanx-capi"]),
    ("phalanx-dvm", &["phalanx-core", "phalanx-spec", "phalanx-topo", "phalanx-wire"]),
    (
        "phalanx-node",
        &[
            "phalanx-core",
            "phalanx-dvm",
            "phalanx-shell",
            "phalanx-spec",
            "phalanx-topo",
            "phalanx-wire",
            "pmix",
        ],
    ),
    (
        "phalanx-cli",
        &[
            "phalanx-core",
            "phalanx-dvm",
            "phalanx-node",
            "phalanx-shell",
            "phalanx-spec",
            "phalanx-topo",
            "phalanx-wire",
            "pmix",
        ],
    ),
];

/// Crates that decide without touching the operating system.
const PURE: &[&str] = &["phalanx-spec", "phalanx-wire", "phalanx-core", "phalanx-dvm", "phalanx-topo"];

/// Crates that give access to the operating system.
const SHELLS: &[&str] = &[
    "rustix",
    "libc",
    "nix",
    "mio",
    "tokio",
    "phalanx-shell",
    "pmix",
    "phalanx-capi",
    "phalanx-node",
    "phalanx-cli",
];

/// Crates that must not be linked into other people's processes; proc macros must not be either.
const NOT_IN_LIB: &[&str] = &["tokio", "serde", "serde_core", "async-std", "smol"];

const MOST_BELOW_LIB: usize = 16;
const MOST_BELOW_RUN: usize = 90;

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "deps takes no arguments");
    let members = members()?;
    let mut faults = Vec::new();
    for member in &members {
        direction(member, &members, &mut faults);
    }

    let wing = |wing: &str| members.iter().filter(|m| m.wing == wing).collect::<Vec<_>>();
    let lib = wing("lib");
    for member in &lib {
        for below in tree(&[member])? {
            let name = &below.name;
            if below.proc_macro {
                faults.push(format!("{}: the proc macro {name} is not allowed below lib/", member.name));
            }
            if NOT_IN_LIB.contains(&name.as_str()) {
                faults.push(format!("{}: {name} is not allowed below lib/", member.name));
            }
            if members.iter().any(|m| m.name == *name && m.wing != "lib") {
                faults.push(format!("{}: {name} is not in lib/", member.name));
            }
        }
    }
    for member in members.iter().filter(|m| PURE.contains(&m.name.as_str())) {
        for below in tree(&[member])?.iter().filter(|below| SHELLS.contains(&below.name.as_str())) {
            faults.push(format!("{}: pure crates may not reach {}", member.name, below.name));
        }
    }
    for (what, of, most) in [("lib", lib, MOST_BELOW_LIB), ("run", wing("run"), MOST_BELOW_RUN)] {
        let foreign: BTreeSet<String> = tree(&of)?.into_iter().filter(|b| !b.ours).map(|b| b.name).collect();
        eprintln!("{what}/: {} crates of others, at most {most}", foreign.len());
        if foreign.len() > most {
            let names = foreign.into_iter().collect::<Vec<_>>().join(" ");
            faults.push(format!("{what}/ needs more than {most} crates of others: {names}"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("dependencies that are not allowed:\n{}", faults.join("\n")),
    }
}

/// A crate of ours and the crates that it names, except for tests and build scripts.
struct Member {
    name: String,
    /// The folder below the root: `lib`, `run` or `dev`.
    wing: String,
    uses: Vec<String>,
}

fn members() -> Result<Vec<Member>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: String,
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        name: String,
        kind: Option<String>,
    }

    let text = capture(&["metadata", "--format-version", "1", "--locked", "--no-deps"])?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading the output of cargo metadata")?;
    metadata
        .packages
        .into_iter()
        .map(|package| {
            let wing = Path::new(&package.manifest_path)
                .strip_prefix(crate::root())
                .ok()
                .and_then(|path| path.iter().next())
                .with_context(|| format!("{} is outside of the workspace", package.name))?;
            Ok(Member {
                wing: wing.to_string_lossy().into_owned(),
                uses: package
                    .dependencies
                    .into_iter()
                    .filter(|d| d.kind.as_deref() != Some("dev"))
                    .map(|d| d.name)
                    .collect(),
                name: package.name,
            })
        })
        .collect()
}

fn direction(member: &Member, members: &[Member], faults: &mut Vec<String>) {
    if member.wing == "dev" {
        return;
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == member.name) else {
        faults.push(format!("{}: name in dev/xtask/src/deps.rs what it may use", member.name));
        return;
    };
    for used in member.uses.iter().filter(|used| members.iter().any(|m| m.name == **used)) {
        if !allowed.contains(&used.as_str()) {
            faults.push(format!("{}: may not use {used}", member.name));
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Below {
    name: String,
    proc_macro: bool,
    /// A member of the workspace.
    ours: bool,
}

/// Everything compiled into the given crates, which do not count as foreign themselves.
fn tree(of: &[&Member]) -> Result<BTreeSet<Below>> {
    let mut args = vec!["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    for member in of {
        args.extend(["--package", &member.name]);
    }
    let mut below = BTreeSet::new();
    // `name v1.2.3 (proc-macro) (*)`, `name v0.1.0 (/path/of/a/member)`
    for line in capture(&args)?.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let marks: Vec<&str> = words.skip(1).collect();
        below.insert(Below {
            name,
            proc_macro: marks.contains(&"(proc-macro)"),
            ours: marks.iter().any(|mark| mark.starts_with("(/")),
        });
    }
    Ok(below)
}

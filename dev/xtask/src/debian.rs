//! Debian packages of the installed tree: `phalanx`, which has a prefix of its own and coexists with Debian's libpmix, and
//! `phalanx-libpmix`, which puts our library where Debian's programs look first.
//!
//! The second one replaces no file of Debian's package: it adds a directory to the dynamic linker's search path.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::run as execute;
use crate::dist::make_parent;

/// `quick`: hardly compressed.
pub(crate) fn packages(tree: &Path, into: &Path, quick: bool) -> Result<()> {
    let root = into.join("debian/phalanx");
    begin(&root)?;
    make_parent(&root.join(PREFIX))?;
    execute(Command::new("cp").arg("-a").arg(tree).arg(root.join(PREFIX)))?;
    link(&root, "bin/px", "usr/bin/px")?;
    for page in fs::read_dir(tree.join(MANUAL)).with_context(|| format!("reading {MANUAL}"))? {
        let page = Path::new(MANUAL).join(page?.file_name()).display().to_string();
        link(&root, &page, &format!("usr/{page}"))?;
    }
    for (from, to) in COMPLETIONS {
        link(&root, from, to)?;
    }
    let needs = "libc6 (>= 2.34), libgcc-s1";
    let compression: &[&str] = if quick { &["-Zgzip", "-z1"] } else { &[] };
    let build = |root: &Path, name, depends, what| build(root, into, name, depends, what, compression);
    build(&root, "phalanx", needs, "PMIx launcher, tools, library and headers, in /opt/phalanx")?;

    let root = into.join("debian/phalanx-libpmix");
    begin(&root)?;
    // The linker reads these files in order of their names, before its own directories.
    let search = root.join("etc/ld.so.conf.d/00-phalanx-libpmix.conf");
    make_parent(&search)?;
    fs::write(&search, format!("/{PREFIX}/lib\n"))?;
    let trigger = root.join("DEBIAN/triggers");
    make_parent(&trigger)?;
    fs::write(&trigger, "activate-noawait ldconfig\n")?;
    build(&root, "phalanx-libpmix", "phalanx", "Makes programs use the PMIx library of phalanx")
}

/// Links files that people and their shells look for from the places where Debian has them.
fn link(root: &Path, from: &str, to: &str) -> Result<()> {
    let place = root.join(to);
    make_parent(&place)?;
    std::os::unix::fs::symlink(format!("/{PREFIX}/{from}"), &place).with_context(|| format!("linking {to}"))
}

fn begin(root: &Path) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| format!("removing {}", root.display()))?;
    }
    fs::create_dir_all(root).with_context(|| format!("making {}", root.display()))
}

fn build(
    root: &Path,
    into: &Path,
    name: &str,
    depends: &str,
    what: &str,
    compression: &[&str],
) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let control = root.join("DEBIAN/control");
    make_parent(&control)?;
    let text = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: Phalanx <phalanx@localhost>\n\
         Depends: {depends}\nSection: net\nPriority: optional\nDescription: {what}\n"
    );
    fs::write(&control, text).with_context(|| format!("writing {}", control.display()))?;
    let package = into.join(format!("{name}_{version}_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    command.arg("--root-owner-group").args(compression).arg("--build").arg(root).arg(&package);
    execute(&mut command)?;
    println!("{}", package.display());
    Ok(())
}

const PREFIX: &str = "opt/phalanx";
const MANUAL: &str = "share/man/man1";
const COMPLETIONS: [(&str, &str); 3] = [
    ("share/bash-completion/completions/px", "usr/share/bash-completion/completions/px"),
    ("share/zsh/site-functions/_px", "usr/share/zsh/vendor-completions/_px"),
    ("share/fish/vendor_completions.d/px.fish", "usr/share/fish/vendor_completions.d/px.fish"),
];

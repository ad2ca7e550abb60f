//! `cargo xtask dist`: the files for a machine that only uses us, as a tree below `target/dist`, as an archive of it, and as
//! Debian packages.
//!
//! `px` itself writes the man pages and completions, so they match the binary. The library's `pmix.pc` derives all paths
//! from its own place, so the tree can be put anywhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use phalanx_cluster::BUILD;

use crate::cargo::{self, cargo, run as execute, target};
use crate::{abi, debian};

pub(crate) fn run(args: &[String]) -> Result<()> {
    // Tests of the tree's content need no optimization.
    let dev = args == ["--dev"];
    ensure!(dev || args.is_empty(), "dist takes no arguments but --dev");
    let (built, into) = if dev { ("debug", "dist-dev") } else { ("release", "dist") };
    let (built, into) = (target().join(built), target().join(into));
    let shared = if dev {
        cargo(&BUILD)?;
        built.join("libpmix.so")
    } else {
        cargo(&["build", "--release", "--locked", "--package", "phalanx-cli", "--bin", "px"])?;
        cargo::library()?
    };
    let name = format!("phalanx-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let tree = into.join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("removing {}", tree.display()))?;
    }

    let px = tree.join("bin/px");
    copy(&built.join("px"), &px)?;
    // As the release profile does. Compressing what is left takes a fifth of the time.
    execute(Command::new("strip").arg("--strip-debug").arg(&px))?;
    let floors = if dev { abi::FLOORS_OF_DEV } else { abi::FLOORS };
    abi::check(&px, floors)?;
    for dialect in DIALECTS {
        // Beside the real command such a name would hide it, so they have a directory of their own.
        let link = tree.join("libexec/phalanx").join(dialect);
        make_parent(&link)?;
        symlink("../../bin/px", &link).with_context(|| format!("linking {}", link.display()))?;
    }
    let man = tree.join("share/man/man1");
    fs::create_dir_all(&man).with_context(|| format!("making {}", man.display()))?;
    execute(Command::new(&px).arg("man").arg(&man))?;
    for (shell, path) in COMPLETIONS {
        let output = Command::new(&px).args(["completions", shell]).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("px completions {shell}: {}", output.status);
        }
        let path = tree.join(path);
        make_parent(&path)?;
        fs::write(&path, output.stdout).with_context(|| format!("writing {}", path.display()))?;
    }
    let docs = tree.join("share/doc/phalanx");
    for file in DOCUMENTS {
        copy(&crate::root().join(file), &docs.join(file))?;
    }
    for page in fs::read_dir(crate::root().join("docs/guide")).context("reading docs/guide")? {
        let page = page?.path();
        copy(&page, &docs.join("guide").join(page.file_name().unwrap_or_default()))?;
    }

    library(&shared, &tree)?;
    abi::check(&tree.join("lib/libpmix.so.2"), floors)?;

    let archive = into.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--use-compress-program", if dev { "gzip -1" } else { "gzip" }, "-cf"]);
    execute(tar.arg(&archive).arg("-C").arg(&into).arg(&name))?;
    println!("{}\n{}", tree.display(), archive.display());
    debian::packages(&tree, &into, dev)
}

/// The shared library under its names, the headers, and the file for `pkg-config`.
fn library(built: &Path, tree: &Path) -> Result<()> {
    let lib = tree.join("lib");
    copy(built, &lib.join("libpmix.so.2"))?;
    execute(Command::new("strip").arg("--strip-unneeded").arg(lib.join("libpmix.so.2")))?;
    symlink("libpmix.so.2", lib.join("libpmix.so")).context("linking libpmix.so")?;
    execute(
        Command::new("cp").arg("-R").arg(crate::root().join("lib/libpmix/include")).arg(tree.join("include")),
    )?;
    let description = lib.join("pkgconfig/pmix.pc");
    make_parent(&description)?;
    fs::write(&description, PKG_CONFIG).with_context(|| format!("writing {}", description.display()))
}

/// The release is that of the interface: programs require at least the one they were written for.
const PKG_CONFIG: &str = "\
prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir=${prefix}/include

Name: pmix
Description: Process Management Interface for Exascale, by Phalanx
Version: 6.1.0
Libs: -L${libdir} -lpmix
Cflags: -I${includedir} -I${includedir}/pmix
";

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

pub(crate) fn make_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))
}

const DIALECTS: &[&str] = &["mpirun", "mpiexec", "prterun"];

const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/px"),
    ("zsh", "share/zsh/site-functions/_px"),
    ("fish", "share/fish/vendor_completions.d/px.fish"),
];

const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

//! The results of `cargo xtask dist` work where they are installed: the tree, and the Debian packages made from it.

#![allow(clippy::expect_used, reason = "a test that cannot go on stops")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use phalanx_interop::{
    Job, debian_file, debians_libpmix_copied, needs_root, new_directory, script, workspace,
};

/// Files of `cargo xtask dist`, made now: unoptimized, which does not change their places.
struct Made {
    tree: PathBuf,
    launcher: PathBuf,
    library: PathBuf,
}

fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["xtask", "dist", "--dev"]).current_dir(workspace());
        let lines = done(&mut command);
        let paths: Vec<PathBuf> =
            lines.lines().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
        let named = |part: &str| {
            let is_it =
                |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part));
            paths.iter().find(is_it).unwrap_or_else(|| panic!("no {part} in {lines}")).clone()
        };
        let tree = paths.first().expect("the tree").clone();
        Made { tree, launcher: named("phalanx_"), library: named("phalanx-libpmix_") }
    })
}

#[test]
fn the_tree_works_wherever_it_is_put() {
    let place = new_directory();
    // A copy, so that nothing is found through its build directory.
    let prefix = place.path().join("here");
    done(Command::new(debian_file("/usr/bin/cp", "coreutils")).arg("-a").arg(&made().tree).arg(&prefix));
    works(&prefix);
}

#[test]
fn the_packages_hold_the_tree() {
    let root = new_directory();
    for package in [&made().launcher, &made().library] {
        done(Command::new(debian_file("/usr/bin/dpkg-deb", "dpkg")).arg("-x").arg(package).arg(root.path()));
    }
    works(&root.path().join("opt/phalanx"));
    for (found, is) in [
        ("usr/bin/px", "bin/px"),
        ("usr/share/man/man1/px-run.1", "share/man/man1/px-run.1"),
        ("usr/share/bash-completion/completions/px", "share/bash-completion/completions/px"),
        ("usr/share/zsh/vendor-completions/_px", "share/zsh/site-functions/_px"),
        ("usr/share/fish/vendor_completions.d/px.fish", "share/fish/vendor_completions.d/px.fish"),
    ] {
        let to = fs::read_link(root.path().join(found)).expect(found);
        assert_eq!(to, Path::new("/opt/phalanx").join(is));
        assert!(root.path().join("opt/phalanx").join(is).exists(), "{is}");
    }
}

/// In a root of their own that also has Debian's libpmix: ours takes precedence over it, and leaves it in place.
#[test]
fn the_packages_are_installed_beside_debians_and_removed() {
    needs_root("packages are installed");
    let root = new_directory();
    let inside = |path: &str| root.path().join(path);
    let debians = inside(&format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    for directory in
        ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc/ld.so.conf.d"]
    {
        fs::create_dir_all(inside(directory)).expect("making the root");
    }
    fs::write(inside("var/lib/dpkg/status"), "").expect("making the root");
    fs::write(inside("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n").expect("making the root");
    fs::create_dir_all(&debians).expect("making the root");
    debians_libpmix_copied(&debians);
    symlink("usr/lib", inside("lib")).expect("making the root");

    dpkg(root.path(), &["--install"], &[&made().launcher, &made().library]);
    assert_eq!(first_library(root.path()), "/opt/phalanx/lib/libpmix.so.2");
    assert!(inside("opt/phalanx/share/man/man1/px.1").exists());

    dpkg(root.path(), &["--remove", "phalanx-libpmix", "phalanx"], &[]);
    assert!(!inside("opt/phalanx").exists() && !inside("usr/bin/px").exists());
    assert!(first_library(root.path()).ends_with("-linux-gnu/libpmix.so.2"));
}

/// A program compiled with the tree's pkg-config flags runs under the tree's `px` with the tree's library.
fn works(prefix: &Path) {
    let binary = prefix.with_extension("program");
    let mut asked = Command::new(debian_file("/usr/bin/pkg-config", "pkg-config"));
    asked.args(["--cflags", "--libs", "pmix >= 4.2"]);
    let flags = done(asked.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let flags = shlex::split(&flags).expect("words of the shell");
    // Open MPI 5.0 includes this file when it is built.
    let source = prefix.with_extension("c");
    let text = "#include \"src/include/pmix_frameworks.h\"\nint main(void) { return pmix_framework_names[0] != 0; }\n";
    fs::write(&source, text).expect("writing a program");
    let mut compiler = Command::new(debian_file("/usr/bin/gcc", "gcc"));
    done(compiler.arg("-fsyntax-only").arg(&source).args(&flags));

    let mut compiler = Command::new(debian_file("/usr/bin/gcc", "gcc"));
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]).arg("-I").arg(script(""));
    compiler.arg(script("pmix_version.c")).arg("-o").arg(&binary);
    done(compiler.args(&flags));

    let version = format!("Phalanx {}", env!("CARGO_PKG_VERSION"));
    for (launcher, verb) in [("bin/px", Some("run")), ("libexec/phalanx/mpirun", None)] {
        let job = Job::new(prefix.join(launcher)).args(verb).args(["-n", "2"]).arg(&binary);
        let outcome = job.env("LD_LIBRARY_PATH", prefix.join("lib")).run().expect_code(0);
        for rank in 0..2 {
            let start = format!("rank {rank} of 2: {version}");
            assert!(outcome.stdout.lines().any(|line| line.starts_with(&start)), "{outcome}");
        }
        outcome.expect_nothing_left();
    }
    let man = fs::read_to_string(prefix.join("share/man/man1/px.1")).expect("reading the man page");
    assert!(man.contains(".TH"), "{man}");
    assert!(prefix.join("share/bash-completion/completions/px").exists());
}

fn dpkg(root: &Path, what: &[&str], packages: &[&PathBuf]) {
    let mut command = Command::new(debian_file("/usr/bin/dpkg", "dpkg"));
    // The root contains nothing else, not even the C library that the packages depend on.
    command.arg(format!("--root={}", root.display())).args(["--force-depends"]).args(what).args(packages);
    done(&mut command);
}

/// The libpmix that programs of this root load.
fn first_library(root: &Path) -> String {
    let ldconfig = debian_file("/usr/sbin/ldconfig", "libc-bin");
    done(Command::new(ldconfig).arg("-r").arg(root));
    let listing = done(Command::new(ldconfig).arg("-r").arg(root).arg("-p"));
    let line = listing.lines().find(|line| line.contains("libpmix.so.2 "));
    line.and_then(|line| line.split(" => ").nth(1)).unwrap_or_else(|| panic!("{listing}")).to_owned()
}

/// The output of a command that must succeed.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{out}{err}");
    out.into_owned()
}

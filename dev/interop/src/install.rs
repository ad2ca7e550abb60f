//! The places of the peers: Debian packages in their usual places, wheels in directories of ours.
//!
//! A missing peer fails the test with the name of the package to install. The tests install only wheels
//! themselves, below `target/interop`, with Python's ordinary package client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::job::target;
use crate::program::locked;

/// A Python environment with wheels installed in it.
#[derive(Clone, Debug)]
pub struct Wheel {
    pub root: PathBuf,
}

impl Wheel {
    pub fn python(&self) -> PathBuf {
        self.root.join("bin/python")
    }
}

/// Open MPI 5.0, mpi4py and numpy, installed on first use.
pub fn wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| environment("venv"));
    Wheel { root: root.clone() }
}

/// The tests of mpi4py, from the source distribution of the installed release: fetched on first use.
pub fn mpi4py_tests() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let python = wheel().python();
        let version =
            output_of(Command::new(&python).args(["-c", "import mpi4py; print(mpi4py.__version__, end='')"]));
        let root = target().join("interop/mpi4py-tests");
        fs::create_dir_all(&root).expect("making the directory for mpi4py's tests");
        let _one_at_a_time = locked(&root.with_extension("lock"));
        let tests = root.join(format!("mpi4py-{version}/test"));
        if !tests.exists() {
            let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
            let source = ["--no-binary", "mpi4py", &format!("mpi4py=={version}")];
            output_of(Command::new(&python).args(pip).args(source).arg("--dest").arg(&root));
            let archive = root.join(format!("mpi4py-{version}.tar.gz"));
            output_of(Command::new(&python).args(["-m", "tarfile", "-e"]).arg(&archive).arg(&root));
        }
        tests
    });
    root.clone()
}

/// The output of a command that must succeed.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// MPICH 5 and mpi4py, installed on first use. Its files have the same names as Open MPI's, so it has an environment of its own.
pub fn mpich_wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| environment("venv-mpich"));
    Wheel { root: root.clone() }
}

/// Intel MPI, installed on first use. Its dependencies are only for networks and other packages.
pub fn intel_wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| environment("venv-intel"));
    Wheel { root: root.clone() }
}

/// The virtual environment of this name, with its packages from [`WHEELS`]; recreated when they change.
fn environment(name: &str) -> PathBuf {
    let lines = WHEELS.lines().filter_map(|line| line.split_once(": "));
    let packages = lines.filter(|(of, _)| *of == name).map(|(_, packages)| packages).next();
    let packages = packages.unwrap_or_else(|| panic!("no packages are named for {name}"));
    let root = target().join("interop").join(name);
    fs::create_dir_all(target().join("interop")).expect("making the directory for peers");
    let _one_at_a_time = locked(&root.with_extension("lock"));
    let stamp = root.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == packages) {
        return root;
    }
    let _ = fs::remove_dir_all(&root);
    let python = debian_file("/usr/bin/python3", "python3");
    let venv = Command::new(python).args(["-m", "venv"]).arg(&root).output();
    let made = venv.is_ok_and(|output| output.status.success());
    assert!(made, "python3 -m venv failed: is the Debian package python3-venv installed?");
    let pip = Command::new(root.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(packages.split(' '))
        .output()
        .expect("running pip");
    let messages = String::from_utf8_lossy(&pip.stderr);
    assert!(pip.status.success(), "installing the Python packages {packages} failed:\n{messages}");
    fs::write(&stamp, packages).expect("noting what was installed");
    root
}

const WHEELS: &str = include_str!("../wheels.txt");

/// A file of a Debian package. If it is missing, fails the test with the package's name.
#[track_caller]
pub fn debian_file(path: &'static str, package: &str) -> &'static Path {
    phalanx_cluster::debian_file(path, package).unwrap_or_else(|missing| panic!("{missing}"))
}

/// A directory of a Debian package below this machine's library directory.
#[track_caller]
pub fn debian_dir(name: &str, package: &str) -> PathBuf {
    phalanx_cluster::debian_dir(name, package).unwrap_or_else(|missing| panic!("{missing}"))
}

//! Where the peers are: Debian packages in their usual places, wheels in directories of ours.
//!
//! A peer that is not there fails the test with the name of what to install. Wheels are the one kind of thing that
//! the tests install themselves, below `target/interop`, with the ordinary package client of Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::job::target;
use crate::program::locked;

/// An environment of Python with wheels in it.
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

/// The tests of mpi4py, of the release that is installed, from its source distribution: fetched on first use.
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

/// What a command that must succeed has written.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// MPICH 5 and mpi4py, installed on first use. It has files of the same names as Open MPI, and so a place of its own.
pub fn mpich_wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| environment("venv-mpich"));
    Wheel { root: root.clone() }
}

/// Intel MPI, installed on first use. What it depends on is for networks, and for other packages.
pub fn intel_wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| environment("venv-intel"));
    Wheel { root: root.clone() }
}

/// The virtual environment of this name, with the packages that [`WHEELS`] names; made again when they change.
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

/// A file of a Debian package. Fails the test with the package's name when it is not there.
#[track_caller]
pub fn debian_file(path: &'static str, package: &str) -> &'static Path {
    phalanx_cluster::debian_file(path, package).unwrap_or_else(|missing| panic!("{missing}"))
}

/// A directory of a Debian package below the directory of this machine's libraries.
#[track_caller]
pub fn debian_dir(name: &str, package: &str) -> PathBuf {
    phalanx_cluster::debian_dir(name, package).unwrap_or_else(|missing| panic!("{missing}"))
}

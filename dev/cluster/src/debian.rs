//! Where programs of Debian packages are. One that is missing is an error that names its package.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// A file of a Debian package.
pub fn debian_file(path: &'static str, package: &str) -> Result<&'static Path> {
    let path = Path::new(path);
    ensure!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    Ok(path)
}

/// A directory of a Debian package below the directory of this machine's libraries.
pub fn debian_dir(name: &str, package: &str) -> Result<PathBuf> {
    let path = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH)).join(name);
    ensure!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    Ok(path)
}

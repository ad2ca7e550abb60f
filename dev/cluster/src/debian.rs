//! Locates programs of Debian packages. If one is missing, the error names its package.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// A file of a Debian package.
pub fn debian_file(path: &'static str, package: &str) -> Result<&'static Path> {
    let path = Path::new(path);
    ensure!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    Ok(path)
}

/// A directory of a Debian package below this machine's library directory.
pub fn debian_dir(name: &str, package: &str) -> Result<PathBuf> {
    let path = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH)).join(name);
    ensure!(path.exists(), "{} is missing: install the Debian package {package}", path.display());
    Ok(path)
}

//! Where rendezvous files are: in directories that attributes or the environment name.

use std::path::{Path, PathBuf};

use crate::walk::walk;

/// Where session servers put their files, the first choice first: only `given` (`pmix.srvr.tmpdir`) if there is one, else the
/// directories named in the environment. A server writes to the first; a tool that knows a server's name searches all.
pub fn server_directories(given: Option<PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    directories(given, "PMIX_SERVER_TMPDIR", variable)
}

/// Where a tool looks for a server that it cannot name: only where a server started in the tool's own environment would be. So
/// separate directories for temporary files keep servers apart. A server of ours skips a directory in which other users can interfere,
/// and so does the tool.
pub fn nameless_directories(
    given: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    let mut all = server_directories(given, variable);
    let last = all.iter().position(|dir| is_usable(dir)).unwrap_or(all.len());
    all.truncate(last + 1);
    all
}

/// Whether a server of ours uses this directory.
fn is_usable(dir: &Path) -> bool {
    std::path::absolute(dir).and_then(|dir| walk(&dir)).is_ok()
}

/// Like [`server_directories`], for the one system server of a machine (`pmix.sys.tmpdir`).
pub fn system_directories(given: Option<PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    // If it names a directory of its own, that is the only one. Launchers also set it to their session directory.
    let named = variable("PMIX_SYSTEM_TMPDIR").filter(|dir| !dir.is_empty());
    let alone = named.filter(|dir| variable("TMPDIR").as_ref() != Some(dir)).map(PathBuf::from);
    directories(given.or(alone), "PMIX_SYSTEM_TMPDIR", variable)
}

/// Where a system server of ours registers.
pub fn system_directory() -> PathBuf {
    let variable = |name: &str| std::env::var(name).ok();
    system_directories(None, variable).into_iter().next().unwrap_or_else(|| "/tmp".into())
}

fn directories(given: Option<PathBuf>, own: &str, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given];
    }
    let named = [own, "TMPDIR", "TEMP", "TMP"].into_iter().filter_map(variable);
    let mut all: Vec<PathBuf> = Vec::new();
    for dir in named.filter(|dir| !dir.is_empty()).map(PathBuf::from).chain([PathBuf::from("/tmp")]) {
        if !all.contains(&dir) {
            all.push(dir);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn a_given_directory_is_the_only_one_searched() {
        let variable = |name: &str| Some(format!("/{name}"));
        assert_eq!(server_directories(Some("/a".into()), variable), [PathBuf::from("/a")]);
        let all: Vec<PathBuf> =
            ["/PMIX_SERVER_TMPDIR", "/TMPDIR", "/TEMP", "/TMP", "/tmp"].map(PathBuf::from).into();
        assert_eq!(server_directories(None, variable), all);
        assert_eq!(system_directories(None, variable), [PathBuf::from("/PMIX_SYSTEM_TMPDIR")]);
        let same = |name: &str| name.ends_with("TMPDIR").then(|| "/x".to_owned());
        assert_eq!(system_directories(None, same), [PathBuf::from("/x"), PathBuf::from("/tmp")]);
    }

    #[test]
    fn unnamed_servers_are_sought_in_the_first_usable_directory() {
        let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = first.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let searched = |tmpdir: &Path| {
            nameless_directories(None, |name| match name {
                "TMPDIR" => Some(tmpdir.display().to_string()),
                "TEMP" => Some(second.path().display().to_string()),
                _ => None,
            })
        };
        assert_eq!(searched(first.path()), [first.path()]);
        let below = open.join("below");
        fs::create_dir(&below).unwrap();
        let grouped = first.path().join("grouped");
        fs::create_dir(&grouped).unwrap();
        fs::set_permissions(&grouped, PermissionsExt::from_mode(0o770)).unwrap();
        let mut unusable = vec![open, below, first.path().join("missing")];
        if geteuid().is_root() {
            chown(&grouped, None, Some(4242)).unwrap();
            unusable.push(grouped);
        }
        for unusable in unusable {
            assert_eq!(searched(&unusable), [&unusable, second.path()]);
        }
    }

    #[test]
    fn without_anything_it_is_tmp() {
        assert_eq!(server_directories(None, |_| None), [PathBuf::from("/tmp")]);
        let both = |name: &str| (name != "PMIX_SERVER_TMPDIR").then(|| "/x".to_owned());
        assert_eq!(server_directories(None, both), [PathBuf::from("/x"), PathBuf::from("/tmp")]);
    }
}

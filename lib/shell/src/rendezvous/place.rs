//! Where rendezvous files are: in directories that attributes or the environment name.

use std::path::PathBuf;

/// Where servers of sessions put their files, the first choice first: `given` (`pmix.srvr.tmpdir`) alone if there is one, else
/// what the environment says. A server writes to the first; a tool searches all.
pub fn server_directories(given: Option<PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    directories(given, "PMIX_SERVER_TMPDIR", variable)
}

/// The same for the one system server of a machine (`pmix.sys.tmpdir`).
pub fn system_directories(given: Option<PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    directories(given, "PMIX_SYSTEM_TMPDIR", variable)
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
    use super::*;

    #[test]
    fn a_given_directory_is_the_only_one_searched() {
        let variable = |name: &str| Some(format!("/{name}"));
        assert_eq!(server_directories(Some("/a".into()), variable), [PathBuf::from("/a")]);
        let all: Vec<PathBuf> =
            ["/PMIX_SYSTEM_TMPDIR", "/TMPDIR", "/TEMP", "/TMP", "/tmp"].map(PathBuf::from).into();
        assert_eq!(system_directories(None, variable), all);
    }

    #[test]
    fn without_anything_it_is_tmp() {
        assert_eq!(server_directories(None, |_| None), [PathBuf::from("/tmp")]);
        let both = |name: &str| (name != "PMIX_SERVER_TMPDIR").then(|| "/x".to_owned());
        assert_eq!(server_directories(None, both), [PathBuf::from("/x"), PathBuf::from("/tmp")]);
    }
}

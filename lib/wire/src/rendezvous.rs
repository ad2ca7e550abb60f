//! The files through which tools find servers: their names and their text. The shell reads and writes them.

use std::fmt;

use crate::codec::Release;
use crate::uri::{ServerUri, UriError};

/// The content of a rendezvous file.
///
/// Readers need the first line; a file without the second is from a server of 2.0. The rest is informative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    pub uri: ServerUri,
    /// The server's release as the server writes it, without `v`.
    pub version: Option<String>,
    pub pid: Option<u32>,
    /// Effective uid and gid of the server.
    pub owner: Option<(u32, u32)>,
    /// When it was written, in the form of C's `ctime`.
    pub written: Option<String>,
    /// The secret that a tool on another node must present. Servers of OpenPMIx write none, and their tools ignore it.
    pub secret: Option<String>,
    /// The server holds a lock on the file while it lives. Servers of OpenPMIx hold none.
    pub locked: bool,
}

impl Rendezvous {
    /// Also accepts the shorter text in which a server reports itself (address and version only). An empty file
    /// has not been written yet by its server: `Ok(None)`.
    pub fn parse(text: &str) -> Result<Option<Rendezvous>, UriError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut lines = text.lines().map(str::trim_end);
        let uri = ServerUri::parse_with_variables(lines.next().unwrap_or_default().trim_end_matches('\0'))?;
        let mut next = || lines.next().filter(|line| !line.is_empty());
        let version = next().map(|line| line.strip_prefix('v').unwrap_or(line).to_owned());
        let pid = next().and_then(|line| line.parse().ok());
        let owner = next().and_then(|line| {
            let (uid, gid) = line.split_once(':')?;
            Some((uid.parse().ok()?, gid.parse().ok()?))
        });
        let written = next().map(str::to_owned);
        let rest: Vec<&str> = lines.collect();
        let secret = rest.iter().find_map(|line| line.strip_prefix(SECRET)).map(str::to_owned);
        let locked = rest.contains(&LOCKED);
        Ok(Some(Rendezvous { uri, version, pid, owner, written, secret, locked }))
    }

    pub fn release(&self) -> Release {
        self.version.as_deref().and_then(Release::parse).unwrap_or(Release::new(2, 0, 0))
    }

    /// The text that `--report-uri` writes.
    pub fn report(&self) -> String {
        match &self.version {
            Some(version) => format!("{}\nv{version}\n", self.uri),
            None => format!("{}\n", self.uri),
        }
    }
}

/// The text of the file. Ends before the first field that is not known.
impl fmt::Display for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.uri)?;
        let Some(version) = &self.version else { return Ok(()) };
        writeln!(f, "{version}")?;
        let Some(pid) = self.pid else { return Ok(()) };
        writeln!(f, "{pid}")?;
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        writeln!(f, "{uid}:{gid}")?;
        let Some(written) = &self.written else { return Ok(()) };
        write!(f, "{written}\n\n")?;
        if let Some(secret) = &self.secret {
            writeln!(f, "{SECRET}{secret}")?;
        }
        if self.locked {
            writeln!(f, "{LOCKED}")?;
        }
        Ok(())
    }
}

/// Prefix of the line with the secret.
const SECRET: &str = "secret ";
const LOCKED: &str = "locked";

/// In the system directory: the one server of this machine.
pub fn system_file(host: &str) -> String {
    format!("pmix.sys.{host}")
}

/// In the session directory: the server of this session. Tools without a name or pid search for files with this prefix.
pub fn session_file(host: &str) -> String {
    format!("pmix.{host}.tool")
}

/// In the session directory: a server by its pid.
pub fn pid_file(host: &str, pid: u32) -> String {
    format!("pmix.{host}.tool.{pid}")
}

/// In the session directory: a server by its namespace.
pub fn nspace_file(host: &str, nspace: &str) -> String {
    format!("pmix.{host}.tool.{nspace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str =
        "prte-vm-9041@0.0;tcp4://127.0.0.1:33017\n5.0.11rc1\n9041\n1000:100\nFri Nov 20 16:20:01 2026\n\n";

    #[test]
    fn a_file_round_trips() {
        let file = Rendezvous::parse(FULL).unwrap().unwrap();
        assert_eq!(file.to_string(), FULL);
        assert_eq!(
            (file.pid, file.owner, file.release()),
            (Some(9041), Some((1000, 100)), Release::new(5, 0, 11))
        );
        assert_eq!(Rendezvous::parse(&file.report()).unwrap().unwrap().uri, file.uri);
        assert!(!file.locked);
        let ours = Rendezvous { secret: Some("x".to_owned()), locked: true, ..file };
        assert_eq!(Rendezvous::parse(&ours.to_string()), Ok(Some(ours)));
    }

    #[test]
    fn missing_lines_of_a_rendezvous_file_are_not_invented() {
        assert_eq!(Rendezvous::parse(""), Ok(None));
        assert_eq!(Rendezvous::parse("\n\n"), Ok(None));
        let short = Rendezvous::parse("x.0;tcp4://127.0.0.1:1").unwrap().unwrap();
        assert_eq!((short.version.as_deref(), short.release()), (None, Release::new(2, 0, 0)));
        let reported = Rendezvous::parse("PMIX_SERVER_URI41;x.0;tcp4://127.0.0.1:1\0").unwrap().unwrap();
        assert_eq!(reported.uri, short.uri);
        assert!(Rendezvous::parse("nonsense").is_err());
    }
}

//! From a tool's directives to a server that has admitted it: the standard's chain of precedence.
//!
//! If a server is named, the tool gets that one or an error. Candidates are tried in the order in which the search has found
//! them, the newest first (`race.rs`), several of them with a short deadline each, and the outcome of each is kept for the
//! error's text.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use phalanx_core::{self as core, Attached, AttachedServer, Attempt, InitError, ToolCall, ToolReturn};
use phalanx_spec::Status;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::uri::ServerUri;

use super::directives::{Directives, Target};
use super::race::{self, Entrant, Refusal};
use crate::engine::Engine;
use crate::error::Error;
use phalanx_shell::rendezvous::{
    self, Search, Wanted, nameless_directories, server_directories, system_directories,
};

/// A server that may admit us.
struct Candidate {
    uri: ServerUri,
    dialect: Dialect,
    /// The source of its address.
    origin: String,
    /// The secret that it requires of tools on other nodes.
    secret: Option<String>,
    /// Its process, if known and on this node.
    pid: Option<u32>,
}

enum Raced {
    Attached(Attached),
    Slow(Vec<Candidate>),
}

/// One pass through the chain.
pub(super) struct ServerSearch<'a> {
    engine: &'a Engine<core::Tool>,
    directives: &'a Directives,
    hostname: &'a str,
    /// The server that has started this process, if one has.
    own: Option<(ServerUri, Dialect)>,
    connected: Vec<AttachedServer>,
    /// Time limit of a server that was named, or that is the only candidate.
    patience: Duration,
    until: Option<Instant>,
    /// What was looked for, where, and the outcome.
    tried: Vec<String>,
    status: Status,
    /// A server is there and refused, or did not answer within its time: asking again does not help.
    refused: bool,
    /// How often a server closed the connection without an answer.
    turned_away: u32,
}

impl<'a> ServerSearch<'a> {
    pub(super) fn new(
        engine: &'a Engine<core::Tool>,
        directives: &'a Directives,
        hostname: &'a str,
        own: Option<(ServerUri, Dialect)>,
    ) -> Result<ServerSearch<'a>, Error> {
        engine.trust(&directives.trust);
        let connected = match engine.call(ToolCall::Servers)? {
            ToolReturn::Servers(servers) => servers,
            _ => Vec::new(),
        };
        Ok(ServerSearch {
            engine,
            directives,
            hostname: directives.hostname.as_deref().unwrap_or(hostname),
            own,
            connected,
            patience: PATIENCE,
            until: directives.timeout.map(|timeout| Instant::now() + timeout),
            tried: Vec::new(),
            status: Status::ERR_UNREACH,
            refused: false,
            turned_away: 0,
        })
    }

    /// Whether the tool is connected already to the server at the target's address.
    pub(super) fn is_over(&self) -> bool {
        let Target::Uri { uri, .. } = &self.directives.target else { return false };
        let uri = ServerUri::parse_with_variables(uri);
        uri.is_ok_and(|uri| self.connected.iter().any(|known| known.uri == uri))
    }

    /// The first server of the chain that admits us.
    pub(super) fn run(mut self) -> Result<Attached, Error> {
        let target = &self.directives.target;
        if *target == Target::SystemFirst
            && let Some(attached) = self.attempt(&Target::System)?
        {
            return Ok(attached);
        }
        if matches!(target, Target::Any | Target::SystemFirst) {
            if let Some((uri, dialect)) = self.own.clone()
                && let Some(attached) = self.attempt_own(uri, dialect)?
            {
                return Ok(attached);
            }
            return match self.attempt(&Target::Any)? {
                Some(attached) => Ok(attached),
                None => Err(self.failure()),
            };
        }
        let (retries, delay) = self.patience();
        for again in (0..=retries).rev() {
            self.tried.clear();
            if let Some(attached) = self.attempt(target)? {
                return Ok(attached);
            }
            if again == 0 || self.refused || !self.pause(delay) {
                break;
            }
        }
        Err(self.failure())
    }

    /// How often a named server that is absent is looked for again. One that is just being started deserves a moment.
    fn patience(&self) -> (u32, Duration) {
        let d = self.directives;
        match (d.retries, d.delay, d.timeout) {
            (None, None, None) => (10, Duration::from_millis(20)),
            (None, delay, Some(_)) => (u32::MAX, delay.unwrap_or(Duration::from_millis(100))),
            (retries, delay, _) => (retries.unwrap_or(10), delay.unwrap_or(Duration::from_secs(1))),
        }
    }

    /// False: there is no time left.
    fn pause(&self, delay: Duration) -> bool {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        thread::sleep(left.map_or(delay, |left| left.min(delay)));
        left.is_none_or(|left| left > delay)
    }

    fn attempt(&mut self, target: &Target) -> Result<Option<Attached>, Error> {
        let candidates = match target {
            Target::File(file) => self.in_file(file),
            Target::Uri { attribute, uri } => self.at_uri(attribute, uri),
            Target::Pid(pid) => self.search(Wanted::Pid(*pid), self.server_directories()),
            Target::Nspace(nspace) => self.search(Wanted::Nspace(nspace.clone()), self.server_directories()),
            Target::System => self.search(Wanted::System, self.system_directories()),
            Target::SystemFirst | Target::Any => self.search(Wanted::Any, self.nameless_directories()),
        };
        let candidates: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| !self.is_connected_to(candidate)).collect();
        if let [first, others @ ..] = candidates.as_slice()
            && !others.is_empty()
        {
            let others: Vec<&str> = others.iter().map(|candidate| candidate.origin.as_str()).collect();
            tracing::warn!(
                chosen = first.origin,
                others = others.join(", "),
                "several PMIx servers fit: trying the newest first"
            );
        }
        let mut left = candidates;
        for dropped in left.drain(left.len().min(MOST_CANDIDATES)..) {
            self.tried.push(format!("  {}: there are too many to try them all", dropped.origin));
        }
        // A named server is waited for, even if others have the same name.
        if matches!(target, Target::Any | Target::SystemFirst) {
            for patience in SHORT {
                if left.len() < 2 || self.is_late() {
                    break;
                }
                match self.race(left, patience, true)? {
                    Raced::Attached(attached) => return Ok(Some(attached)),
                    Raced::Slow(slow) => left = slow,
                }
            }
            return match self.race(left, self.patience, false)? {
                Raced::Attached(attached) => Ok(Some(attached)),
                Raced::Slow(_) => Ok(None),
            };
        }
        // It gets all the time that the program allows.
        let patience = self.until.filter(|_| left.len() == 1).map_or(self.patience, |_| Duration::MAX);
        for candidate in left {
            match self.ask(&candidate, patience)? {
                Ok(attached) => return Ok(Some(attached)),
                Err(refusal) => self.note(&candidate, &refusal),
            }
        }
        Ok(None)
    }

    /// Asks several servers. Those that have not answered are left for another round, if there is one.
    fn race(
        &mut self,
        candidates: Vec<Candidate>,
        patience: Duration,
        is_again: bool,
    ) -> Result<Raced, Error> {
        let entrants = candidates.iter().map(|candidate| {
            let attempt = Attempt(self.engine.number());
            Entrant { call: self.question(candidate, attempt, patience), attempt, pid: candidate.pid }
        });
        let outcome = race::run(self.engine, entrants.collect(), self.directives.primary)?;
        if let Some(attached) = outcome.attached {
            return Ok(Raced::Attached(attached));
        }
        let mut slow = Vec::new();
        for (candidate, refusal) in candidates.into_iter().zip(outcome.refusals) {
            match refusal {
                Some(refusal) if is_again && refusal.reason == InitError::TimedOut => slow.push(candidate),
                Some(refusal) => self.note(&candidate, &refusal),
                None => {}
            }
        }
        Ok(Raced::Slow(slow))
    }

    fn in_file(&mut self, file: &Path) -> Vec<Candidate> {
        let origin = file.display().to_string();
        match rendezvous::read_file(file, &self.directives.trust) {
            Ok(rendezvous) => {
                let dialect = dialect(rendezvous.release());
                vec![Candidate { dialect, uri: rendezvous.uri, origin, secret: rendezvous.secret, pid: None }]
            }
            Err(problem) => {
                self.tried.push(format!("the file {origin}: {problem}"));
                Vec::new()
            }
        }
    }

    /// OpenPMIx also accepts `file:PATH` as an address.
    fn at_uri(&mut self, attribute: &str, uri: &str) -> Vec<Candidate> {
        if let Some(file) = uri.strip_prefix("file:") {
            return self.in_file(Path::new(file));
        }
        match ServerUri::parse_with_variables(uri) {
            Ok(uri) => {
                let dialect = dialect(self.release_of(&uri));
                let secret = variable(SECRET_VARIABLE);
                vec![Candidate { origin: format!("the address {uri}"), uri, dialect, secret, pid: None }]
            }
            Err(error) => {
                self.tried.push(format!("{attribute}: {error}"));
                self.status = Status::ERR_BAD_PARAM;
                self.refused = true;
                Vec::new()
            }
        }
    }

    /// An address does not include the server's release; a rendezvous file of the same server does, if it is here.
    fn release_of(&self, uri: &ServerUri) -> Release {
        let is_here = matches!(uri.address.ip(), IpAddr::V4(ip) if ip.is_loopback());
        let search = |wanted, dirs| Search::run(wanted, self.hostname, dirs, &self.directives.trust).found;
        let known = is_here.then(|| {
            let mut found = search(Wanted::Nspace(uri.server.nspace.to_string()), self.server_directories());
            found.extend(search(Wanted::System, self.system_directories()));
            found.into_iter().find(|found| found.rendezvous.uri == *uri)
        });
        known.flatten().map_or(DEFAULT_RELEASE, |found| found.rendezvous.release())
    }

    fn search(&mut self, wanted: Wanted, directories: Vec<PathBuf>) -> Vec<Candidate> {
        let anybody = wanted == Wanted::Any;
        let search = Search::run(wanted, self.hostname, directories, &self.directives.trust);
        self.tried.push(search.to_string());
        let me = std::process::id();
        let is_candidate = |found: &rendezvous::Found| !anybody || found.rendezvous.pid != Some(me);
        let found = search.found.into_iter().filter(is_candidate);
        let candidates = found.map(|found| Candidate {
            dialect: dialect(found.rendezvous.release()),
            uri: found.rendezvous.uri,
            origin: found.path.display().to_string(),
            secret: found.rendezvous.secret,
            pid: found.rendezvous.pid,
        });
        candidates.collect()
    }

    fn server_directories(&self) -> Vec<PathBuf> {
        server_directories(self.directives.server_tmpdir.clone(), variable)
    }

    fn nameless_directories(&self) -> Vec<PathBuf> {
        nameless_directories(self.directives.server_tmpdir.clone(), variable)
    }

    fn system_directories(&self) -> Vec<PathBuf> {
        system_directories(self.directives.system_tmpdir.clone(), variable)
    }

    /// Tries the server that has started this process.
    fn attempt_own(&mut self, uri: ServerUri, dialect: Dialect) -> Result<Option<Attached>, Error> {
        let origin = "the environment".to_owned();
        let own = Candidate { uri, dialect, origin, secret: None, pid: None };
        if self.is_connected_to(&own) {
            return Ok(None);
        }
        match self.ask(&own, self.patience)? {
            Ok(attached) => Ok(Some(attached)),
            Err(refusal) => {
                self.note(&own, &refusal);
                Ok(None)
            }
        }
    }

    fn is_connected_to(&mut self, candidate: &Candidate) -> bool {
        let is_known = self.connected.iter().any(|known| known.uri == candidate.uri);
        if is_known {
            self.tried.push(format!("  {}: the tool is connected to it already", candidate.origin));
        }
        is_known
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }

    /// Asks one server to admit us, and takes it.
    fn ask(&self, candidate: &Candidate, patience: Duration) -> Result<Result<Attached, Refusal>, Error> {
        let attempt = Attempt(self.engine.number());
        let mut answer = self.engine.call(self.question(candidate, attempt, patience))?;
        if let ToolReturn::Asked(Ok(())) = answer {
            let primary = self.directives.primary;
            answer = self.engine.call(ToolCall::Take { attempt, primary })?;
        }
        let reason = match answer {
            ToolReturn::Attached(Ok(attached)) => return Ok(Ok(attached)),
            ToolReturn::Asked(Err(reason)) | ToolReturn::Attached(Err(reason)) => reason,
            other => {
                tracing::error!(?other, "an answer of another kind");
                InitError::TurnedAway
            }
        };
        Ok(Err(Refusal { reason, trouble: self.engine.take_trouble() }))
    }

    fn question(&self, candidate: &Candidate, attempt: Attempt, patience: Duration) -> ToolCall {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let uri = candidate.uri.clone();
        // On this machine the kernel vouches for us.
        let secret = candidate.secret.clone().filter(|_| !uri.address.ip().is_loopback());
        ToolCall::Ask {
            attempt,
            uri,
            dialect: candidate.dialect,
            patience: left.map_or(patience, |left| left.min(patience)),
            secret,
        }
    }

    /// Records why a server has not admitted us.
    fn note(&mut self, candidate: &Candidate, refusal: &Refusal) {
        self.tried.push(format!("  {}: {}", candidate.origin, explain(refusal, candidate.uri.address)));
        let reason = &refusal.reason;
        self.status = reason.status();
        self.turned_away += u32::from(*reason == InitError::TurnedAway);
        self.refused |= matches!(reason, InitError::Refused(_) | InitError::Foreign | InitError::TimedOut)
            || self.turned_away >= MOST_TURNED_AWAY;
    }

    fn failure(self) -> Error {
        Error::NoServer { tried: self.tried, status: self.status }
    }
}

fn explain(refusal: &Refusal, address: SocketAddr) -> String {
    let Refusal { reason, trouble } = refusal;
    let hint = match reason {
        InitError::Refused(Status::ERR_NOT_SUPPORTED) => " (it serves no tools)",
        InitError::Refused(Status::ERR_NO_PERMISSIONS) if !address.ip().is_loopback() => {
            " (a server on another node wants the secret in its rendezvous file, or in PHALANX_TOOL_SECRET)"
        }
        InitError::Refused(Status::ERR_NO_PERMISSIONS) => " (it serves its own user and root)",
        InitError::Refused(Status::ERR_EXISTS) => " (another process has the name that this tool brings)",
        InitError::TimedOut if address.ip().is_loopback() => " (its process may be stopped, or very busy)",
        InitError::TimedOut => " (its process may be stopped, or a firewall in between)",
        InitError::TurnedAway => " (servers of OpenPMIx close when they serve no tools or only other users)",
        InitError::Unreachable if !address.ip().is_loopback() => " (or a firewall is in between)",
        _ => "",
    };
    let trouble = trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
    format!("{reason}{trouble}{hint}")
}

/// The dialect for a server of this release: all since 4.1 support `v41`.
pub(super) fn dialect(release: Release) -> Dialect {
    let generation = match (release.major, release.minor) {
        (0..=2, _) => Generation::V21,
        (3, _) => Generation::V3,
        (4, 0) => Generation::V4,
        _ => Generation::V41,
    };
    Dialect { format: Format { generation, described: false }, release }
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The secret of a server on another node with an address that was given without its file.
const SECRET_VARIABLE: &str = "PHALANX_TOOL_SECRET";
/// For a server that nothing else is known of.
const DEFAULT_RELEASE: Release = Release::new(5, 0, 0);
/// OpenPMIx servers that refuse close the connection without an answer. PRRTE's also do so by mistake, when a tool follows closely
/// behind another.
const MOST_TURNED_AWAY: u32 = 3;
/// Maximum number of servers from a search.
const MOST_CANDIDATES: usize = 32;
/// How long each of several servers may take to admit us, in the first and in the next round: one that accepts connections and then
/// does not answer must not hold a search up, and on a busy machine a slow one is asked again.
const SHORT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Within the time that the program allows, if it sets one.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;

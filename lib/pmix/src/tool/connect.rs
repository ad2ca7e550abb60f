//! From what a tool was told to a server that has let it in: the standard's chain of precedence.
//!
//! Who names a server gets that one or an error. Candidates are tried in the order in which the search has found them, the newest
//! first (`race.rs`), each of several with a short deadline, and what became of each is kept for the error's text.

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

/// A server that may let us in.
struct Candidate {
    uri: ServerUri,
    dialect: Dialect,
    /// Where its address comes from.
    origin: String,
    /// What it wants to be shown by tools on other nodes.
    secret: Option<String>,
    /// Its process, if that is known and on this node.
    pid: Option<u32>,
}

enum Raced {
    Attached(Attached),
    Slow(Vec<Candidate>),
}

/// One way through the chain.
pub(super) struct ServerSearch<'a> {
    engine: &'a Engine<core::Tool>,
    directives: &'a Directives,
    hostname: &'a str,
    /// Where a server that has started this process is, if one has.
    own: Option<(ServerUri, Dialect)>,
    connected: Vec<AttachedServer>,
    /// How long a server may take that was named, or that has no others beside it.
    patience: Duration,
    until: Option<Instant>,
    /// What was looked for, where, and what became of it.
    tried: Vec<String>,
    status: Status,
    /// A server is there and has said no, or nothing in all its time: asking again does not help.
    refused: bool,
    /// How often one has hung up without a word.
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

    /// Whether the tool is connected to the server at the address that it goes after.
    pub(super) fn is_over(&self) -> bool {
        let Target::Uri { uri, .. } = &self.directives.target else { return false };
        let uri = ServerUri::parse_with_variables(uri);
        uri.is_ok_and(|uri| self.connected.iter().any(|known| known.uri == uri))
    }

    /// The first server of the chain that lets us in.
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

    /// How often a server that is named and not there is looked for again. One that is just being started deserves a moment.
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
        // One that was named is waited for, whatever else has its name.
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
        // It has all the time that the program gives.
        let patience = self.until.filter(|_| left.len() == 1).map_or(self.patience, |_| Duration::MAX);
        for candidate in left {
            match self.ask(&candidate, patience)? {
                Ok(attached) => return Ok(Some(attached)),
                Err(refusal) => self.note(&candidate, &refusal),
            }
        }
        Ok(None)
    }

    /// Asks several servers. Those that have not answered are left for another time, if there is to be one.
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

    /// OpenPMIx takes `file:PATH` for an address, too.
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

    /// An address does not say which release speaks there; a file of the same server does, if it is here.
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

    /// Asks one server to let us in, and takes it.
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
        // Here the kernel vouches for us.
        let secret = candidate.secret.clone().filter(|_| !uri.address.ip().is_loopback());
        ToolCall::Ask {
            attempt,
            uri,
            dialect: candidate.dialect,
            patience: left.map_or(patience, |left| left.min(patience)),
            secret,
        }
    }

    /// Keeps why a server has not let us in.
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

/// How to speak with a server of this release: `v41` is known to all since 4.1.
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

/// The secret of a server on another node whose address was given without its file.
const SECRET_VARIABLE: &str = "PHALANX_TOOL_SECRET";
/// Of a server that we know nothing else of.
const DEFAULT_RELEASE: Release = Release::new(5, 0, 0);
/// OpenPMIx servers that refuse hang up without a word. PRRTE's also do when a tool comes close behind another, and do not mean it.
const MOST_TURNED_AWAY: u32 = 3;
/// Of servers that a search has found.
const MOST_CANDIDATES: usize = 32;
/// How long each of several servers may take to let us in, in the first round and in the next: one that takes connections and then says
/// nothing must not hold a search up, and on a busy machine one that is slow is asked again.
const SHORT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Within the time that the program gives, if it says one.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;

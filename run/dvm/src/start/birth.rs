//! The protocol between the root and a daemon that is being started, over the streams of the command that starts it.
//!
//! The daemon writes lines, as a login shell may have written others before: its identity ([`greeting`]), and then its
//! addresses. It reads the secret of the DVM as a line of its own, and then two messages, each preceded by its length in four
//! bytes: its [`Birth`], and the [`Others`]. Empty lines before and empty messages between are signs of life of the root; a line with a
//! blank before, or a length that no message has, announces that the root is silent until its next sign of life.

use std::sync::Arc;

use phalanx_wire::Text;

use crate::config::Limits;
use crate::encoding::{Encode, encoded, from_bytes, to_bytes};
use crate::hosts::Slots;
use crate::id::NodeId;

/// The configuration of a new daemon and its DVM.
#[derive(Clone, Debug, PartialEq)]
pub struct Birth {
    pub dvm: Arc<str>,
    /// The host of the root.
    pub root: Arc<str>,
    /// The number of daemons.
    pub size: u32,
    /// Children per daemon.
    pub radix: u32,
    /// The networks by which it is to be reached, in the syntax of `--network`.
    pub networks: Vec<Text>,
    pub lasts: bool,
    /// Each daemon is the system server of its host.
    pub is_system: bool,
    pub limits: Limits,
    /// For each daemon that reads this, in the order of its agent's hosts.
    pub cradles: Vec<Cradle>,
}

/// What differs from daemon to daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Cradle {
    pub node: NodeId,
    pub slots: Slots,
    pub max_slots: Option<u32>,
}

/// The addresses of the daemons that have others below them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    pub addresses: Vec<(NodeId, Arc<str>)>,
}

impl Birth {
    pub fn to_bytes(&self) -> Vec<u8> {
        said(self)
    }

    /// Decodes it, without the length before it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Birth, String> {
        from_bytes(bytes).map_err(|error| format!("cannot understand what this daemon is to be: {error}"))
    }
}

impl Others {
    pub fn to_bytes(&self) -> Vec<u8> {
        said(self)
    }

    /// Decodes it, without the length before it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Others, String> {
        from_bytes(bytes).map_err(|error| format!("cannot understand where other daemons are: {error}"))
    }
}

fn said<T: Encode>(what: &T) -> Vec<u8> {
    let body = to_bytes(what);
    let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// The longest [`Birth`] or [`Others`].
pub const LONGEST: usize = 64 << 20;

/// In place of the length of a message: the root is there.
pub const ALIVE: [u8; 4] = [0; 4];
/// The same: the root will be silent.
pub const STANDS: [u8; 4] = [u8::MAX; 4];
/// Before the secret, what says the one and the other.
pub const ALIVE_EARLY: u8 = b'\n';
pub const STANDS_EARLY: u8 = b' ';

/// The first line of a daemon.
pub fn greeting() -> String {
    format!("{GREETING}{PROTOCOL} {RELEASE}")
}

/// Its second line.
pub fn reached_at(addresses: &str) -> String {
    format!("{REACHED}{addresses}")
}

/// Its last line, if it cannot go on.
pub fn failed(why: &str) -> String {
    format!("{FAILED}{}", why.replace('\n', "; "))
}

/// A line that a daemon has written, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Greeting,
    /// A greeting of a daemon that cannot take part, and why.
    Stranger(String),
    Reached(&'a str),
    Failed(&'a str),
    /// Output of a login shell, for example.
    Other,
}

impl Line<'_> {
    pub(super) fn of(line: &str) -> Line<'_> {
        if let Some(who) = line.strip_prefix(GREETING) {
            return match who.split_once(' ') {
                Some((protocol, release)) if protocol == PROTOCOL && release == RELEASE => Line::Greeting,
                Some((_, release)) if release != RELEASE => {
                    Line::Stranger(format!("px there is version {release:?}, here it is {RELEASE:?}"))
                }
                _ => Line::Stranger(format!("px there says {who:?}, here it is \"{PROTOCOL} {RELEASE}\"")),
            };
        }
        if let Some(addresses) = line.strip_prefix(REACHED) {
            return Line::Reached(addresses);
        }
        line.strip_prefix(FAILED).map_or(Line::Other, Line::Failed)
    }
}

const GREETING: &str = "px-daemon ";
const REACHED: &str = "px-daemon-at ";
const FAILED: &str = "px-daemon-failed ";
/// Incremented whenever this protocol changes.
const PROTOCOL: &str = "5";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

encoded!(struct Birth { dvm, root, size, radix, networks, lasts, is_system, limits, cradles });
encoded!(struct Cradle { node, slots, max_slots });
encoded!(struct Others { addresses });
encoded!(struct Limits {
    kill_grace, reap_grace, output_grace, settle_grace, heartbeat, silence, reconnect, boot, agent, retry, output_pool,
    output_link, output_cache, stdin_window, ended_jobs, journals, published, cleanup,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_and_meetings_come_back_from_bytes() {
        let birth = Birth {
            dvm: "px-n1-7".into(),
            root: "n1".into(),
            size: 40,
            radix: 32,
            networks: vec!["eth0".into()],
            lasts: true,
            is_system: true,
            limits: Limits::default(),
            cradles: vec![Cradle { node: NodeId(3), slots: Slots::Stated(4), max_slots: Some(8) }],
        };
        assert_eq!(Birth::from_bytes(&birth.to_bytes()[4..]), Ok(birth));
        let others = Others { addresses: vec![(NodeId(0), "10.0.0.1:400".into())] };
        assert_eq!(Others::from_bytes(&others.to_bytes()[4..]), Ok(others));
        assert!(Birth::from_bytes(b"no birth").is_err());
    }

    #[test]
    fn only_daemons_of_the_same_release_are_taken() {
        assert_eq!(Line::of(&greeting()), Line::Greeting);
        let said = |line: &'static str| match Line::of(line) {
            Line::Stranger(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(said("px-daemon 1 0.0.1").contains("version \"0.0.1\""));
        assert!(said("px-daemon 9").contains("\"9\""));
        assert_eq!(Line::of(&reached_at("1.2.3.4:5")), Line::Reached("1.2.3.4:5"));
        assert_eq!(Line::of(&failed("no\nroom")), Line::Failed("no; room"));
        assert_eq!(Line::of("Welcome to n2"), Line::Other);
    }
}

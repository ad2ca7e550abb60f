//! The users that this process trusts to run its servers: its own user, root, and those that the user has named.
//!
//! A file that leads to a server is judged by the owner of the opened file; a connection, before a byte is sent, by the owner that the
//! kernel reports for its other end.

use std::io;

use phalanx_wire::{Info, Value};
use rustix::process::geteuid;

use crate::unmapped::{knows_root, unmapped_user};

/// The users that may own a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    users: Vec<u32>,
    /// A launcher has passed this process its server's address in the environment.
    of_launcher: bool,
}

/// The value of [`TRUST_USER`] is not a user's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUser;

impl Default for Trust {
    fn default() -> Trust {
        Trust { users: vec![geteuid().as_raw(), 0], of_launcher: false }
    }
}

impl Trust {
    /// Trusts these users as well.
    pub fn of_users(users: impl IntoIterator<Item = u32>) -> Trust {
        let mut trust = Trust::default();
        trust.users.extend(users);
        trust
    }

    #[cfg(test)]
    pub fn nobody() -> Trust {
        Trust { users: Vec::new(), of_launcher: false }
    }

    /// For a process that was started with the address of its server. In a user namespace of its own it cannot distinguish root from
    /// other users outside of it, and root's daemons start processes in such containers.
    pub fn of_started_process() -> Trust {
        Trust { of_launcher: true, ..Trust::default() }
    }

    /// Reads the attribute [`TRUST_USER`], which may be given several times.
    pub fn read(info: &[Info]) -> Result<Trust, NotAUser> {
        let named = info.iter().filter(|info| info.key == *TRUST_USER);
        let users = named.map(|info| match &info.value {
            Value::Uint32(uid) => Ok(*uid),
            value => value.as_i64().and_then(|uid| u32::try_from(uid).ok()).ok_or(NotAUser),
        });
        Ok(Trust::of_users(users.collect::<Result<Vec<u32>, NotAUser>>()?))
    }

    pub fn add(&mut self, other: &Trust) {
        for user in &other.users {
            if !self.users.contains(user) {
                self.users.push(*user);
            }
        }
    }

    pub fn includes(&self, user: u32) -> bool {
        self.users.contains(&user) || (self.of_launcher && Some(user) == root_outside())
    }

    /// Fails, with the reason, if this user may not own a server's file or its end of a connection.
    pub fn check(&self, user: u32) -> io::Result<()> {
        match self.includes(user) {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("it belongs to the user {user}, who is not trusted"),
            )),
        }
    }
}

/// The number that stands for all users outside of this user namespace, if root is one of them.
fn root_outside() -> Option<u32> {
    unmapped_user().filter(|_| !knows_root())
}

/// An attribute of ours for `PMIx_tool_init` and attaching: the number of a user that is trusted like our own.
pub const TRUST_USER: &str = "phalanx.trust.user";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_servers_and_roots_count_and_others_when_named() {
        let me = geteuid().as_raw();
        let (one, other) = (me.wrapping_add(1).max(1), me.wrapping_add(2).max(2));
        let mut trust = Trust::default();
        assert!(trust.includes(me) && trust.includes(0) && !trust.includes(one));
        trust.add(&Trust::read(&[Info::new(TRUST_USER, one)]).unwrap());
        assert!(trust.includes(one) && !trust.includes(other));
        assert!(trust.check(other).unwrap_err().to_string().contains(&other.to_string()));
        assert!(Trust::read(&[Info::new(TRUST_USER, "me")]).is_err());
    }
}

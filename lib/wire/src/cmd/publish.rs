//! PUBLISH, LOOKUP, UNPUBLISH. Data and directives stand mixed in one list of infos.

use phalanx_spec::Status;

use crate::info::{Info, Pdata};
use crate::name::Key;

/// `euid` is what the client claims; a server never believes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    pub euid: u32,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    pub euid: u32,
    pub keys: Vec<Key>,
    pub info: Vec<Info>,
}

/// `keys` empty: everything that the asker has published.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpublish {
    pub euid: u32,
    pub keys: Vec<Key>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LookupReply {
    pub status: Status,
    pub data: Vec<Pdata>,
}

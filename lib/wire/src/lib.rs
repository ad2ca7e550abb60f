//! The bytes that cross a PMIx socket, and nothing else.
//!
//! Everything here is pure: bytes in, values out, and back. Sockets and clocks live in the shells (`pmix`, `node`);
//! what a message *means* lives in `phalanx-core`. The protocol itself is described in `docs/wire.md`.
#![forbid(unsafe_code)]

pub mod cmd;
pub mod codec;
pub mod collected;
pub mod compress;
pub mod credential;
pub mod frame;
pub mod hello;
mod info;
pub mod modex;
mod name;
pub mod plain;
pub mod regex;
pub mod rendezvous;
pub mod show;
mod text;
pub mod uri;
mod value;

pub use info::{DataArray, Info, InfoFlags, InfoList, Kval, Pdata};
pub use name::{Key, NameError, Nspace, ProcId};
pub use text::{Blob, Text};
pub use value::{
    App, Buffer, Coord, Device, DeviceDistance, DiskStats, Endpoint, Envar, Geometry, NetStats, NodePid,
    NodeStats, ProcInfo, ProcStats, Query, Regattr, Regex2, ResourceUnit, Timeval, TopologyBlob, Value,
};

//! The calls of tools. Client calls of a tool are in the client's files.

mod init;
mod servers;

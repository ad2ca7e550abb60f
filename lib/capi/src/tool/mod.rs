//! The calls of tools. What a client can ask a tool asks through the files of the clients.

mod init;
mod servers;

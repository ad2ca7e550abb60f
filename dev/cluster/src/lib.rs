//! Hosts for tests and trials, on one machine: each has its own name, addresses, processes, `/tmp` and `/run`.
//!
//! A host is a set of namespaces: network, mount, PID, UTS and IPC. All of them live inside one more set, the [`Cluster`], which
//! holds the switch that connects them. Nothing of it exists outside: when the process that created a cluster ends, for any reason,
//! the kernel kills everything inside, and network and files disappear with the last process. Programs and home directories are
//! those of the machine, as on a cluster with a shared file system.
//!
//! [`Ssh`] and [`Slurm`] start the usual services for reaching other hosts. A [`Host`] can be disconnected and frozen; a [`Relay`]
//! delays or splits traffic, or ends connections. By hand: `cargo xtask cluster -n 4 -- CMD`.
//!
//! Smaller worlds, for tests without hosts: [`alone`] gives a command its own processes and temporary files, [`emptied`] hides
//! the content of some directories, [`bare`] hides the software that tests without peers must do without.
//!
//! It needs root and a few Debian packages; errors name those that are missing.

mod alone;
mod bare;
mod built;
mod cluster;
mod debian;
mod emptied;
mod host;
mod inside;
mod join;
mod relay;
mod roles;
mod slurm;
mod ssh;
mod wait;
mod world;

pub use alone::{PRIVATE, alone};
pub use bare::bare;
pub use built::{BUILD, built, workspace};
pub use cluster::{Cluster, NEEDS_ROOT, Options};
pub use debian::{debian_dir, debian_file};
pub use emptied::emptied;
pub use host::Host;
pub use join::{end_as, stand_for};
pub use relay::{Relay, Weather};
pub use roles::run_role;
pub use slurm::{Slurm, Trust};
pub use ssh::Ssh;
pub use wait::until;

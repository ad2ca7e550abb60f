//! The hardware of a node: packages, NUMA nodes, caches, cores, hardware threads, and the network and
//! compute devices beside them.
//!
//! Owns reading Linux's view of the hardware from a given directory (`/` for this machine, a
//! captured tree in a test), and everything that follows from that view alone: CPU sets, locality strings and
//! bits, distances, and the same data as hwloc XML.
//!
//! It never binds anything, never asks the kernel about a process, and depends on nothing of ours.
//!
//! Next stop: the runtime maps and binds processes with a [`Topology`]; the server answers locality and
//! distance requests with it and passes its XML to MPI libraries.

mod codec;
mod cpuset;
mod details;
mod device;
mod distance;
mod error;
pub mod locality;
mod sysfs;
mod tree;
mod xml;

pub use cpuset::{CpuSet, CpuSetError, MAX_CPUS};
pub use device::{Device, DeviceKind, PciId};
pub use distance::{DeviceDistance, NumaDistances, UNKNOWN_DISTANCE};
pub use error::TopologyError;
pub use tree::{Cache, Level, Memory, Object, Topology, UnknownLevel};

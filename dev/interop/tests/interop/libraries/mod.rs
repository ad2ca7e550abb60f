//! PMIx libraries in clients and servers of others: ours, Debian's, the wheel's.

mod asked;
mod clones;
mod libpmix;
mod pmix_client;
mod python;
mod servers;
mod slurm;
mod topology;

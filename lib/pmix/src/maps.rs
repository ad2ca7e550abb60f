//! Maps of nodes and of their ranks in the compact form used to register jobs.

use phalanx_wire::regex::{nodes_to_raw, nodes_to_regex, ppn_to_regex};

/// The names of nodes, for `pmix.nmap` (`PMIx_generate_regex`).
pub fn generate_regex(nodes: &[impl AsRef<str>]) -> String {
    nodes_to_regex(nodes).unwrap_or_else(|| nodes_to_raw(nodes))
}

/// The ranks on each of these nodes, for `pmix.pmap` (`PMIx_generate_ppn`).
pub fn generate_ppn(ranks: &[Vec<u32>]) -> String {
    ppn_to_regex(ranks)
}

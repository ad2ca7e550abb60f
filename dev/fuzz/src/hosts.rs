//! Input from users and batch systems: lists of hosts, hostfiles, rankfiles, sequences.

use phalanx_dvm::hosts::{
    parse_grid_engine, parse_hostfile, parse_hosts, parse_lsf, parse_rankfile, parse_sequence, parse_slurm,
    text_of,
};

/// An error shows the offending place, which must exist.
pub(crate) fn files(input: &[u8]) {
    let Some((kind, text)) = input.split_first() else { return };
    let text = match text_of("hosts", text) {
        Ok(text) => text,
        Err(error) => return assert!(error.line > 0 && error.column > 0),
    };
    let error = match kind % 7 {
        0 => parse_hosts("--host", text).err(),
        1 => parse_hostfile("hosts", text).err(),
        2 => parse_rankfile("ranks", text).err(),
        3 => parse_sequence("hosts", text).err(),
        4 => parse_lsf(text).err(),
        6 => parse_grid_engine("hosts", text).err(),
        _ => {
            let (nodes, per_node) = text.split_once('\n').unwrap_or((text, ""));
            parse_slurm(nodes, Some(per_node).filter(|text| !text.is_empty())).err()
        }
    };
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
}

//! CPU affinity as the kernel represents it: masks of any length.

use std::io;

use phalanx_topo::CpuSet;

/// The CPUs that its parent, a cpuset or a control group leave to this process.
pub(crate) fn allowed() -> io::Result<CpuSet> {
    let mut mask = vec![0_u8; MASK_BYTES];
    // SAFETY: the kernel writes at most as many bytes as the given size of the buffer. Called directly because the C library's wrapper does not
    // return how many bytes were written.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len(), mask.as_mut_ptr()) };
    let Ok(written) = usize::try_from(written) else { return Err(io::Error::last_os_error()) };
    Ok(cpus(mask.get(..written).unwrap_or(&mask)))
}

/// The mask that `sched_setaffinity` takes: whole machine words, in this machine's byte order.
pub(super) fn mask(cpus: &CpuSet) -> Vec<u8> {
    let words = cpus.last().map_or(0, |last| last as usize / WORD_BITS + 1);
    let mut mask = vec![0_usize; words];
    for cpu in cpus.iter() {
        if let Some(word) = mask.get_mut(cpu as usize / WORD_BITS) {
            *word |= 1 << (cpu as usize % WORD_BITS);
        }
    }
    mask.into_iter().flat_map(usize::to_ne_bytes).collect()
}

fn cpus(mask: &[u8]) -> CpuSet {
    let mut cpus = CpuSet::default();
    for (at, word) in mask.chunks_exact(size_of::<usize>()).enumerate() {
        let word = word.try_into().map_or(0, usize::from_ne_bytes);
        for bit in (0..WORD_BITS).filter(|bit| word & (1 << bit) != 0) {
            cpus.insert((at * WORD_BITS + bit) as u32);
        }
    }
    cpus
}

const WORD_BITS: usize = usize::BITS as usize;
/// 65,536 CPUs.
const MASK_BYTES: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_read_back() {
        for list in ["0", "0-3,63-64", "5,127,4095"] {
            let set = CpuSet::from_list(list).unwrap();
            assert_eq!(cpus(&mask(&set)), set);
        }
        assert!(mask(&CpuSet::default()).is_empty());
    }

    #[test]
    fn something_is_allowed() {
        assert!(!allowed().unwrap().is_empty());
    }
}

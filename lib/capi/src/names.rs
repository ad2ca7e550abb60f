//! Names of processes, namespaces and keys in fixed arrays: loading, copying, comparing.

use phalanx_spec::Rank;

use crate::guard::exported;
use crate::layout::pmix_proc_t;
use crate::pointer::{Plain, Ptr};

exported! {
    fn PMIx_Load_key(to: Ptr<[u8; 512]>, from: Ptr<u8>) {
        to.write(fixed(from));
    }

    fn PMIx_Load_nspace(to: Ptr<[u8; 256]>, from: Ptr<u8>) {
        to.write(fixed(from));
    }

    fn PMIx_Load_procid(to: Ptr<pmix_proc_t>, nspace: Ptr<u8>, rank: u32) {
        to.write(pmix_proc_t { nspace: fixed(nspace), rank });
    }

    fn PMIx_Proc_load(to: Ptr<pmix_proc_t>, nspace: Ptr<u8>, rank: u32) {
        to.write(pmix_proc_t { nspace: fixed(nspace), rank });
    }

    fn PMIx_Xfer_procid(to: Ptr<pmix_proc_t>, from: Ptr<pmix_proc_t>) {
        if let Some(proc) = from.read() {
            to.write(proc);
        }
    }

    fn PMIx_Check_key(key: Ptr<u8>, wanted: Ptr<u8>) -> bool {
        same::<512>(key, wanted)
    }

    /// An empty name matches any.
    fn PMIx_Check_nspace(one: Ptr<u8>, other: Ptr<u8>) -> bool {
        same_nspace(one, other)
    }

    fn PMIx_Check_rank(one: u32, other: u32) -> bool {
        same_rank(one, other)
    }

    fn PMIx_Check_procid(one: Ptr<pmix_proc_t>, other: Ptr<pmix_proc_t>) -> bool {
        match (one.read(), other.read()) {
            (Some(a), Some(b)) => same_nspace(nspace_of(one), nspace_of(other)) && same_rank(a.rank, b.rank),
            _ => false,
        }
    }

    fn PMIx_Check_reserved_key(key: Ptr<u8>) -> bool {
        start(key, 4) == b"pmix"
    }

    fn PMIx_Nspace_invalid(nspace: Ptr<u8>) -> bool {
        start(nspace, 1).is_empty()
    }

    fn PMIx_Procid_invalid(proc: Ptr<pmix_proc_t>) -> bool {
        proc.read().is_none_or(|c| c.nspace[0] == 0 || c.rank == Rank::INVALID.0)
    }

    fn PMIx_Rank_valid(rank: u32) -> bool {
        Rank(rank).is_process()
    }

    /// Writes `CLUSTER:NSPACE`.
    fn PMIx_Multicluster_nspace_construct(to: Ptr<[u8; 256]>, cluster: Ptr<u8>, nspace: Ptr<u8>) {
        let mut both = start(cluster, 255);
        both.push(b':');
        both.extend(start(nspace, 255));
        to.write(cut(&both));
    }

    /// Splits `CLUSTER:NSPACE`.
    fn PMIx_Multicluster_nspace_parse(from: Ptr<u8>, cluster: Ptr<[u8; 256]>, nspace: Ptr<[u8; 256]>) {
        let both = start(from, 255);
        let colon = both.iter().position(|byte| *byte == b':').unwrap_or(both.len());
        let (before, behind) = both.split_at(colon);
        cluster.write(cut(before));
        nspace.write(cut(behind.get(1..).unwrap_or_default()));
    }
}

/// A text in a fixed array, truncated to what fits; zeroes for NULL.
pub(crate) fn fixed<const N: usize>(text: Ptr<u8>) -> [u8; N]
where
    [u8; N]: Plain,
{
    cut(&start(text, N - 1))
}

fn cut<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut room = [0; N];
    for (to, from) in room.iter_mut().take(N - 1).zip(text) {
        *to = *from;
    }
    room
}

/// The text up to its NUL, at most `limit` bytes: names in arrays need not have one.
fn start(text: Ptr<u8>, limit: usize) -> Vec<u8> {
    text.items(limit).take_while(|byte| *byte != 0).collect()
}

fn same<const N: usize>(one: Ptr<u8>, other: Ptr<u8>) -> bool {
    !one.is_null() && !other.is_null() && start(one, N - 1) == start(other, N - 1)
}

fn same_nspace(one: Ptr<u8>, other: Ptr<u8>) -> bool {
    start(one, 1).is_empty() || start(other, 1).is_empty() || same::<256>(one, other)
}

fn same_rank(one: u32, other: u32) -> bool {
    one == other || one == Rank::WILDCARD.0 || other == Rank::WILDCARD.0
}

/// A process begins with its namespace.
fn nspace_of(proc: Ptr<pmix_proc_t>) -> Ptr<u8> {
    // SAFETY: the program guarantees that a process is there.
    unsafe { proc.cast() }
}

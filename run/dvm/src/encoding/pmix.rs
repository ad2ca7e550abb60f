//! Values, names and codes of PMIx, packed as for clients.

use phalanx_spec::{IofChannel, Persistence, ProcState, Range, Rank, Status};
use phalanx_wire::{Blob, Info, Key, Kval, Nspace, Pdata, ProcId, Text};

use super::{Encode, Malformed, Reader, Writer};

macro_rules! packed {
    ($($item:ty)+) => {$(
        impl Encode for $item {
            fn encode(&self, to: &mut Writer) {
                to.item(self);
            }

            fn decode(from: &mut Reader<'_>) -> Result<$item, Malformed> {
                from.item()
            }
        }
    )+};
}
packed!(Info Kval Pdata ProcId);
packed!(Key Nspace Text);
packed!(IofChannel Persistence ProcState Range Rank Status);

/// Contributions of members may be long: the length goes first, so that decoding need not search for the end.
impl Encode for Blob {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        to.raw(self.as_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Result<Blob, Malformed> {
        let count = from.count()?;
        from.raw(count).map(Blob::from)
    }
}

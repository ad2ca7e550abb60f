//! Values, names and codes of PMIx: packed as clients' are.

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

/// What members have put may be long: it is not looked through for its end.
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

//! Hardware: sets of CPUs as lists in text form, topologies in the form in which daemons send them.

use phalanx_topo::{CpuSet, Level, Topology};

use super::{Encode, Malformed, Reader, Writer, encoded};

encoded!(enum Level { 0 Machine, 1 Package, 2 Numa, 3 L3, 4 L2, 5 L1, 6 Core, 7 Pu });

impl Encode for CpuSet {
    fn encode(&self, to: &mut Writer) {
        self.to_string().encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<CpuSet, Malformed> {
        let list = String::decode(from)?;
        CpuSet::from_list(&list).map_err(|error| from.malformed(error.to_string()))
    }
}

impl Encode for Topology {
    fn encode(&self, to: &mut Writer) {
        self.encode().encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Topology, Malformed> {
        let bytes: Vec<u8> = Encode::decode(from)?;
        Topology::decode(&bytes).map_err(|error| from.malformed(error.to_string()))
    }
}

//! The node as hwloc XML: `lstopo -i` reads it, and MPI libraries load it instead of detecting the hardware themselves.
//!
//! Owns which objects there are and how they nest (`xml/element.rs`), and the two output formats: hwloc 2's and
//! hwloc 1's. It describes only the hardware, not hwloc itself: none of its capabilities, and no backends.

use crate::Topology;
use crate::details::Details;
use element::Element;

mod element;
mod v1;
mod v2;
mod writer;

impl Topology {
    /// The topology as hwloc XML, version 2. Facts that only the XML contains are read now, from the topology's origin; a topology
    /// from elsewhere lacks them.
    pub fn to_hwloc_xml(&self) -> String {
        let details = Details::of(self);
        v2::written(self, &Element::machine(self, &details), &details.kinds)
    }

    /// The topology as hwloc 1 XML, for programs that are linked with that version.
    pub fn to_hwloc1_xml(&self) -> String {
        v1::written(self, &Element::machine(self, &Details::of(self)))
    }
}

#[cfg(test)]
mod tests;

//! The node as hwloc XML: what `lstopo -i` reads and what MPI libraries load instead of looking for themselves.
//!
//! Owns which objects there are and how they nest (`xml/element.rs`), and the two forms in which that is written: hwloc 2's and
//! hwloc 1's. It states what was read; of hwloc itself, what it can do and which of its parts have looked, it says nothing.

use crate::Topology;
use crate::details::Details;
use element::Element;

mod element;
mod v1;
mod v2;
mod writer;

impl Topology {
    /// The topology in hwloc's XML, version 2. What only the XML says is read now, where the topology was read; one that came
    /// from elsewhere goes without.
    pub fn to_hwloc_xml(&self) -> String {
        let details = Details::of(self);
        v2::written(self, &Element::machine(self, &details), &details.kinds)
    }

    /// The topology in the XML of hwloc 1, for programs that are linked with that.
    pub fn to_hwloc1_xml(&self) -> String {
        v1::written(self, &Element::machine(self, &Details::of(self)))
    }
}

#[cfg(test)]
mod tests;

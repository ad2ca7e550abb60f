//! The types that travel between the daemons of this DVM.

use crate::msg::{Down, NodeReport, OpId, OutputPiece, Part, Side, Up};
use crate::overlay::{Bulk, Cargo, Merge};

#[derive(Clone, Debug)]
pub(crate) struct Load;

impl Cargo for Load {
    type Down = Down;
    type Up = Up;
    type Op = OpId;
    type Part = Part;
    type Side = Side;
    type Card = NodeReport;
    type Bulk = OutputPiece;

    fn result_of(down: &Down) -> Option<&OpId> {
        match down {
            Down::Done { op, .. } => Some(op),
            _ => None,
        }
    }
}

impl Bulk for OutputPiece {
    fn bytes(&self) -> usize {
        self.data.len()
    }
}

impl Merge for Part {
    fn merge(&mut self, other: Part) {
        Part::merge(self, other);
    }
}

#[cfg(test)]
mod tests;

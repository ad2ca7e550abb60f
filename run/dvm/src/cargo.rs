//! What travels between the daemons of this DVM.

use crate::msg::{Down, NodeReport, OpId, OutputPiece, Part, Side, Up};
use crate::overlay::{Bulk, Cargo, Merge};

/// What daemons say to each other.
pub type Msg = crate::overlay::Msg<Load>;

#[derive(Clone, Debug)]
pub struct Load;

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

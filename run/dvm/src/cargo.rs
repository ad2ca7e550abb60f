//! What travels between the daemons of this DVM.

use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

use crate::boot::NodeReport;
use crate::msg::{Down, OpId, Part, Side, Up};
use crate::overlay::{Bulk, Cargo};

/// What daemons say to each other.
pub type Msg = crate::overlay::Msg<Load>;

#[derive(Clone, Debug)]
pub struct Load;

/// A piece of a process's output. Empty: the stream has ended.
#[derive(Clone, Debug)]
pub struct OutputPiece {
    pub proc: ProcId,
    pub pid: Option<u32>,
    pub channel: IofChannel,
    pub data: Arc<[u8]>,
}

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

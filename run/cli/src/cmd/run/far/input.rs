//! Standard input on its way to the job: each piece is sent when the ranks have taken the one before.

use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::thread;

use phalanx_dvm::StdinTarget;
use phalanx_node::StdinSource;
use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};
use pmix::Tool;

use crate::resolve::Run;
use crate::tool::input::Reading;

/// The source of a job's input, and the ranks that read it.
pub(super) struct Feed {
    source: StdinSource,
    rank: Rank,
}

impl Feed {
    /// None: no rank reads it.
    pub(super) fn of(run: &Run) -> Option<Feed> {
        let rank = match run.request.stdin {
            StdinTarget::None => return None,
            StdinTarget::All => Rank::WILDCARD,
            StdinTarget::Rank(rank) => rank,
        };
        (run.stdin != StdinSource::Silent).then(|| Feed { source: run.stdin.clone(), rank })
    }

    /// Hands the input on until it has ended or no rank reads any more. The end reaches the ranks, too. Returns the reading of our own standard
    /// input.
    pub(super) fn start(self, tool: &Arc<Tool>, nspace: &Nspace) -> Option<Reading> {
        let targets = [ProcId::new(nspace, self.rank)];
        let failed = |error: &dyn Error| tracing::warn!(%error, "standard input does not reach the job");
        let source: Box<dyn Read + Send> = match &self.source {
            StdinSource::Inherited => {
                let reading = Reading::begin(tool, targets.to_vec(), move |error| failed(error));
                return reading.inspect_err(|error| failed(error)).ok();
            }
            StdinSource::File(path) => match File::open(path) {
                Ok(file) => Box::new(file),
                Err(_) => Box::new(io::empty()),
            },
            StdinSource::Empty | StdinSource::Silent => Box::new(io::empty()),
        };
        let tool = tool.clone();
        thread::spawn(move || push_all(&tool, &targets, source));
        None
    }
}

fn push_all(tool: &Tool, targets: &[ProcId], mut source: impl Read) {
    let mut piece = vec![0; PIECE];
    loop {
        let count = match source.read(&mut piece) {
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        let pushed = tool.iof_push(targets, piece.get(..count).unwrap_or_default(), &[]);
        if count == 0 || pushed.is_err() {
            return;
        }
    }
}

const PIECE: usize = 64 << 10;

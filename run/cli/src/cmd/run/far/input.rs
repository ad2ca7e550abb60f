//! Standard input on its way to the job: each piece is sent when the ranks have taken the one before.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use phalanx_dvm::StdinTarget;
use phalanx_node::StdinSource;
use phalanx_shell::stdin::Collection;
use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};
use pmix::Tool;

use crate::resolve::Run;

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

    /// Runs until the source has ended or no rank reads any more. The end reaches the ranks, too.
    pub(super) fn run(self, tool: &Arc<Tool>, nspace: &Nspace) -> io::Result<()> {
        let targets = [ProcId::new(nspace, self.rank)];
        let mut source: Box<dyn Read> = match &self.source {
            StdinSource::Inherited => return collect(tool.clone(), targets.to_vec()),
            StdinSource::File(path) => match File::open(path) {
                Ok(file) => Box::new(file),
                Err(_) => Box::new(io::empty()),
            },
            StdinSource::Empty | StdinSource::Silent => Box::new(io::empty()),
        };
        let mut piece = vec![0; PIECE];
        loop {
            let count = match source.read(&mut piece) {
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let pushed = tool.iof_push(&targets, piece.get(..count).unwrap_or_default(), &[]);
            if count == 0 || pushed.is_err() {
                return Ok(());
            }
        }
    }
}

/// Our own standard input, on a thread that ends with the process.
fn collect(tool: Arc<Tool>, targets: Vec<ProcId>) -> io::Result<()> {
    let push = move |data: &[u8]| tool.iof_push(&targets, data, &[]).map_err(|error| error.status());
    Arc::new(Collection::new()?).spawn(push).map(drop)
}

const PIECE: usize = 64 << 10;

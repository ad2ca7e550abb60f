//! Standard input on its way to the job: each piece goes when the ranks have taken the one before.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::thread;
use std::time::Duration;

use phalanx_dvm::StdinTarget;
use phalanx_node::StdinSource;
use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};
use pmix::Tool;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::resolve::Run;

/// Where the input of a job comes from, and who reads it.
pub(super) struct Feed {
    source: StdinSource,
    rank: Rank,
}

impl Feed {
    /// None: nobody reads.
    pub(super) fn of(run: &Run) -> Option<Feed> {
        let rank = match run.request.stdin {
            StdinTarget::None => return None,
            StdinTarget::All => Rank::WILDCARD,
            StdinTarget::FirstRank => Rank(0),
            StdinTarget::Rank(rank) => rank,
        };
        (run.stdin != StdinSource::Silent).then(|| Feed { source: run.stdin.clone(), rank })
    }

    /// Until there is nothing to read, or nobody to read it. The end reaches the ranks, too.
    pub(super) fn run(self, tool: &Tool, nspace: &Nspace) {
        let targets = [ProcId::new(nspace, self.rank)];
        let mut piece = vec![0; PIECE];
        let mut source: Box<dyn Read> = match &self.source {
            StdinSource::Inherited => Box::new(Terminal),
            StdinSource::File(path) => match File::open(path) {
                Ok(file) => Box::new(file),
                Err(_) => Box::new(std::io::empty()),
            },
            StdinSource::Empty | StdinSource::Silent => Box::new(std::io::empty()),
        };
        loop {
            let count = match source.read(&mut piece) {
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let pushed = tool.iof_push(&targets, piece.get(..count).unwrap_or_default(), &[]);
            if count == 0 || pushed.is_err() {
                return;
            }
        }
    }
}

/// Our standard input. A terminal is left alone while we are in its background.
struct Terminal;

impl Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let stdin = std::io::stdin();
        while tcgetpgrp(&stdin).is_ok_and(|foreground| foreground != getpgrp()) {
            thread::sleep(PAUSE);
        }
        stdin.lock().read(buffer)
    }
}

const PIECE: usize = 64 << 10;
/// How soon a job that is brought to the foreground hears what is typed.
const PAUSE: Duration = Duration::from_millis(200);

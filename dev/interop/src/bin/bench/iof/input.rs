//! Bytes per second of standard input, to one rank and to eight.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::thread;

use phalanx_interop::load::Blocks;
use rustix::pipe::{PipeFlags, pipe_with};

use super::stream::Stream;
use super::{Faults, program, rounds};
use crate::Plan;
use crate::launcher::Launcher;
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    let scale = u64::from(plan.scale);
    let loads = [("1 GiB to 1", 1, (1 << 30) / scale), ("256 MiB to 8", 8, (256 << 20) / scale)];
    let (mut rows, mut faults) = (Vec::new(), Faults::default());
    for (name, ranks, bytes) in loads {
        let mut row = Row::new();
        for _ in 0..rounds(plan) {
            for launcher in Launcher::ALL {
                let Some(options) = to_all(launcher, ranks) else { continue };
                let rates = row.entry(launcher).or_default();
                match rate(launcher, options, ranks, bytes) {
                    Ok(rate) => rates.push(rate),
                    Err(fault) => faults.note(launcher, name, &fault),
                }
            }
        }
        rows.push((name.to_owned(), row));
    }
    table::print("standard input, bytes read by one rank", "MB/s", &rows);
    faults.print();
}

/// Options with which every rank reads; none if a launcher has no such option.
fn to_all(launcher: Launcher, ranks: u32) -> Option<&'static [&'static str]> {
    match launcher {
        _ if ranks == 1 => Some(&[]),
        Launcher::Px => Some(&["--stdin", "all"]),
        Launcher::OpenMpi => Some(&["--stdin", "all"]),
        Launcher::Hydra | Launcher::Bare => None,
    }
}

/// From the first byte that a rank read to the end of the last rank.
fn rate(launcher: Launcher, options: &[&str], ranks: u32, bytes: u64) -> Result<f64, String> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let mut stream = Stream::start(launcher, options, ranks, &program(), &["sink"], Stdio::from(theirs));
    let writer = thread::spawn(move || {
        let (blocks, mut pipe, mut piece) = (Blocks::default(), File::from(ours), Vec::new());
        for at in (0..bytes).step_by(PIECE) {
            piece.clear();
            blocks.write(at, PIECE.min((bytes - at) as usize), &mut piece);
            if pipe.write_all(&piece).is_err() {
                return;
            }
        }
    });
    let mut said = Vec::new();
    loop {
        let more = stream.next(usize::MAX);
        if more.is_empty() {
            break;
        }
        said.extend_from_slice(more);
    }
    let ended = stream.end();
    let _ = writer.join();
    let said = String::from_utf8_lossy(&said).into_owned();
    let mut times = Vec::new();
    for line in said.lines() {
        let words: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match words.as_slice() {
            [_, read, 0, first, last] if *read == bytes => times.push((*first, *last)),
            _ => return Err(format!("a rank says {line:?}, {bytes} bytes were written")),
        }
    }
    if times.len() != ranks as usize || !ended {
        return Err(format!("{} of {ranks} ranks read to the end", times.len()));
    }
    let first = times.iter().map(|(first, _)| *first).min().unwrap_or(0);
    let last = times.iter().map(|(_, last)| *last).max().unwrap_or(0);
    Ok(bytes as f64 * 1e3 / (last - first) as f64)
}

const PIECE: usize = 64 << 10;

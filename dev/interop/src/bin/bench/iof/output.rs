//! Bytes per second of the ranks' output, and lines per second with tags.

use std::process::Stdio;
use std::time::Instant;

use phalanx_interop::load::{Blocks, Lines};

use super::stream::Stream;
use super::{Faults, program, rounds};
use crate::Plan;
use crate::launcher::Launcher;
use crate::table::{self, Row};

enum Load {
    Blocks(u64),
    Lines {
        ranks: u32,
        count: u64,
        /// Bytes per write; 0: one write per line.
        piece: usize,
    },
}

const LENGTH: usize = 80;

pub(crate) fn run(plan: &Plan) {
    let scale = u64::from(plan.scale);
    let of_16 = (64 << 20) / LENGTH as u64 / scale;
    let loads = [
        ("1 rank, 1 GiB", Load::Blocks((1 << 30) / scale)),
        ("16 x 64 MiB", Load::Lines { ranks: 16, count: of_16, piece: 65_536 }),
        ("8 x 10^6 lines", Load::Lines { ranks: 8, count: 1_000_000 / scale, piece: 0 }),
    ];
    measure(plan, "output", "MB/s", &loads, false);
    let loads = [("8 x 10^6 lines", Load::Lines { ranks: 8, count: 1_000_000 / scale, piece: 4096 })];
    measure(plan, "output with tags", "1000 lines/s", &loads, true);
}

fn measure(plan: &Plan, title: &str, unit: &str, loads: &[(&str, Load)], tagged: bool) {
    let (mut rows, mut faults) = (Vec::new(), Faults::default());
    for (name, load) in loads {
        let mut row = Row::new();
        for _ in 0..rounds(plan) {
            for launcher in Launcher::ALL {
                let options = if tagged { tags(launcher) } else { Some(&[][..]) };
                let Some(options) = options else { continue };
                let rates = row.entry(launcher).or_default();
                match rate(launcher, options, load, tagged) {
                    (rate, None) => rates.push(rate),
                    (rate, Some(fault)) => {
                        rates.push(rate);
                        faults.note(launcher, name, &fault);
                    }
                }
            }
        }
        rows.push(((*name).to_owned(), row));
    }
    table::print(title, unit, &rows);
    faults.print();
}

fn tags(launcher: Launcher) -> Option<&'static [&'static str]> {
    match launcher {
        Launcher::Px => Some(&["--output", "tag"]),
        Launcher::OpenMpi => Some(&["--tag-output"]),
        Launcher::Hydra => Some(&["-prepend-rank"]),
        Launcher::Bare => None,
    }
}

/// MB, or thousands of lines with tags, per second from the first byte to the last, and the fault, if any.
fn rate(launcher: Launcher, options: &[&str], load: &Load, tagged: bool) -> (f64, Option<String>) {
    let (ranks, arguments) = match load {
        Load::Blocks(bytes) => (1, vec!["blocks".to_owned(), bytes.to_string()]),
        Load::Lines { ranks, count, piece } => {
            (*ranks, vec!["lines".to_owned(), count.to_string(), LENGTH.to_string(), piece.to_string()])
        }
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut stream = Stream::start(launcher, options, ranks, &program(), &arguments, Stdio::null());
    let (mut blocks, mut lines) = (Blocks::default(), Lines::new(ranks, LENGTH, tagged));
    let mut began = None;
    loop {
        let bytes = stream.next(usize::MAX);
        if bytes.is_empty() {
            break;
        }
        began.get_or_insert_with(Instant::now);
        match load {
            Load::Blocks(_) => blocks.feed(bytes),
            Load::Lines { .. } => lines.feed(bytes),
        }
    }
    let seconds = began.map_or(f64::NAN, |began: Instant| began.elapsed().as_secs_f64());
    let ended = stream.end();
    let fault = match load {
        Load::Blocks(bytes) if blocks.wrong > 0 || blocks.bytes != *bytes => {
            Some(format!("{} of {bytes} bytes, {} pieces wrong", blocks.bytes, blocks.wrong))
        }
        Load::Lines { count, .. } => lines.faults(*count),
        Load::Blocks(_) => None,
    };
    let fault = if ended { fault } else { Some(format!("did not end well; {}", fault.unwrap_or_default())) };
    let amount = match (load, tagged) {
        (Load::Blocks(_), _) => blocks.bytes as f64 / 1e6,
        (Load::Lines { .. }, false) => lines.bytes as f64 / 1e6,
        (Load::Lines { .. }, true) => lines.whole() as f64 / 1e3,
    };
    (amount / seconds, fault)
}

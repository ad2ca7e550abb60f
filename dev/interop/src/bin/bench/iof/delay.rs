//! The time from the write of a line until it can be read from the launcher.

use std::process::Stdio;

use rustix::time::{ClockId, clock_gettime};

use super::program;
use super::stream::Stream;
use crate::Plan;
use crate::launcher::Launcher;
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    let lines = (3000 / plan.scale).max(200);
    let mut rows = Vec::new();
    for ranks in [1, 8] {
        let (mut median, mut late) = (Row::new(), Row::new());
        for _ in 0..super::rounds(plan) {
            for launcher in Launcher::ALL {
                let mut delays = delays(launcher, ranks, lines);
                delays.sort_by(f64::total_cmp);
                let at = |part: f64| delays.get((delays.len() as f64 * part) as usize).copied();
                median.entry(launcher).or_default().extend(at(0.5));
                late.entry(launcher).or_default().extend(at(0.99));
            }
        }
        rows.push((format!("n={ranks}, median"), median));
        rows.push((format!("n={ranks}, 99 %"), late));
    }
    table::print("delay of a line, each rank writes one every 2 ms", "us", &rows);
}

fn delays(launcher: Launcher, ranks: u32, lines: u32) -> Vec<f64> {
    let lines = lines.to_string();
    let mut stream =
        Stream::start(launcher, &[], ranks, &program(), &["clock", &lines, "2000"], Stdio::null());
    let (mut delays, mut text) = (Vec::new(), Vec::new());
    loop {
        let bytes = stream.next(usize::MAX);
        if bytes.is_empty() {
            break;
        }
        let clock = clock_gettime(ClockId::Monotonic);
        let now = clock.tv_sec as f64 * 1e6 + clock.tv_nsec as f64 / 1e3;
        text.extend_from_slice(bytes);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let written = line.trim_end().strip_prefix("at ").and_then(|at| at.parse::<f64>().ok());
            delays.extend(written.map(|at| now - at / 1e3));
        }
    }
    stream.end();
    delays
}

//! How much a launcher buffers while a rank writes as fast as it can and its output is hardly read.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::program;
use super::stream::Stream;
use crate::Plan;
use crate::launcher::Launcher;
use crate::memory;
use crate::table::{self, Row};

const LAUNCHERS: [Launcher; 3] = [Launcher::Px, Launcher::OpenMpi, Launcher::Hydra];

pub(crate) fn run(plan: &Plan) {
    let time = Duration::from_secs(20) / plan.scale.min(5);
    let (mut growth, mut peaks) = (Vec::new(), Vec::new());
    for (name, piece) in [("64 KiB / 100 ms", 64 << 10), ("reads nothing", 0)] {
        let (mut grows, mut peak) = (Row::new(), Row::new());
        for launcher in LAUNCHERS {
            let (by, most) = held(launcher, piece, time);
            grows.entry(launcher).or_default().push(by);
            peak.entry(launcher).or_default().push(most);
        }
        growth.push((name.to_owned(), grows));
        peaks.push((name.to_owned(), peak));
    }
    let seconds = time.as_secs();
    table::print(&format!("growth of the launcher with a slow reader, {seconds} s"), "KiB/s", &growth);
    table::print(&format!("its memory after {seconds} s"), "KiB", &peaks);
}

/// KiB per second, and KiB at the end, including the launcher's helpers.
fn held(launcher: Launcher, piece: usize, time: Duration) -> (f64, f64) {
    let endless = u64::MAX.to_string();
    let mut stream = Stream::start(launcher, &[], 1, &program(), &["blocks", &endless], Stdio::null());
    // The first bytes show that the rank runs.
    stream.next(1);
    thread::sleep(Duration::from_millis(500));
    let (began, before) = (Instant::now(), memory::resident(stream.child.id()));
    while began.elapsed() < time {
        if piece > 0 {
            stream.next(piece);
        }
        thread::sleep(Duration::from_millis(100));
    }
    let after = memory::resident(stream.child.id());
    let by = (after as f64 - before as f64) / began.elapsed().as_secs_f64();
    stream.stop();
    (by, after as f64)
}

//! Runs chosen tests many times and counts failures, to help repair unsteady tests.

use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::slowest::Slowest;
use crate::test::Binary;
use crate::test::run::run;

pub(crate) fn repeat(times: usize, loaded: bool, binaries: &[&Binary], words: &[&str]) -> Result<()> {
    let mut failed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut passed = 0;
    beside_load(loaded, || {
        for number in 1..=times {
            eprintln!("== run {number} of {times}");
            for binary in binaries {
                let ran = run(binary, words, &mut Slowest::default())?;
                passed += ran.passed;
                for one in ran.failed {
                    failed.entry(format!("{} {}", binary.name, one.test)).or_default().push(one.said);
                }
            }
        }
        Ok(())
    })?;
    for (test, said) in &failed {
        eprintln!("== what {test} said first\n{}", said.first().map_or("", |said| said.trim_end()));
    }
    for (test, said) in &failed {
        eprintln!("failed {} of {times} times: {test}", said.len());
    }
    let count = failed.values().map(Vec::len).sum::<usize>();
    println!("tests: {passed} passed, {count} failed");
    match (passed, count) {
        (0, 0) => bail!("no test has such a name"),
        (_, 0) => Ok(()),
        _ => bail!("{} tests have failed", failed.len()),
    }
}

/// With a busy loop for each processor, if `loaded`.
fn beside_load(loaded: bool, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let loops = if loaded { std::thread::available_parallelism().map_or(1, usize::from) } else { 0 };
    std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let outcome = work();
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

//! `cargo xtask fuzz`: libFuzzer searches for inputs that break a target of `dev/fuzz`.
//!
//! The compiler passes that record coverage are in stable Rust; libFuzzer itself is C++. The inputs that it finds
//! stay in `target/fuzz/corpus` for the next time.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{capture, run as run_command, target};

const DEFAULT_SECONDS: u64 = 60;

/// An input that takes longer than this, or more memory, is a finding as well.
const LIMITS: &[&str] = &["-timeout=60", "-rss_limit_mb=2048", "-malloc_limit_mb=256", "-max_len=16384"];

/// The information for libFuzzer: edges taken, and operands of comparisons.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (wanted, seconds) = parse(args)?;
    let known = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        bail!("there is no target {unknown:?}; there are {}", known.join(", "));
    }
    let fuzzer = build()?;
    let chosen = if wanted.is_empty() { &known } else { &wanted };
    chosen.iter().try_for_each(|name| search(&fuzzer, name, seconds))
}

fn parse(args: &[String]) -> Result<(Vec<String>, u64)> {
    let mut wanted = Vec::new();
    let mut seconds = DEFAULT_SECONDS;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let value = args.next().context("--seconds needs a number")?;
                seconds = value.parse().with_context(|| format!("--seconds {value:?} is not a number"))?;
            }
            option if option.starts_with('-') => bail!("fuzz does not know {option}"),
            name => wanted.push(name.into()),
        }
    }
    Ok((wanted, seconds))
}

/// Each target has a folder of inputs; a test checks that.
fn targets() -> Result<Vec<String>> {
    let corpus = corpus();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&corpus).with_context(|| format!("reading {}", corpus.display()))? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

fn corpus() -> PathBuf {
    crate::root().join("dev/fuzz/corpus")
}

fn build() -> Result<PathBuf> {
    let about = capture(&["--version", "--verbose"])?;
    let host =
        about.lines().find_map(|line| line.strip_prefix("host: ")).context("cargo does not say its host")?;
    let folder = target().join("fuzz");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["build", "--locked", "--profile=fuzz", "--package=phalanx-fuzz", "--features=libfuzzer"]);
    command.arg("--target").arg(host).arg("--target-dir").arg(&folder).env("RUSTFLAGS", INSTRUMENTED);
    run_command(&mut command)?;
    Ok(folder.join(host).join("fuzz/phalanx-fuzz"))
}

fn search(fuzzer: &Path, name: &str, seconds: u64) -> Result<()> {
    let grown = target().join("fuzz/corpus").join(name);
    let found = target().join("fuzz/found").join(name);
    for folder in [&grown, &found] {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let mut command = Command::new(fuzzer);
    command.env("PHALANX_FUZZ_TARGET", name).args(LIMITS);
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}/", found.display()));
    command
        .args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"])
        .arg(&grown)
        .arg(corpus().join(name));
    let stood = run_command(&mut command);
    ensure!(
        stood.is_ok(),
        "the target {name} does not stand an input, which is in {}; when it does, put it into dev/fuzz/corpus/{name}",
        found.display()
    );
    Ok(())
}

//! Many worlds that differ only in their seed.

/// Runs all these seeds; only one (`CHAOS_SEED`), to look for the cause of a failure; or more of them (`CHAOS_TIMES`).
pub(super) fn each_seed(seeds: std::ops::Range<u64>, mut live: impl FnMut(u64)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let more = seeds.start + (seeds.end - seeds.start) * number("CHAOS_TIMES").unwrap_or(1);
    let seeds = number("CHAOS_SEED").map_or(seeds.start..more, |seed| seed..seed + 1);
    for seed in seeds {
        let told = PrintsSeed(seed);
        live(seed);
        std::mem::forget(told);
    }
}

/// Prints the seed if a test panics.
struct PrintsSeed(u64);

impl Drop for PrintsSeed {
    fn drop(&mut self) {
        eprintln!("seed {}: repeat with CHAOS_SEED={}", self.0, self.0);
    }
}

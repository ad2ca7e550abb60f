//! Many worlds that differ by their seed.

/// Goes through all these seeds; through one (`CHAOS_SEED`), for whoever looks for the cause of a failure; or through more of them
/// (`CHAOS_TIMES`), for whoever has time.
pub(super) fn each_seed(seeds: std::ops::Range<u64>, mut live: impl FnMut(u64)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let more = seeds.start + (seeds.end - seeds.start) * number("CHAOS_TIMES").unwrap_or(1);
    let seeds = number("CHAOS_SEED").map_or(seeds.start..more, |seed| seed..seed + 1);
    for seed in seeds {
        let told = Told(seed);
        live(seed);
        std::mem::forget(told);
    }
}

/// Says which seed it was when a test panics.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("seed {}: repeat with CHAOS_SEED={}", self.0, self.0);
    }
}

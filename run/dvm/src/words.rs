//! Durations, signals and sets of ranks in words.

use std::time::Duration;

/// `0.4 s`, `12 s`, `3 min 5 s`, `2 h 3 min`
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 if time.as_millis() < 10 => format!("{} ms", time.as_micros().div_ceil(1000)),
        0..10 if time.subsec_millis() >= 50 => format!("{:.1} s", time.as_secs_f64()),
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `SIGSEGV`, or `signal 40` for one without a name.
pub fn signal(number: i32) -> String {
    let named = usize::try_from(number).ok().and_then(|number| SIGNALS.get(number.checked_sub(1)?));
    named.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

/// `rank 3`, `ranks 0-3, 7`; if there are many, only the first few ranges and the count.
pub fn ranks(ranks: &[u32]) -> String {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in &sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => ranges.push((*rank, *rank)),
        }
    }
    let shown = ranges.iter().take(MOST_RANGES).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let list = shown.collect::<Vec<_>>().join(", ");
    match (sorted.len(), ranges.len() > MOST_RANGES) {
        (1, _) => format!("rank {list}"),
        (_, false) => format!("ranks {list}"),
        (count, true) => format!("{count} ranks ({list}, ...)"),
    }
}

const MOST_RANGES: usize = 8;

/// Linux on x86-64 and aarch64, from number 1.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let said = |ms| duration(Duration::from_millis(ms));
        assert_eq!(
            [0, 3, 400, 1000, 1234, 12_000, 185_000, 7_380_000].map(said),
            ["0 ms", "3 ms", "0.4 s", "1 s", "1.2 s", "12 s", "3 min 5 s", "2 h 3 min"]
        );
    }

    #[test]
    fn signals() {
        assert_eq!(
            [0, 1, 9, 11, 15, 31, 40].map(signal),
            ["signal 0", "SIGHUP", "SIGKILL", "SIGSEGV", "SIGTERM", "SIGSYS", "signal 40"]
        );
    }

    #[test]
    fn sets_of_ranks() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[2, 0, 1, 7, 7]), "ranks 0-2, 7");
        let even: Vec<u32> = (0..100).map(|n| 2 * n).collect();
        assert_eq!(ranks(&even), "100 ranks (0, 2, 4, 6, 8, 10, 12, 14, ...)");
    }
}

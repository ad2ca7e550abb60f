//! Small things in words: counts, sizes, command lines; and those of the DVM.

pub(crate) use phalanx_dvm::words::{duration, ranks, signal};

/// `1 rank`, `4 ranks`
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// `0.4 ms`, `12.3 ms`, `1.234 s`; from a minute on like other durations.
pub(crate) fn fine(time: std::time::Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1} ms", time.as_secs_f64() * 1000.0),
        1..60 => format!("{:.3} s", time.as_secs_f64()),
        _ => duration(time),
    }
}

/// `512 KiB`, `7.8 GiB`
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if value.fract() < 0.05 {
                format!("{value:.0} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// A command line, quoted for a shell.
pub(crate) fn shell_line(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "@%+=:,./-_".contains(c);
    let quoted = argv.iter().map(|arg| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg.clone(),
        false => format!("'{}'", arg.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let argv = ["./a.out", "", "two words", "it's", "x=1"].map(String::from);
        assert_eq!(shell_line(&argv), r"./a.out '' 'two words' 'it'\''s' x=1");
    }

    #[test]
    fn fine_times() {
        let times = [350, 12_345, 1_234_567, 61_000_000].map(|us| fine(std::time::Duration::from_micros(us)));
        assert_eq!(times, ["0.3 ms", "12.3 ms", "1.235 s", "1 min 1 s"]);
    }

    #[test]
    fn sizes() {
        assert_eq!([0, 1023, 32 << 10, 8_375_000_000].map(bytes), ["0 B", "1023 B", "32 KiB", "7.8 GiB"]);
    }
}

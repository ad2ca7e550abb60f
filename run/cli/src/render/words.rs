//! Small things said in words: counts, sizes, command lines; and those that the DVM says itself.

pub(crate) use phalanx_dvm::words::{duration, ranks, signal};

/// `1 rank`, `4 ranks`
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
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

/// A command line as a shell would have to be given it.
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
    fn sizes() {
        assert_eq!([0, 1023, 32 << 10, 8_375_000_000].map(bytes), ["0 B", "1023 B", "32 KiB", "7.8 GiB"]);
    }
}

//! Values of options: counts, durations and users.

use std::process::{Command, Stdio};
use std::time::Duration;

/// A number of ranks: at least 1.
pub(crate) fn procs(word: &str) -> Result<u32, String> {
    match word.parse() {
        Ok(0) => Err("a program needs at least 1 rank".into()),
        Ok(n) if n <= MAX_PROCS => Ok(n),
        Ok(_) => Err(format!("at most {MAX_PROCS} ranks are possible")),
        Err(_) if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("at most {MAX_PROCS} ranks are possible"))
        }
        Err(_) => Err("expected a number".into()),
    }
}

/// `30`, `1.5`, `500ms`, `10m`, `1h30m`: a number alone is seconds.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 30, 1.5s, 10m or 1h30m".to_owned();
    let mut total = 0.0;
    let mut rest = word;
    if rest.is_empty() {
        return Err(expected());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(expected()),
        };
        total += number.parse::<f64>().map_err(|_| expected())? * seconds;
        rest = after;
    }
    match Duration::try_from_secs_f64(total) {
        Ok(d) if d.is_zero() => Err("a duration of 0 would end the job at once".into()),
        Ok(d) if total <= MAX_SECONDS => Ok(d),
        _ => Err("longer than a hundred years".into()),
    }
}

/// `USR1`, `SIGUSR1`, `10`
pub(crate) fn signal(word: &str) -> Result<i32, String> {
    let full = match word.get(..3) {
        Some(begin) if begin.eq_ignore_ascii_case("SIG") => word.to_ascii_uppercase(),
        _ => format!("SIG{}", word.to_ascii_uppercase()),
    };
    let named = || (1..=MOST_SIGNALS).find(|number| phalanx_dvm::words::signal(*number) == full);
    let number = word.parse().ok().filter(|number| (1..=MOST_SIGNALS).contains(number));
    number.or_else(named).ok_or_else(|| "expected a signal such as USR1, SIGUSR1 or 10".to_owned())
}

/// The number of a user. `id` asks the user databases that this machine uses.
pub(crate) fn user(word: &str) -> Result<u32, String> {
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let asked =
        Command::new("id").args(["-u", "--", word]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = asked.map_err(|error| format!("cannot look the user up: id: {error}"))?;
    let number = std::str::from_utf8(&said.stdout).ok().and_then(|text| text.trim().parse().ok());
    number.filter(|_| said.status.success()).ok_or_else(|| "there is no such user".to_owned())
}

const MOST_SIGNALS: i32 = 64;
/// Ranks from 0x7fffffff on have other meanings in parts of the standard's interface.
const MAX_PROCS: u32 = 0x7fff_ffff;
const MAX_SECONDS: f64 = 100.0 * 366.0 * 86400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let ms = |word| duration(word).map(|d| d.as_millis());
        assert_eq!(ms("30"), Ok(30_000));
        assert_eq!(ms("1.5s"), Ok(1_500));
        assert_eq!(ms("250ms"), Ok(250));
        assert_eq!(ms("1h30m"), Ok(5_400_000));
        assert_eq!(ms("1m5"), Ok(65_000));
        for bad in ["", "x", "-1", "1x", "1..2", "0", "0ms", "1e99", "99999999999999999d", "s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn users_have_names_and_numbers() {
        assert_eq!(user("4711"), Ok(4711));
        assert_eq!(user("root"), Ok(0));
        for bad in ["", "-u", "no such user", "-1", "4294967296"] {
            assert!(user(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranks_are_counted_from_one() {
        assert_eq!(procs("1"), Ok(1));
        assert_eq!(procs("2147483647"), Ok(MAX_PROCS));
        for bad in ["0", "-1", "2147483648", "99999999999999999999", "four", "", "4.0"] {
            assert!(procs(bad).is_err(), "{bad}");
        }
    }
}

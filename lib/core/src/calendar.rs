//! Calendar dates.

/// Year, month and day (from 1) of the day this many days after 1 January 1970.
pub fn date(days: u64) -> (u64, u64, u64) {
    // The Gregorian calendar's cycle of 400 years has 146,097 days. Years are counted from March, so that the leap day is a
    // year's last.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + later, month, day)
}

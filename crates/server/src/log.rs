//! The log: one line an event on standard error, with the time in UTC. Events are starts, ends and
//! troubles, never single messages.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where lines go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// To standard error.
    #[default]
    Stderr,
    /// Nowhere: for servers that live inside another program.
    Quiet,
}

impl Log {
    /// Writes one line.
    pub fn line(self, text: fmt::Arguments<'_>) {
        if self == Self::Stderr {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            // Whoever closed standard error does not want to know.
            let _ = writeln!(std::io::stderr().lock(), "{} {text}", Timestamp(now));
        }
    }
}

/// Time since the Unix epoch, shown as `2026-01-31T23:59:59.999Z`.
struct Timestamp(Duration);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        let (year, month, day) = civil(secs / 86_400);
        let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
        let millis = self.0.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// The date that is so many days after 1970-01-01. Counts from 1 March 0000, so that a leap day is
/// the last of its year; 400 years have 146,097 days.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_utc_dates() {
        let at = |secs| Timestamp(Duration::from_secs(secs)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_200), "2024-03-01T00:00:00.000Z");
        assert_eq!(at(4_102_444_799), "2099-12-31T23:59:59.000Z");
    }
}

//! Moments for people: RFC 3339, in UTC, with milliseconds.

use core::fmt;

use crate::Nanos;

/// A moment as people read it: `2026-11-25T18:07:30.123Z`. Displayed, it is 24 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc3339(Nanos);

impl Nanos {
    /// This moment for people; parts below a millisecond are left out.
    ///
    /// ```
    /// let moment = model::Nanos::from_millis(1_764_094_050_123);
    /// assert_eq!(moment.rfc3339().to_string(), "2025-11-25T18:07:30.123Z");
    /// ```
    #[must_use]
    pub const fn rfc3339(self) -> Rfc3339 {
        Rfc3339(self)
    }

    /// The moment that [`Nanos::rfc3339`] wrote. `None`: it is another text, or before 1970.
    #[must_use]
    pub fn of_rfc3339(text: &str) -> Option<Self> {
        let [date, time] = parts(text.strip_suffix('Z')?, 'T')?;
        let [year, month, day] = parts(date, '-')?;
        let [hour, minute, rest] = parts(time, ':')?;
        let [second, millis] = parts(rest, '.')?;
        let is_wide = |(text, width): (&str, usize)| text.len() == width;
        let widths = [(year, 4), (month, 2), (day, 2), (hour, 2), (minute, 2), (second, 2)];
        if !widths.into_iter().chain([(millis, 3)]).all(is_wide) {
            return None;
        }
        let days = days_of(number(year, 9999)?, number(month, 12)?, number(day, 31)?)?;
        let seconds = number(hour, 23)? * 3_600 + number(minute, 59)? * 60 + number(second, 59)?;
        let millis = (days * DAY_SECONDS + seconds) * 1_000 + number(millis, 999)?;
        let moment = Self(millis.checked_mul(1_000_000)?);
        Some(moment)
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.0 / 1_000_000;
        let seconds = millis / 1_000;
        let (year, month, day) = date_of(seconds / DAY_SECONDS);
        let of_day = seconds % DAY_SECONDS;
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        let millis = millis % 1_000;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Exactly as many parts.
fn parts<const N: usize>(text: &str, between: char) -> Option<[&str; N]> {
    let mut all = [""; N];
    let mut parts = text.split(between);
    for part in &mut all {
        *part = parts.next()?;
    }
    parts.next().is_none().then_some(all)
}

fn number(text: &str, most: u64) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= most)
}

/// Year, month and day of a day that is counted from 1970-01-01. Years begin in March here, so that
/// the day that some lack is the last one; 400 of them have equally many days.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + TO_1970;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The reverse; `None` if there is no such day.
fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let from_march = (month.checked_add(9)?).checked_rem(12)?;
    let year_from_march = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let of_year = (153 * from_march + 2) / 5 + day.checked_sub(1)?;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = (era * ERA_DAYS + of_era).checked_sub(TO_1970)?;
    (date_of(days) == (year, month, day)).then_some(days)
}

const DAY_SECONDS: u64 = 86_400;

/// Days of 400 years.
const ERA_DAYS: u64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_764_094_050_123, "2025-11-25T18:07:30.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (18_446_744_073_709, "2554-07-21T23:34:33.709Z"),
        ] {
            let moment = Nanos::from_millis(millis);
            assert_eq!(moment.rfc3339().to_string(), text);
            assert_eq!(Nanos::of_rfc3339(text), Some(moment));
        }
    }

    #[test]
    fn days_round_trip() {
        for day in 0..213_000 {
            let (year, month, of_month) = date_of(day);
            assert_eq!(days_of(year, month, of_month), Some(day), "{year}-{month}-{of_month}");
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "2025-11-25",
            "2025-11-25T18:07:30Z",
            "2025-11-25T18:07:30.123",
            "2025-11-25T18:07:30.123+00:00",
            "2025-02-29T00:00:00.000Z",
            "2025-13-01T00:00:00.000Z",
            "2025-00-01T00:00:00.000Z",
            "2025-01-00T00:00:00.000Z",
            "2025-01-01T24:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59.999Z",
            "+025-01-01T00:00:00.000Z",
        ] {
            assert_eq!(Nanos::of_rfc3339(text), None, "{text}");
        }
    }
}

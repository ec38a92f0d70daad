//! Numbers as Redis reads and writes them.

use alloc::vec::Vec;

use model::Nanos;

/// Why a text is no time to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTimeout {
    NotAFloat,
    Negative,
    OutOfRange,
}

/// Seconds with a fraction, kept to the millisecond, rounded up. Zero is no time at all.
pub(crate) fn parse_timeout(text: &[u8]) -> Result<Nanos, NoTimeout> {
    let text = core::str::from_utf8(text).map_err(|_| NoTimeout::NotAFloat)?;
    let seconds: f64 = text.parse().map_err(|_| NoTimeout::NotAFloat)?;
    if seconds.is_nan() {
        return Err(NoTimeout::NotAFloat);
    }
    if seconds < 0.0 {
        return Err(NoTimeout::Negative);
    }
    if seconds > MILLIS_MAX / 1_000.0 {
        return Err(NoTimeout::OutOfRange);
    }
    let exact = seconds * 1_000.0;
    // A fraction that is cut off adds one; floats of no library know how to round up.
    let whole = exact as u64;
    Ok(Nanos::from_millis(whole.saturating_add(u64::from((whole as f64) < exact))))
}

/// More milliseconds than this are no time in Redis.
const MILLIS_MAX: f64 = i64::MAX as f64;

/// A line of a number behind a mark, in one piece and without the detour of `core::fmt`, which
/// would cost more than the rest of a short answer.
pub(crate) fn write_line(out: &mut Vec<u8>, mark: u8, number: i64) {
    let mut line = *b"                      \r\n";
    let mut rest = number.unsigned_abs();
    let mut start = line.len() - 2;
    let mut put = |byte| {
        start -= 1;
        if let Some(place) = line.get_mut(start) {
            *place = byte;
        }
    };
    loop {
        put(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        put(b'-');
    }
    put(mark);
    out.extend_from_slice(line.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_their_one_form() {
        for number in [0, 1, -1, 9, 10, -10, 12_345, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_line(&mut out, b':', number);
            assert_eq!(out, alloc::format!(":{number}\r\n").as_bytes());
        }
    }

    #[test]
    fn timeouts_are_seconds_with_a_fraction() {
        assert_eq!(parse_timeout(b"0"), Ok(Nanos::ZERO));
        assert_eq!(parse_timeout(b"1.5"), Ok(Nanos::from_millis(1_500)));
        assert_eq!(parse_timeout(b"0.0001"), Ok(Nanos::from_millis(1)));
        assert_eq!(parse_timeout(b"1e2"), Ok(Nanos::from_secs(100)));
        assert_eq!(parse_timeout(b"-1"), Err(NoTimeout::Negative));
        assert_eq!(parse_timeout(b"x"), Err(NoTimeout::NotAFloat));
        assert_eq!(parse_timeout(b""), Err(NoTimeout::NotAFloat));
        assert_eq!(parse_timeout(b"nan"), Err(NoTimeout::NotAFloat));
        assert_eq!(parse_timeout(b"inf"), Err(NoTimeout::OutOfRange));
        assert_eq!(parse_timeout(b"1e30"), Err(NoTimeout::OutOfRange));
        assert_eq!(parse_timeout(b"\xff"), Err(NoTimeout::NotAFloat));
    }
}

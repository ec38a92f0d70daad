//! Numbers as Redis reads and writes them.

use alloc::format;
use alloc::string::{String, ToString as _};
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

/// A number with a fraction in one of the forms of C: decimal, hexadecimal or infinite. It is the
/// whole text, and a number of so many bits.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let Double { number, is_in_range } = Double::parse(text)?;
    is_in_range.then_some(number)
}

/// The same as an end of a range, with which Redis is less strict: no text is zero, spaces may
/// stand before it, and a number that is too large is infinite.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    Double::parse(text.get(spaces..)?).map(|double| double.number)
}

/// True if Redis takes a text for a number with a fraction, and that for infinite; nothing if it is
/// none. The number may be larger than those of 64 bits.
pub(crate) fn is_infinite(text: &[u8]) -> Option<bool> {
    let Double { number, is_in_range } = Double::parse(text)?;
    Some(is_in_range && number.is_infinite())
}

/// The same as the weight of an element in SORT: nothing behind a NUL is read, and a number that is
/// too large or too small is none.
pub(crate) fn parse_weight(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let spaces = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let Double { number, is_in_range } = Double::parse(text.get(spaces..)?)?;
    (is_in_range && !number.is_subnormal()).then_some(number)
}

/// A number that was read.
struct Double {
    /// The nearest that there is.
    number: f64,
    /// False if that is infinite or zero, and the text is neither.
    is_in_range: bool,
}

impl Double {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(text).ok()?;
        let (sign, text) = match text.strip_prefix('-') {
            Some(text) => (-1.0, text),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        let (magnitude, digits) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            Some(text) => (parse_hexadecimal(text)?, text.split(['p', 'P']).next()),
            None if text.starts_with(['+', '-']) => return None,
            None => (text.parse::<f64>().ok()?, text.split(['e', 'E']).next()),
        };
        let has_digits = digits.is_some_and(|it| it.contains(|it: char| matches!(it, '1'..='9')));
        let is_in_range = match magnitude {
            0.0 => !digits.is_some_and(has_value),
            _ => magnitude.is_finite() || !has_digits,
        };
        let is_number = !magnitude.is_nan();
        is_number.then_some(Self { number: sign * magnitude, is_in_range })
    }
}

/// True if one of these digits is not zero.
fn has_value(digits: &str) -> bool {
    digits.contains(|digit: char| digit.is_ascii_hexdigit() && digit != '0')
}

/// The digits behind `0x`, and an exponent of two behind a `p`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut mantissa = 0_u64;
    let mut exponent = exponent.clamp(-EXPONENT_MAX, EXPONENT_MAX);
    let whole = whole.chars().map(|digit| (digit, 0));
    for (digit, behind_point) in whole.chain(fraction.chars().map(|digit| (digit, 4))) {
        let digit = u64::from(digit.to_digit(16)?);
        exponent -= behind_point;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // More bits than a number has: they only tell on which side of a half it is.
            mantissa |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    Some(scaled(mantissa as f64, exponent))
}

/// An exponent that is further from zero leaves nothing of a number.
const EXPONENT_MAX: i64 = 1 << 40;

/// A number times a power of two.
fn scaled(mut number: f64, mut exponent: i64) -> f64 {
    const STEP_MAX: i64 = 1_000;
    while exponent != 0 && number != 0.0 && number.is_finite() {
        let step = exponent.clamp(-STEP_MAX, STEP_MAX);
        let biased = (step + 1_023).unsigned_abs();
        number *= f64::from_bits(biased << 52);
        exponent -= step;
    }
    number
}

/// A number as Redis 7.2 writes it: the fewest digits that are read back as the same.
pub(crate) fn double_text(number: f64) -> String {
    let integer = number as i64;
    match number {
        f64::INFINITY => return "inf".into(),
        f64::NEG_INFINITY => return "-inf".into(),
        0.0 => return if number.is_sign_negative() { "-0" } else { "0" }.into(),
        _ if number.abs() <= INTEGER_MAX && integer as f64 == number => return integer.to_string(),
        _ => {}
    }
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if number < 0.0 { "-" } else { "" };
    [sign, &laid_out(&digits, exponent.parse().unwrap_or(0))].concat()
}

/// Whole numbers up to this are written without an exponent.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// Digits with a point behind the first, times a power of ten, as `fpconv` lays them out.
fn laid_out(digits: &str, exponent: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The power of ten for digits without a point.
    let power = exponent - (count - 1);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if power >= 0 && exponent.abs() < count + 7 {
        return [digits, &zeros(power)].concat();
    }
    if power < 0 && (power > -7 || exponent.abs() < 4) {
        return match usize::try_from(exponent) {
            Ok(point) => [split(digits, point + 1).0, ".", split(digits, point + 1).1].concat(),
            Err(_) => ["0.", &zeros(-exponent - 1), digits].concat(),
        };
    }
    let (first, rest) = split(digits, 1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{first}{point}{rest}e{exponent:+}")
}

fn split(digits: &str, at: usize) -> (&str, &str) {
    digits.split_at_checked(at).unwrap_or((digits, ""))
}

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
    fn doubles_are_read_as_in_c() {
        for (text, number) in [
            ("1", 1.0),
            ("+1.5", 1.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e3", 1_000.0),
            ("1E-3", 0.001),
            ("inf", f64::INFINITY),
            ("+Inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("0x1p4", 16.0),
            ("-0X1.8P1", -3.0),
            ("0x.8", 0.5),
            ("0xff", 255.0),
            ("0x1p-1074", 5e-324),
            ("0x1fffffffffffff8p0", 144_115_188_075_855_870.0),
            ("0x20000000000000800000000000000001p0", 4.253529586511731e37),
            ("5e-324", 5e-324),
            ("0e999", 0.0),
            ("0x0p99999", 0.0),
        ] {
            assert_eq!(parse_double(text.as_bytes()), Some(number), "{text}");
            assert_eq!(parse_bound(text.as_bytes()), Some(number), "{text}");
        }
        for wrong in [
            "x", ".", "1e", "0x", "0x.", "0xp1", "0x1p", "1 ", "nan", "-nan", "+-1", "--1", "1_0",
            "0x1p1.5", "in", "infinit", "e5", " ", "1\0",
        ] {
            assert_eq!(parse_double(wrong.as_bytes()), None, "{wrong:?}");
            assert_eq!(parse_bound(wrong.as_bytes()), None, "{wrong:?}");
        }
        for (text, bound) in [
            ("", 0.0),
            (" 1", 1.0),
            ("\t\n2", 2.0),
            ("1e999", f64::INFINITY),
            ("-1e999", f64::NEG_INFINITY),
            ("1e-999", 0.0),
            ("0x1p99999", f64::INFINITY),
            ("0xap-9999999999999999", 0.0),
        ] {
            assert_eq!(parse_double(text.as_bytes()), None, "{text:?}");
            assert_eq!(parse_bound(text.as_bytes()), Some(bound), "{text:?}");
        }
        assert_eq!(is_infinite(b"1e4000"), Some(false));
        assert_eq!(is_infinite(b"-inf"), Some(true));
        assert_eq!(is_infinite(b"nan"), None);
    }

    #[test]
    fn doubles_are_written_as_in_redis() {
        for (number, text) in [
            (3.0, "3"),
            (3.5, "3.5"),
            (-0.25, "-0.25"),
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1e20, "1e+20"),
            (-1.5e20, "-1.5e+20"),
            (1e18, "1000000000000000000"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (2.141592653589793, "2.141592653589793"),
            (12_345_678.123_456_78, "1.234567812345678e+7"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(double_text(number), text);
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

//! Texts of numbers, as `printf` of C writes them.

/// `%.14g`: the text that Lua 5.1 gives to a number.
pub(crate) fn text(number: f64) -> String {
    shortest(number, 14)
}

/// `%.17g`: the text of a number that is an argument of a command.
pub(crate) fn word(number: f64) -> String {
    shortest(number, 17)
}

/// `%.{digits}g`
pub(crate) fn shortest(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return special(number).to_owned();
    }
    let digits = digits.max(1);
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(exponent) {
        Ok(places) if places < digits => trimmed(&format!("{number:.*}", digits - 1 - places)),
        Err(_) if exponent >= -4 => {
            let places = digits - 1 + exponent.unsigned_abs() as usize;
            trimmed(&format!("{number:.places$}"))
        }
        _ => with_exponent(mantissa, exponent),
    }
}

fn special(number: f64) -> &'static str {
    match (number.is_nan(), number.is_sign_negative()) {
        (true, true) => "-nan",
        (true, false) => "nan",
        (false, true) => "-inf",
        (false, false) => "inf",
    }
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs())
}

/// Without zeros at the end of a fraction.
fn trimmed(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The number that bytes begin with, as `strtod` of C reads it, and how many bytes it takes.
pub(crate) fn leading(bytes: &[u8]) -> Option<(f64, usize)> {
    let sign_length = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let rest = bytes.get(sign_length..)?;
    let (number, length) = unsigned(rest)?;
    let number = if bytes.first() == Some(&b'-') { -number } else { number };
    Some((number, sign_length + length))
}

fn unsigned(bytes: &[u8]) -> Option<(f64, usize)> {
    let starts =
        |word: &[u8]| bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if starts(b"infinity") {
        return Some((f64::INFINITY, 8));
    }
    if starts(b"inf") {
        return Some((f64::INFINITY, 3));
    }
    if starts(b"nan") {
        return Some((f64::NAN, 3));
    }
    if starts(b"0x")
        && let Some(found) = hexadecimal(bytes)
    {
        return Some(found);
    }
    decimal(bytes)
}

fn decimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let length = mantissa_length(bytes, u8::is_ascii_digit)?;
    let length = length + exponent_length(bytes.get(length..)?, b'e');
    let text = core::str::from_utf8(bytes.get(..length)?).ok()?;
    Some((text.parse().ok()?, length))
}

/// Digits with at most one point, and at least one digit.
fn mantissa_length(bytes: &[u8], is_digit: fn(&u8) -> bool) -> Option<usize> {
    let count = |bytes: &[u8]| bytes.iter().take_while(|byte| is_digit(byte)).count();
    let whole = count(bytes);
    let Some((b'.', rest)) = bytes.get(whole..)?.split_first() else {
        return (whole > 0).then_some(whole);
    };
    let fraction = count(rest);
    (whole + fraction > 0).then_some(whole + 1 + fraction)
}

/// The length of an exponent, which is 0 if it has no digits.
fn exponent_length(bytes: &[u8], letter: u8) -> usize {
    if !bytes.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&letter)) {
        return 0;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    let digits = bytes.iter().skip(1 + sign).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

fn hexadecimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let digits = bytes.get(2..)?;
    let mantissa = mantissa_length(digits, u8::is_ascii_hexdigit)?;
    let exponent = exponent_length(digits.get(mantissa..)?, b'p');
    let (mut number, mut scale, mut has_point) = (0.0, 0, false);
    for byte in digits.iter().take(mantissa) {
        match char::from(*byte).to_digit(16) {
            Some(digit) => {
                number = number * 16.0 + f64::from(digit);
                scale -= if has_point { 4 } else { 0 };
            }
            None => has_point = true,
        }
    }
    let text = digits.get(mantissa + 1..mantissa + exponent).unwrap_or_default();
    let text = core::str::from_utf8(text).ok()?;
    let power: i32 = text.parse().unwrap_or(0);
    Some((number * 2_f64.powi(power.saturating_add(scale)), 2 + mantissa + exponent))
}

/// The integer that a processor of x86 makes of a number, which is what Redis answers.
pub(crate) fn truncated(number: f64) -> i64 {
    if number.is_nan() || number >= TWO_TO_63 {
        return i64::MIN;
    }
    number as i64
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_texts_of_printf() {
        let texts = [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333"),
            (1e14, "1e+14"),
            (99_999_999_999_999.0, "99999999999999"),
            (1e-5, "1e-05"),
            (1e-4, "0.0001"),
            (-1e100, "-1e+100"),
            (123.456, "123.456"),
            (999_999_999_999_999.9, "1e+15"),
        ];
        for (number, expected) in texts {
            assert_eq!(text(number), expected);
        }
        assert_eq!(word(0.1), "0.10000000000000001");
        assert_eq!(word(1e17), "1e+17");
        assert_eq!(word(1e15), "1000000000000000");
    }
}

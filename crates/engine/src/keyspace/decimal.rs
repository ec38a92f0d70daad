//! Decimal numbers of INCRBYFLOAT: in 80 bits, as Redis reckons on the processors that it runs on
//! most, so that a sum has the same digits here and there.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use model::{DECIMAL_BYTES_MAX, Refusal};
use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float as _, Round, Status};

/// The sum of two numbers, each a text.
pub(crate) fn sum(one: &[u8], other: &[u8]) -> Result<String, Refusal> {
    let sum = (parse(one)? + parse(other)?).value;
    if sum.is_finite() { Ok(text(sum)) } else { Err(Refusal::NotFinite) }
}

/// A number as C reads it: in decimal or hexadecimal digits, or `inf`.
fn parse(text: &[u8]) -> Result<X87DoubleExtended, Refusal> {
    const WRONG: Refusal = Refusal::NotADecimal;
    if text.len() >= DECIMAL_BYTES_MAX {
        return Err(WRONG);
    }
    let text = core::str::from_utf8(text).map_err(|_| WRONG)?;
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)),
        Some(b'+') => (false, text.get(1..)),
        _ => (false, Some(text)),
    };
    let digits = digits.unwrap_or_default().to_ascii_lowercase();
    let magnitude = match &*digits {
        "inf" | "infinity" => X87DoubleExtended::INFINITY,
        digits => {
            let digits = in_one_form(digits).ok_or(WRONG)?;
            let read = X87DoubleExtended::from_str_r(&digits, Round::NearestTiesToEven);
            let read = read.map_err(|_| WRONG)?;
            // As errno says it: a number that is too large, or too small to be told from zero.
            if read.status.contains(Status::OVERFLOW)
                || read.status.contains(Status::UNDERFLOW) && read.value.is_zero()
            {
                return Err(WRONG);
            }
            read.value
        }
    };
    Ok(if is_negative { -magnitude } else { magnitude })
}

/// The digits with all that the library wants to see; nothing if they are no number.
fn in_one_form(digits: &str) -> Option<String> {
    let (digits, base, mark) = match digits.strip_prefix("0x") {
        Some(digits) => (digits, 16, 'p'),
        None => (digits, 10, 'e'),
    };
    let (number, exponent) = match digits.split_once(mark) {
        Some((number, exponent)) => (number, exponent),
        None => (digits, "0"),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.chars().all(|digit| digit.is_digit(base));
    let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_exponent = !unsigned.is_empty() && unsigned.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && part.is_empty())
        || !is_digits(whole)
        || !is_digits(part)
        || !is_exponent
    {
        return None;
    }
    let prefix = if base == 16 { "0x" } else { "" };
    Some(format!("{prefix}0{whole}.{part}0{mark}{exponent}"))
}

/// A number with 17 digits behind the point, rounded to the nearest, as C prints it; zeros at the
/// end are left out.
fn text(number: X87DoubleExtended) -> String {
    let bits = number.to_bits();
    let mantissa = bits as u64;
    let scale = i32::try_from(bits >> 64 & 0x7fff).unwrap_or(0) - SCALE_BIAS;
    let (whole, part) = match u32::try_from(scale) {
        Ok(scale) => (integer(mantissa, scale), String::new()),
        Err(_) => rounded(mantissa, scale.unsigned_abs()),
    };
    let sign = if number.is_negative() && (whole != "0" || !part.is_empty()) { "-" } else { "" };
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// `mantissa * 2^scale`.
fn integer(mantissa: u64, scale: u32) -> String {
    const LIMB: u64 = 1_000_000_000;
    let mut limbs: Vec<u64> =
        alloc::vec![mantissa % LIMB, mantissa / LIMB % LIMB, mantissa / LIMB / LIMB];
    let mut left = scale;
    while left > 0 {
        let step = left.min(29);
        left -= step;
        let mut carry = 0;
        for limb in &mut limbs {
            let product = (*limb << step) + carry;
            *limb = product % LIMB;
            carry = product / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    debug_assert!(limbs.iter().all(|limb| *limb < LIMB), "each limb is nine digits");
    let digits: String = limbs.iter().rev().map(|limb| format!("{limb:09}")).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0" } else { digits }.into()
}

/// The integer and the fraction of `mantissa / 2^scale`.
fn rounded(mantissa: u64, scale: u32) -> (String, String) {
    let exact = u128::from(mantissa) * PART;
    // Below a half of the last digit all is zero.
    let quotient = exact.checked_shr(scale).unwrap_or(0);
    let rest = exact - quotient.checked_shl(scale).unwrap_or(0);
    let half = 1_u128.checked_shl(scale - 1);
    let rounds_up = half.is_some_and(|half| rest > half || rest == half && quotient % 2 == 1);
    let quotient = quotient + u128::from(rounds_up);
    debug_assert!(quotient <= exact + 1, "a division makes nothing larger");
    let part = format!("{:017}", quotient % PART);
    (format!("{}", quotient / PART), part.trim_end_matches('0').into())
}

/// 17 digits.
const PART: u128 = 100_000_000_000_000_000;

/// Of the exponent, if the mantissa is an integer.
const SCALE_BIAS: i32 = 16_383 + 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_digits_of_redis() {
        // From a redis-server on x86-64.
        for (one, other, expected) in [
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "0.2", "0.3"),
            ("3.0e3", "200", "3200"),
            ("1", "1e-17", "1.00000000000000001"),
            ("0", "-0.0", "0"),
            ("0", "1e-18", "0"),
            ("0", "-1e-18", "0"),
            ("1e18", "0.5", "1000000000000000000.5"),
            ("0x10", "0x.8", "16.5"),
            ("123456789.123", "-0.123", "123456789"),
        ] {
            assert_eq!(
                sum(one.as_bytes(), other.as_bytes()).as_deref(),
                Ok(expected),
                "{one}+{other}"
            );
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused() {
        for wrong in [
            "",
            " ",
            " 1",
            "1 ",
            "x",
            "1x",
            ".",
            "e1",
            "1e",
            "1e+",
            "--1",
            "+-1",
            "nan",
            "1_0",
            "0x",
            "1e4933",
            "1e-5000",
            "1e99999999999999999999",
            "\u{661}",
        ] {
            assert_eq!(sum(wrong.as_bytes(), b"1"), Err(Refusal::NotADecimal), "{wrong:?}");
        }
        assert_eq!(sum(b"\xff", b"1"), Err(Refusal::NotADecimal));
        assert_eq!(sum(&[b'1'; DECIMAL_BYTES_MAX], b"1"), Err(Refusal::NotADecimal));
        for endless in ["inf", "-Infinity", "+INF"] {
            assert_eq!(sum(endless.as_bytes(), b"1"), Err(Refusal::NotFinite), "{endless}");
        }
        assert_eq!(sum(b"1e4932", b"1e4932"), Err(Refusal::NotFinite));
    }

    #[test]
    fn large_integers_have_all_digits() {
        let mut power = alloc::vec![1_u8];
        for _ in 0..200 {
            // Twice as much, digit by digit.
            let mut carry = 0;
            for digit in &mut power {
                let twice = *digit * 2 + carry;
                (*digit, carry) = (twice % 10, twice / 10);
            }
            power.extend((carry > 0).then_some(carry));
        }
        let expected: String = power.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        assert_eq!(integer(1, 200), expected);
        assert_eq!(sum(b"0x1p200", b"0").as_deref(), Ok(&*expected));
        assert_eq!(sum(b"1e4932", b"0").map(|text| text.len()), Ok(4_933));
    }
}

//! Numbers that keep their digits. JSON and headers say numbers in decimal; a property holds 64
//! bits or a double. A number that neither holds exactly is no number here.

use crate::property::Owned;

/// The number that a text of JSON's grammar says, if 64 bits or a double hold it exactly: as a
/// double that is written with the same digits.
pub(crate) fn exact(text: &str) -> Option<Owned> {
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    let said = Decimal::of(text)?;
    if let Some(integer) = number.as_i64()
        && Decimal::of(&integer.to_string()).as_ref() == Some(&said)
    {
        return Some(Owned::Integer(integer));
    }
    let float = number.as_f64().filter(|float| float.is_finite())?;
    (Decimal::of(&format!("{float:e}"))? == said).then_some(Owned::Float(float))
}

/// The value of a text in decimal: `0.d1d2d3… * 10^exponent`, without zeros at either end.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    /// None if there are no digits.
    exponent: Option<i64>,
}

impl Decimal {
    /// `None`: its exponent is beyond all that is held anyway.
    fn of(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-');
        let is_negative = unsigned.is_some();
        let text = unsigned.unwrap_or(text);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole.as_bytes(), fraction.as_bytes()].concat();
        let leading = all.iter().take_while(|digit| **digit == b'0').count();
        let mut digits = all.get(leading..).unwrap_or_default().to_vec();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Self { is_negative, digits, exponent: None });
        }
        let exponent: i64 = exponent.parse().ok()?;
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let exponent = exponent.checked_add(point)?;
        Some(Self { is_negative, digits, exponent: Some(exponent) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_are_held() {
        for (text, expected) in [
            ("0", Owned::Integer(0)),
            ("-7", Owned::Integer(-7)),
            ("9223372036854775807", Owned::Integer(i64::MAX)),
            ("-9223372036854775808", Owned::Integer(i64::MIN)),
            ("1.5", Owned::Float(1.5)),
            ("0.1", Owned::Float(0.1)),
            ("1.50", Owned::Float(1.5)),
            ("1.0", Owned::Float(1.0)),
            ("1e3", Owned::Float(1000.0)),
            ("1E+3", Owned::Float(1000.0)),
            ("100e-2", Owned::Float(1.0)),
            ("1e22", Owned::Float(1e22)),
            ("5e-324", Owned::Float(5e-324)),
            ("1.7976931348623157e308", Owned::Float(f64::MAX)),
            ("0.30000000000000004", Owned::Float(0.1 + 0.2)),
            ("0e99999999999999999999", Owned::Float(0.0)),
        ] {
            assert_eq!(exact(text), Some(expected), "{text}");
        }
        let Some(Owned::Float(zero)) = exact("-0") else { panic!("a double has a negative zero") };
        assert!(zero.is_sign_negative());
    }

    #[test]
    fn inexact_numbers_are_refused() {
        for text in [
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551617",
            "12345678901234567890123",
            "0.1000000000000000055511151231257827",
            "3.14159265358979323846",
            "123456789.123456789123",
            "1e400",
            "-1e400",
            "1e-400",
            "4.9e-324",
            "1e99999999999999999999",
        ] {
            assert_eq!(exact(text), None, "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["", "-", "007", "+1", ".5", "5.", "0x10", "1_000", " 1", "1 ", "NaN", "1e"] {
            assert_eq!(exact(text), None, "{text}");
        }
    }
}

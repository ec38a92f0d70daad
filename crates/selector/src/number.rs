//! Numeric literals, written as in Java: `57`, `0x1F`, `017`, `57L`; `7.`, `.5`, `57.9E2`, `5D`,
//! `1.1F`. Signs are operators and not part of them.

use crate::error::Reason;
use crate::identifier;

/// A literal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// An exact one. 2^63 is among them, which only a minus before it makes a value of 64 bits.
    Exact(i128),
    /// An approximate one.
    Approximate(f64),
}

/// One more than the largest exact value: a minus may stand before it.
const EXACT_MAX: i128 = 1 << 63;

/// The literal at the beginning of `rest`, and how many bytes it takes. There is a digit, or a
/// point and a digit.
pub(crate) fn scan(rest: &str) -> Result<(Number, usize), Reason> {
    let mut scan = Scan { rest, taken: 0 };
    let number = if rest.starts_with("0x") || rest.starts_with("0X") {
        scan.taken = 2;
        scan.hexadecimal()?
    } else {
        scan.decimal()?
    };
    if scan.peek().is_some_and(identifier::is_part) {
        return Err(Reason::NumberRunsOn);
    }
    Ok((number, scan.taken))
}

struct Scan<'t> {
    rest: &'t str,
    taken: usize,
}

impl<'t> Scan<'t> {
    fn hexadecimal(&mut self) -> Result<Number, Reason> {
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        self.take_one("lL");
        if digits.is_empty() {
            return Err(Reason::NoDigits);
        }
        exact_bits(digits, 16)
    }

    fn decimal(&mut self) -> Result<Number, Reason> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        let mut exact = true;
        if self.take_one(".") {
            self.take_while(|c| c.is_ascii_digit());
            exact = false;
        }
        exact &= !self.take_exponent();
        let mantissa = self.rest.get(..self.taken).unwrap_or_default();
        if self.take_one("fF") {
            return approximate(mantissa, |value| f64::from(value as f32));
        }
        if self.take_one("dD") || !exact {
            return approximate(mantissa, |value| value);
        }
        self.take_one("lL");
        if digits.len() > 1 && digits.starts_with('0') {
            if digits.contains(['8', '9']) {
                return Err(Reason::NotOctal);
            }
            return exact_bits(digits, 8);
        }
        let value = digits.parse().ok().filter(|value| *value <= EXACT_MAX);
        value.map(Number::Exact).ok_or(Reason::NumberTooLarge)
    }

    /// Takes `E`, a sign and digits, or nothing.
    fn take_exponent(&mut self) -> bool {
        let before = self.taken;
        if self.take_one("eE") {
            self.take_one("+-");
            if !self.take_while(|c| c.is_ascii_digit()).is_empty() {
                return true;
            }
        }
        self.taken = before;
        false
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.taken..)?.chars().next()
    }

    /// Takes the next character if it is one of these, all of one byte.
    fn take_one(&mut self, of: &str) -> bool {
        let takes = self.peek().is_some_and(|c| of.contains(c));
        self.taken += usize::from(takes);
        takes
    }

    fn take_while(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let rest = self.rest.get(self.taken..).unwrap_or_default();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.taken += length;
        rest.get(..length).unwrap_or_default()
    }
}

/// Digits that spell the bits of a value, the sign among them, as Java has it: `0xFFFFFFFFFFFFFFFF`
/// is -1.
fn exact_bits(digits: &str, radix: u32) -> Result<Number, Reason> {
    let bits = u64::from_str_radix(digits, radix).map_err(|_| Reason::NumberTooLarge)?;
    Ok(Number::Exact(i128::from(bits.cast_signed())))
}

fn approximate(mantissa: &str, round: fn(f64) -> f64) -> Result<Number, Reason> {
    let value = mantissa.parse().ok().map(round).filter(|value| value.is_finite());
    value.map(Number::Approximate).ok_or(Reason::NumberTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_java() {
        let exact = |text: &str, value: i128| {
            assert_eq!(scan(text), Ok((Number::Exact(value), text.len())), "{text}");
        };
        let approximate = |text: &str, value: f64| {
            assert_eq!(scan(text), Ok((Number::Approximate(value), text.len())), "{text}");
        };
        exact("0", 0);
        exact("57", 57);
        exact("57L", 57);
        exact("9223372036854775808", 1 << 63);
        exact("0x1f", 31);
        exact("0XFFl", 255);
        exact("0xFFFFFFFFFFFFFFFF", -1);
        exact("017", 15);
        exact("00", 0);
        exact("01777777777777777777777", -1);
        approximate("7.", 7.0);
        approximate(".5", 0.5);
        approximate("7E3", 7000.0);
        approximate("57.9e+2", 5790.0);
        approximate("5.E-1", 0.5);
        approximate("5D", 5.0);
        approximate("09.5", 9.5);
        approximate("09d", 9.0);
        approximate("1.1F", f64::from(1.1_f32));
        approximate("1e-400", 0.0);
    }

    #[test]
    fn malformed_number_says_why() {
        for (text, reason) in [
            ("0x", Reason::NoDigits),
            ("0xG", Reason::NoDigits),
            ("08", Reason::NotOctal),
            ("9223372036854775809", Reason::NumberTooLarge),
            ("99999999999999999999999999999999999999999999", Reason::NumberTooLarge),
            ("0x10000000000000000", Reason::NumberTooLarge),
            ("1E309", Reason::NumberTooLarge),
            ("1E39F", Reason::NumberTooLarge),
            ("5abc", Reason::NumberRunsOn),
            ("5e", Reason::NumberRunsOn),
            ("5.0L", Reason::NumberRunsOn),
            ("1_000", Reason::NumberRunsOn),
        ] {
            assert_eq!(scan(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn number_ends_before_next_token() {
        assert_eq!(scan("5+6"), Ok((Number::Exact(5), 1)));
        assert_eq!(scan("1.2.3"), Ok((Number::Approximate(1.2), 3)));
    }
}

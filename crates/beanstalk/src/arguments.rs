//! The lexical rules of arguments: integers and tube names, exactly as strict and as lenient as
//! beanstalkd 1.13.

use model::{MessageId, Nanos, QueueName};

/// Bytes of a tube's name.
const TUBE_BYTES_MAX: usize = 200;

/// An argument is missing, malformed, too large or one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The rest of a line, read from left to right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(pub(crate) &'a [u8]);

impl Arguments<'_> {
    /// Any number of spaces, then digits.
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.skip(|byte| byte == b' ');
        self.digits()
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.u64()?).map_err(|_| Malformed)
    }

    pub(crate) fn seconds(&mut self) -> Result<Nanos, Malformed> {
        Ok(Nanos::from_secs(self.u32()?.into()))
    }

    /// The bound of `kick`, read as C's `strtoul` reads into a 32-bit number: white space before
    /// it, a sign and garbage after it are let pass; -1 is 4294967295.
    pub(crate) fn lenient_u32(&mut self) -> Result<u32, Malformed> {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == b'\x0b');
        let negative = self.0.starts_with(b"-");
        if let [b'-' | b'+', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let magnitude = self.digits()?;
        let value = if negative { magnitude.wrapping_neg() } else { magnitude };
        Ok(value as u32)
    }

    pub(crate) fn message(&mut self) -> Result<MessageId, Malformed> {
        self.u64().map(MessageId)
    }

    /// All that is left is a tube's name.
    pub(crate) fn tube(self) -> Result<QueueName, Malformed> {
        tube_name(self.0).ok_or(Malformed)
    }

    /// Any number of spaces, then a tube's name that something else follows.
    pub(crate) fn leading_tube(&mut self) -> Result<QueueName, Malformed> {
        self.skip(|byte| byte == b' ');
        let name = self.skip(is_tube_byte);
        tube_name(name).ok_or(Malformed)
    }

    /// Nothing is left.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    fn digits(&mut self) -> Result<u64, Malformed> {
        let digits = self.skip(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(Malformed);
        }
        let appended =
            |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        digits.iter().try_fold(0, appended).ok_or(Malformed)
    }
}

impl<'a> Arguments<'a> {
    /// Passes over the bytes that `belongs` accepts, and returns them.
    fn skip(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !belongs(*byte)).unwrap_or(self.0.len());
        let (passed, rest) = self.0.split_at(end);
        self.0 = rest;
        passed
    }
}

fn is_tube_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte)
}

/// The name as a queue's, if these bytes are a tube's name.
fn tube_name(bytes: &[u8]) -> Option<QueueName> {
    if !is_tube_name(bytes) {
        return None;
    }
    QueueName::new(core::str::from_utf8(bytes).ok()?).ok()
}

/// Queues of other protocols may have names that no tube can have.
pub(crate) fn is_tube_name(bytes: &[u8]) -> bool {
    bytes.len() <= TUBE_BYTES_MAX
        && bytes.first().is_some_and(|first| *first != b'-')
        && bytes.iter().copied().all(is_tube_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lenient(text: &str) -> Result<u32, Malformed> {
        Arguments(text.as_bytes()).lenient_u32()
    }

    #[test]
    fn integers_are_digits_after_spaces() {
        let read = |text: &str| Arguments(text.as_bytes()).u64();
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("   007x"), Ok(7));
        assert_eq!(read("18446744073709551615"), Ok(u64::MAX));
        for malformed in ["", " ", "x", "-1", "+1", "\t1", "18446744073709551616", "0x"] {
            let expected = if malformed == "0x" { Ok(0) } else { Err(Malformed) };
            assert_eq!(read(malformed), expected, "{malformed:?}");
        }
    }

    #[test]
    fn small_integers_do_not_wrap() {
        assert_eq!(Arguments(b"4294967295").u32(), Ok(u32::MAX));
        assert_eq!(Arguments(b"4294967296").u32(), Err(Malformed));
    }

    #[test]
    fn kick_bound_parses_like_strtoul() {
        assert_eq!(lenient("10"), Ok(10));
        assert_eq!(lenient(" \t\n\x0b\x0c+10 x"), Ok(10));
        assert_eq!(lenient("-1"), Ok(u32::MAX));
        assert_eq!(lenient("-4294967295"), Ok(1));
        assert_eq!(lenient("4294967297"), Ok(1));
        assert_eq!(lenient("18446744073709551615"), Ok(u32::MAX));
        for malformed in ["", " ", "x", "--1", "- 1", "18446744073709551616"] {
            assert_eq!(lenient(malformed), Err(Malformed), "{malformed:?}");
        }
    }

    #[test]
    fn tube_names() {
        for name in ["a", "9", "+", "azAZ09-+/;.$_()", &"x".repeat(200)] {
            assert!(is_tube_name(name.as_bytes()), "{name}");
        }
        for name in ["", "-a", "a b", "a:b", "a\0", "ä", "a,b", "a\\", &"x".repeat(201)] {
            assert!(!is_tube_name(name.as_bytes()), "{name}");
        }
    }
}

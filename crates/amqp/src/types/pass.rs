//! Passing over values that are not needed, with a check of all that is inside of them. There is no
//! check if an earlier one is trusted or the inside is left to the receiver.

use crate::decode_error::DecodeErrorKind as Kind;
use crate::limits::NESTING_MAX;
use crate::types::reader::{Reader, Result};
use crate::types::{Fields, code};

/// Checked all the way down.
impl<'a> Reader<'a> {
    /// Passes over the next value of [`Reader::value`], or fails as that would; inside of `depth`
    /// others.
    pub(crate) fn check(&mut self, depth: u32) -> Result<()> {
        let code = self.byte()?;
        self.check_of(code, depth)
    }

    /// Passes over the bytes behind the constructor `code`.
    pub(crate) fn check_of(&mut self, code: u8, depth: u32) -> Result<()> {
        match code {
            code::STRING_8 | code::STRING_32 => self.check_string_of(code),
            code::SYMBOL_8 | code::SYMBOL_32 => self.check_symbol_of(code),
            code::BINARY_8 | code::BINARY_32 => self.binary_of(code).map(drop),
            code::BOOLEAN => self.boolean_of(code).map(drop),
            code::CHAR => self.char().map(drop),
            code::DESCRIBED => self.described_in(depth).map(drop),
            code::LIST_0 | code::LIST_8 | code::LIST_32 => self.list_of(code, depth).map(drop),
            code::MAP_8 | code::MAP_32 => self.map_of(code, depth).map(drop),
            code::ARRAY_8 | code::ARRAY_32 => self.array_of(code, depth).map(drop),
            _ => self.pass_fixed(code),
        }
    }

    /// Passes over the string of [`Reader::string_of`].
    pub(crate) fn check_string_of(&mut self, code: u8) -> Result<()> {
        let left = self.rest().len();
        match code {
            code::STRING_8 | code::STRING_32 => {
                let bytes = self.sized(code == code::STRING_8)?;
                // Most are ASCII, which is seen in a third of the time.
                let is_text = is_ascii(bytes) || core::str::from_utf8(bytes).is_ok();
                if is_text { Ok(()) } else { Err(self.error_behind(left, Kind::NotUtf8)) }
            }
            _ => self.unexpected(code),
        }
    }

    /// Passes over the symbol of [`Reader::symbol_of`].
    pub(crate) fn check_symbol_of(&mut self, code: u8) -> Result<()> {
        let left = self.rest().len();
        match code {
            code::SYMBOL_8 | code::SYMBOL_32 => {
                let is_ascii = is_ascii(self.sized(code == code::SYMBOL_8)?);
                if is_ascii { Ok(()) } else { Err(self.error_behind(left, Kind::NotAscii)) }
            }
            _ => self.unexpected(code),
        }
    }

    /// Passes over a short string or symbol of ASCII, as most keys are; false at anything else,
    /// which stays.
    #[inline]
    pub(crate) fn pass_short_ascii(&mut self) -> bool {
        let [code::STRING_8 | code::SYMBOL_8, size, rest @ ..] = self.rest() else { return false };
        let text = rest.get(..usize::from(*size)).filter(|text| is_ascii(text));
        text.is_some_and(|text| self.take(2 + text.len()).is_ok())
    }

    /// A map with symbols as keys, such as properties or filters (2.8.13).
    pub(crate) fn fields_of(&mut self, code: u8) -> Result<Fields> {
        let is_symbol = |key| matches!(key, code::SYMBOL_8 | code::SYMBOL_32);
        self.map_with_keys(code, 0, is_symbol).map(Fields::from)
    }
}

/// True if all of them are. Up to 16 bytes, as most texts have, are checked as two words.
fn is_ascii(bytes: &[u8]) -> bool {
    match (bytes.len(), bytes.first_chunk(), bytes.last_chunk()) {
        (..=16, Some(first), Some(last)) => {
            (u64::from_ne_bytes(*first) | u64::from_ne_bytes(*last)) & NO_ASCII == 0
        }
        (..=7, ..) => bytes.iter().fold(0, |all, byte| all | byte) & 0x80 == 0,
        _ => bytes.is_ascii(),
    }
}

/// The bits that are set in no byte of ASCII.
const NO_ASCII: u64 = 0x8080_8080_8080_8080;

/// Not looked into.
impl<'a> Reader<'a> {
    /// Passes over a value that was checked before, by its size alone.
    #[inline]
    pub(crate) fn leap(&mut self) -> Result<()> {
        let bytes = match self.rest() {
            [
                code::LIST_8
                | code::MAP_8
                | code::BINARY_8
                | code::STRING_8
                | code::SYMBOL_8
                | code::ARRAY_8,
                size,
                ..,
            ] => 2 + usize::from(*size),
            [
                code::LIST_32
                | code::MAP_32
                | code::BINARY_32
                | code::STRING_32
                | code::SYMBOL_32
                | code::ARRAY_32,
                size @ ..,
            ] => match size.first_chunk() {
                Some(size) => 5 + u32::from_be_bytes(*size) as usize,
                None => return Err(self.error(Kind::Truncated)),
            },
            [code, ..] => match code::width(*code) {
                Some(width) => 1 + width,
                None => return self.skip(),
            },
            [] => return Err(self.error(Kind::Truncated)),
        };
        self.take(bytes).map(drop)
    }

    /// Passes over a value of any type, of which no more is checked than that sizes and counts fit.
    pub(crate) fn skip(&mut self) -> Result<()> {
        for _ in 0..NESTING_MAX {
            if self.peek() != Some(code::DESCRIBED) {
                return self.skip_undescribed();
            }
            self.described()?;
        }
        Err(self.error(Kind::TooDeep))
    }

    /// Passes over a value; gives the bytes of a string or symbol.
    pub(crate) fn text(&mut self) -> Result<Option<&'a [u8]>> {
        let is_short = match self.peek() {
            Some(code::STRING_8 | code::SYMBOL_8) => true,
            Some(code::STRING_32 | code::SYMBOL_32) => false,
            _ => return self.leap().map(|()| None),
        };
        self.byte()?;
        self.sized(is_short).map(Some)
    }

    fn skip_undescribed(&mut self) -> Result<()> {
        match self.byte()? {
            code @ (code::LIST_0 | code::LIST_8 | code::LIST_32) => self.list_body(code).map(drop),
            code @ (code::MAP_8 | code::MAP_32) => self.map_body(code).map(drop),
            code @ (code::ARRAY_8 | code::ARRAY_32) => {
                self.compound(code == code::ARRAY_8).map(drop)
            }
            code::BINARY_8 | code::STRING_8 | code::SYMBOL_8 => self.sized(true).map(drop),
            code::BINARY_32 | code::STRING_32 | code::SYMBOL_32 => self.sized(false).map(drop),
            code => self.pass_fixed(code),
        }
    }

    /// Passes over a value of a type with a size.
    fn pass_fixed(&mut self, code: u8) -> Result<()> {
        match code::width(code) {
            Some(width) => self.take(width).map(drop),
            None => Err(self.error_before(Kind::UnknownConstructor(code))),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Bytes that may follow a constructor: sizes, counts, values, and others that are neither.
    const TAILS: [&[u8]; 8] = [
        &[],
        &[0],
        &[1, 2],
        &[2, b'a', 0xff, 0, 0],
        &[3, 1, 0x41, 0x41, 0, 0, 0, 1],
        &[5, 2, 0x50, 0xc3, 0xa4, 0x40, 0x40, 0x40],
        &[0, 0, 0, 6, 0, 0, 0, 1, 0x56, 2, 0x41, 0x42, 0x43, 0x44, 0x45, 0x40],
        &[0x53, 0x77, 0xa1, 1, b'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];

    #[test]
    fn is_ascii_finds_high_bytes() {
        for length in 0..40 {
            let mut bytes: Vec<u8> = (0..length).map(|byte| byte + 0x50).collect();
            assert!(is_ascii(&bytes), "{bytes:x?}");
            for place in 0..bytes.len() {
                bytes[place] |= 0x80;
                assert!(!is_ascii(&bytes), "{bytes:x?}");
                bytes[place] &= 0x7f;
            }
        }
    }

    #[test]
    fn check_agrees_with_read() {
        for (code, tail) in (0..=u8::MAX).flat_map(|code| TAILS.map(|tail| (code, tail))) {
            let bytes: Vec<u8> = [&[code], tail].concat();
            let (mut checks, mut reads) = (Reader::new(&bytes), Reader::new(&bytes));
            assert_eq!(checks.check(0), reads.value().map(drop), "{bytes:02x?}");
            assert_eq!(checks.position(), reads.position(), "{bytes:02x?}");
        }
    }

    #[test]
    fn skip_is_as_long_as_read() {
        for (code, tail) in (0..=u8::MAX).flat_map(|code| TAILS.map(|tail| (code, tail))) {
            let bytes: Vec<u8> = [&[code], tail].concat();
            let (mut skips, mut reads) = (Reader::new(&bytes), Reader::new(&bytes));
            if reads.value().is_ok() {
                let mut leaps = skips.clone();
                assert_eq!((skips.skip(), leaps.leap()), (Ok(()), Ok(())), "{bytes:02x?}");
                assert_eq!(skips.position(), reads.position(), "{bytes:02x?}");
                assert_eq!(leaps.position(), reads.position(), "{bytes:02x?}");
            }
        }
    }
}

//! The keys of a map: "a map in which there exist two identical key values is invalid" (1.6.23).

use alloc::vec::Vec;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::types::code;
use crate::types::reader::{Reader, Result};

/// A key as it is compared: its type, and bytes that two keys share only if they are the same
/// value, in whichever form it was written. It stands at the third.
type Key<'a> = (u8, &'a [u8], usize);

/// Finds equal keys among those of a map that were read so far.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// A bit for each key that is a short text, which equal ones share and others seldom do.
    seen: [u64; 4],
    /// Two share one, or a key is of another kind.
    may_be_equal: bool,
}

impl Keys {
    /// Takes the next one.
    #[inline]
    pub(crate) fn add(&mut self, encoded: &[u8]) {
        let [code @ (code::STRING_8 | code::SYMBOL_8), size, first, .., last] = encoded else {
            self.may_be_equal = true;
            return;
        };
        let mixed = u32::from_le_bytes([*code, *size, *first, *last]).wrapping_mul(MIXING);
        // The highest byte is mixed best.
        let place = mixed.to_le_bytes()[3];
        let (word, bit) = (usize::from(place / 64), 1 << (place % 64));
        if let Some(word) = self.seen.get_mut(word) {
            self.may_be_equal |= *word & bit != 0;
            *word |= bit;
        }
    }

    /// All keys among the `elements`, which begin at `start`, were taken.
    pub(crate) fn finish(self, elements: &[u8], count: u32, start: usize) -> Result<()> {
        if self.may_be_equal && count > 2 { compare(elements, count, start) } else { Ok(()) }
    }
}

/// An odd number without a pattern (the golden ratio).
const MIXING: u32 = 0x9e37_79b1;

/// Compares all keys among the `elements`, which begin at `start`, with each other, sorted. The
/// elements were checked before.
///
/// # Errors
/// The later of two that are equal.
#[cold]
pub(crate) fn compare(elements: &[u8], count: u32, start: usize) -> Result<()> {
    let mut reader = Reader::new(elements);
    // Each element takes a byte at least.
    let mut keys = Vec::with_capacity(count as usize / 2);
    for _ in 0..count / 2 {
        let (begin, rest) = (reader.position(), reader.rest());
        reader.leap()?;
        let (kind, bytes) = canonical(rest.get(..reader.position() - begin).unwrap_or_default());
        keys.push((kind, bytes, start + begin));
        reader.leap()?;
    }
    keys.sort_unstable();
    let same = keys.array_windows().find(|[a, b]| is_same(a, b));
    same.map_or(Ok(()), |[_, key]| Err(twice(key)))
}

fn is_same(a: &Key<'_>, b: &Key<'_>) -> bool {
    (a.0, a.1) == (b.0, b.1)
}

fn twice(&(_, _, at): &Key<'_>) -> DecodeError {
    DecodeError::new(Kind::DuplicateKey, at)
}

/// The type of an encoded value, as one of its constructors, and the bytes that tell it from others
/// of its type. Compound values are compared as they were written.
fn canonical(encoded: &[u8]) -> (u8, &[u8]) {
    let Some((code, bytes)) = encoded.split_first() else { return (code::NULL, &[]) };
    match *code {
        code::STRING_8 => (code::STRING_8, behind(bytes, 1)),
        code::STRING_32 => (code::STRING_8, behind(bytes, 4)),
        code::SYMBOL_8 => (code::SYMBOL_8, behind(bytes, 1)),
        code::SYMBOL_32 => (code::SYMBOL_8, behind(bytes, 4)),
        code::BINARY_8 => (code::BINARY_8, behind(bytes, 1)),
        code::BINARY_32 => (code::BINARY_8, behind(bytes, 4)),
        code::UINT | code::SMALL_UINT | code::UINT_0 => (code::UINT, unsigned(bytes)),
        code::ULONG | code::SMALL_ULONG | code::ULONG_0 => (code::ULONG, unsigned(bytes)),
        code::INT | code::SMALL_INT => (code::INT, signed(bytes)),
        code::LONG | code::SMALL_LONG => (code::LONG, signed(bytes)),
        code::TRUE => (code::BOOLEAN, &[1]),
        code::FALSE => (code::BOOLEAN, &[0]),
        code => (code, bytes),
    }
}

fn behind(bytes: &[u8], size_bytes: usize) -> &[u8] {
    bytes.get(size_bytes..).unwrap_or_default()
}

/// Without leading zeros.
fn unsigned(mut bytes: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// Without leading bytes that only repeat the sign.
fn signed(mut bytes: &[u8]) -> &[u8] {
    while let [sign, rest @ ..] = bytes
        && matches!((sign, rest), (0, [0..=0x7f, ..]) | (0xff, [0x80..=0xff, ..]))
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use crate::types::Value;

    fn check(pairs: &[&[u8]]) -> Result<()> {
        let mut elements = Vec::new();
        for key in pairs {
            elements.extend_from_slice(key);
            elements.push(code::NULL);
        }
        let size = u32::try_from(elements.len() + 4).unwrap().to_be_bytes();
        let count = u32::try_from(2 * pairs.len()).unwrap().to_be_bytes();
        let map = [&[code::MAP_32][..], &size, &count, &elements].concat();
        Value::decode(&map).map(drop)
    }

    fn encoded(value: Value<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        encode::value(&mut out, value);
        out
    }

    #[test]
    fn equal_keys_in_any_form_refused() {
        let same: [[&[u8]; 2]; 15] = [
            [b"\xa1\x01a", b"\xb1\0\0\0\x01a"],
            [b"\xa1\x03abc", b"\xa1\x03abc"],
            [b"\xa1\x03abc", b"\xb1\0\0\0\x03abc"],
            [b"\xb3\0\0\0\x03abc", b"\xa3\x03abc"],
            [b"\xa3\x01a", b"\xb3\0\0\0\x01a"],
            [b"\xa0\x01a", b"\xb0\0\0\0\x01a"],
            [b"\x43", b"\x52\0"],
            [b"\x52\x07", b"\x70\0\0\0\x07"],
            [b"\x44", b"\x80\0\0\0\0\0\0\0\0"],
            [b"\x54\xff", b"\x71\xff\xff\xff\xff"],
            [b"\x55\x01", b"\x81\0\0\0\0\0\0\0\x01"],
            [b"\x41", b"\x56\x01"],
            [b"\x40", b"\x40"],
            [b"\x45", b"\x45"],
            [b"\0\x53\x01\x40", b"\0\x53\x01\x40"],
        ];
        for [first, second] in same {
            let error = check(&[first, b"\x50\x63", second]).unwrap_err();
            let at = 9 + first.len() + 1 + 3;
            assert_eq!(error, DecodeError::new(Kind::DuplicateKey, at), "{first:x?}");
            assert_eq!(check(&[first, b"\x50\x63"]), Ok(()));
        }
        let others: [[&[u8]; 2]; 9] = [
            [b"\xa1\x01a", b"\xa3\x01a"],
            [b"\xa1\x01a", b"\xa1\x01b"],
            [b"\xa1\x03abc", b"\xa3\x03abc"],
            // Their first bytes to be looked at are the same.
            [b"\xa1\x03abc", b"\xa1\x03axc"],
            [b"\x52\x07", b"\x53\x07"],
            [b"\x54\x7f", b"\x71\0\0\0\xff"],
            [b"\x54\x80", b"\x71\xff\xff\x80\x80"],
            [b"\x41", b"\x42"],
            [b"\x50\0", b"\x51\0"],
        ];
        for [first, second] in others {
            assert_eq!(check(&[first, second]), Ok(()), "{first:x?} {second:x?}");
        }
    }

    #[test]
    fn many_keys_are_compared_with_all() {
        for count in [2, 15, 16, 17, 18, 100, 5_000_u32] {
            let mut keys: Vec<_> = (0..count).map(|key| encoded(Value::Uint(key))).collect();
            let slices =
                |keys: &[Vec<u8>]| check(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(slices(&keys), Ok(()), "{count}");
            for twice in [0, count / 2, count - 1] {
                keys.push(encoded(Value::Uint(twice)));
                let kind = slices(&keys).map_err(|error| error.kind);
                assert_eq!(kind, Err(Kind::DuplicateKey), "{twice} of {count}");
                keys.pop();
            }
        }
    }
}

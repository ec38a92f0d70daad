//! Bytes that are needed for a moment, such as a key to search for: few take no memory of their
//! own.

use alloc::vec::Vec;
use core::ops::Deref;

/// Bytes, of parts that stand back to back.
#[derive(Clone, Debug)]
pub(crate) struct ShortBytes {
    short: [u8; SHORT_BYTES],
    len: usize,
    /// All of it, if it is longer.
    long: Vec<u8>,
}

impl ShortBytes {
    pub(crate) fn of<const N: usize>(parts: [&[u8]; N]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum();
        let mut all = Self { short: [0; SHORT_BYTES], len, long: Vec::new() };
        if len > SHORT_BYTES {
            all.long = parts.concat();
            return all;
        }
        let mut rest = &mut all.short[..];
        for part in parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        all
    }
}

impl Deref for ShortBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.len > SHORT_BYTES {
            return &self.long;
        }
        self.short.get(..self.len).expect("invariant: few bytes have room")
    }
}

/// Most keys have no more.
const SHORT_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bytes_are_their_parts() {
        for bytes in [0, 1, SHORT_BYTES - 9, SHORT_BYTES - 8, SHORT_BYTES - 7, 3 * SHORT_BYTES] {
            let field = alloc::vec![b'x'; bytes];
            let key = ShortBytes::of([b"a number", &field, b""]);
            assert_eq!(*key, [b"a number", &field[..]].concat(), "{bytes} bytes");
        }
    }
}

//! Numbers and strings as bytes: little endian, and LEB128 for numbers that are mostly small.
//!
//! Reading is total: any bytes give a value or a [`RecordError`], and nothing is allocated.

use alloc::vec::Vec;

use crate::record::RecordError;

/// Appends seven bits a byte, lowest first; the high bit says that more follow.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and that many bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The strings that [`put_bytes`] has put one behind the other, up to one that is not whole.
pub fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(bytes);
    core::iter::from_fn(move || reader.bytes().ok())
}

/// Reads from the front of some bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, RecordError> {
        let (first, rest) = self.rest.split_first().ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Eight bytes, little endian.
    #[inline]
    pub(crate) fn fixed(&mut self) -> Result<u64, RecordError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*first))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, RecordError> {
        match self.rest.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.rest = rest;
                Ok((*first).into())
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, RecordError> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if index == VARINT_BYTES_MAX - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        let is_cut = self.rest.len() < VARINT_BYTES_MAX;
        Err(if is_cut { RecordError::Truncated } else { RecordError::Invalid("number") })
    }

    pub(crate) fn small(&mut self) -> Result<u32, RecordError> {
        u32::try_from(self.varint()?).map_err(|_| RecordError::Invalid("number"))
    }

    /// A length and that many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let length = usize::try_from(self.varint()?).map_err(|_| RecordError::Truncated)?;
        let (first, rest) = self.rest.split_at_checked(length).ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// The bytes read since this reader was cloned to that one.
    pub(crate) fn until(&self, later: &Self) -> &'a [u8] {
        assert!(self.rest.len() >= later.rest.len(), "a clone only reads on");
        let length = self.rest.len() - later.rest.len();
        self.rest.get(..length).unwrap_or_default()
    }

    /// Bytes that are left.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }
}

/// Bytes of the largest number: nine of seven bits, and the last bit.
pub const VARINT_BYTES_MAX: usize = 10;
const _: () = assert!(VARINT_BYTES_MAX == u64::BITS.div_ceil(7) as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.remaining(), 0);
            assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), Err(RecordError::Truncated));
        }
    }

    /// Bytes behind a number are left, and each cut of it is told from a number too large.
    #[test]
    fn cut_varint_is_truncated() {
        for bits in 0..u64::BITS {
            let mut out = Vec::new();
            put_varint(&mut out, 1 << bits);
            let whole = out.len();
            out.push(7);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.varint(), reader.remaining()), (Ok(1 << bits), 1));
            for cut in 0..whole {
                assert_eq!(Reader::new(&out[..cut]).varint(), Err(RecordError::Truncated));
            }
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Reader::new(&too_large).varint(), Err(RecordError::Invalid("number")));
        let endless = [0x80; 11];
        assert_eq!(Reader::new(&endless).varint(), Err(RecordError::Invalid("number")));
    }

    #[test]
    fn claimed_length_is_checked() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        assert_eq!(Reader::new(&out).bytes(), Err(RecordError::Truncated));
    }
}

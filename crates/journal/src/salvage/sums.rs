//! Checksums of any part of some bytes, each in almost constant time.

use std::ops::Range;

/// Bytes between two checksums that are kept.
const STEP: usize = 1024;

/// The checksums of the beginnings of some bytes. A body may imitate the headers of many large
/// frames: by these each of them costs as much as a small one.
pub(crate) struct Sums<'a> {
    bytes: &'a [u8],
    /// CRC-32C of the first `n * STEP` bytes.
    prefixes: Vec<u32>,
}

impl<'a> Sums<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        let mut prefixes = vec![0];
        let mut sum = 0;
        for step in bytes.chunks_exact(STEP) {
            sum = crc32c::crc32c_append(sum, step);
            prefixes.push(sum);
        }
        Self { bytes, prefixes }
    }

    /// CRC-32C of bytes with checksum `seed` and, behind them, of a part of these; `None` if
    /// the part does not lie in them.
    pub(crate) fn append(&self, seed: u32, part: Range<usize>) -> Option<u32> {
        let bytes = part.end.checked_sub(part.start)?;
        let (before, all) = (self.prefix(part.start)?, self.prefix(part.end)?);
        // Both ways to combine with nothing: a checksum shifted by so many bytes.
        let own = all ^ crc32c::crc32c_combine(before, 0, bytes);
        Some(crc32c::crc32c_combine(seed, own, bytes))
    }

    fn prefix(&self, end: usize) -> Option<u32> {
        let step = end / STEP;
        let sum = *self.prefixes.get(step)?;
        Some(crc32c::crc32c_append(sum, self.bytes.get(step * STEP..end)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_all_parts_are_right() {
        let bytes: Vec<u8> = (0..5_000_u32).map(|n| (n * n / 7) as u8).collect();
        let sums = Sums::of(&bytes);
        let seed = crc32c::crc32c(b"salt");
        for start in (0..bytes.len()).step_by(97).chain([0, 1023, 1024, 5_000]) {
            for end in (start..=bytes.len()).step_by(131).chain([start, 5_000]) {
                let expected = crc32c::crc32c_append(seed, &bytes[start..end]);
                assert_eq!(sums.append(seed, start..end), Some(expected), "{start}..{end}");
            }
        }
        assert_eq!(sums.append(seed, 0..5_001), None);
    }
}

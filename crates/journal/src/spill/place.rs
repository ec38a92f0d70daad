//! The place of a body that left memory without being in the log.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

/// A place in a file of the spill: as small as a pointer, for there is one for each body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpillPlace(NonZeroU64);

impl SpillPlace {
    /// The place at `offset` in file `number`.
    pub(crate) fn new(number: FileNumber, offset: u64) -> Self {
        let units = offset / UNIT_BYTES;
        assert!(offset.is_multiple_of(UNIT_BYTES), "records begin at whole units");
        assert!(offset < FILE_BYTES_END, "files are small");
        let number =
            number.0.checked_shl(OFFSET_BITS).filter(|high| high >> OFFSET_BITS == number.0);
        let place = number.and_then(|high| NonZeroU64::new(high | units));
        Self(place.expect("invariant: files are numbered from 1, and never so high"))
    }

    /// All that there may be in file `number`.
    pub(crate) fn all_in(number: FileNumber) -> RangeInclusive<NonZeroU64> {
        let last = ((1 << OFFSET_BITS) - 1) * UNIT_BYTES;
        Self::new(number, 0).0..=Self::new(number, last).0
    }

    /// The number of the file.
    pub(crate) fn number(self) -> FileNumber {
        FileNumber(self.0.get() >> OFFSET_BITS)
    }

    /// The offset in the file.
    pub(crate) fn offset(self) -> u64 {
        (self.0.get() & ((1 << OFFSET_BITS) - 1)) * UNIT_BYTES
    }
}

/// For callers that keep places without knowing their meaning.
impl From<SpillPlace> for NonZeroU64 {
    fn from(place: SpillPlace) -> Self {
        place.0
    }
}

/// Back from it; only a number that once was a place is one.
impl From<NonZeroU64> for SpillPlace {
    fn from(place: NonZeroU64) -> Self {
        Self(place)
    }
}

/// The number of a file, from 1; never given twice by one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNumber(pub(crate) u64);

impl FileNumber {
    /// The name of the file.
    pub(crate) fn file_name(self) -> String {
        format!("{:016}{SUFFIX}", self.0)
    }
}

/// True if a file of that name is the spill's.
pub(crate) fn is_spill_name(name: &str) -> bool {
    let digits = name.strip_suffix(SUFFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Records begin at multiples of it.
pub(crate) const UNIT_BYTES: u64 = 64;

/// Files end before 1 GiB; the other 40 bits are their number.
const OFFSET_BITS: u32 = 24;

/// Offsets in a file are smaller.
pub(super) const FILE_BYTES_END: u64 = UNIT_BYTES << OFFSET_BITS;

const SUFFIX: &str = ".spill";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_place_holds_file_and_offset() {
        for number in [1, 2, (1 << 40) - 1].map(FileNumber) {
            for offset in [0, 64, 6400, (1 << 30) - 64] {
                let place = SpillPlace::from(NonZeroU64::from(SpillPlace::new(number, offset)));
                assert_eq!((place.number(), place.offset()), (number, offset));
                let is_in = |other| SpillPlace::all_in(other).contains(&place.into());
                assert!(is_in(number) && !is_in(FileNumber(number.0 ^ 3)));
            }
        }
        assert_eq!(size_of::<Option<SpillPlace>>(), 8);
    }

    #[test]
    fn spill_names_are_only_its_own() {
        assert!(is_spill_name(&FileNumber(42).file_name()));
        for name in ["42.spill", "0000000000000042.segment", "000000000000004x.spill", "my.spill"] {
            assert!(!is_spill_name(name), "{name}");
        }
    }
}

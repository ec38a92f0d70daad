//! The places of frames in a segment: a sparse index in memory, for reading them back.

use model::Lsn;

use crate::BLOCK_BYTES;

/// The place of a frame, or of the mark of the batch that it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) lsn: Lsn,
    /// In the segment.
    pub(crate) offset: u64,
}

/// The places of some frames of one segment: each begins `STEP_BYTES` or more behind the one
/// before. The log has no gaps in between, so any other frame is found from there.
#[derive(Clone, Debug)]
pub(crate) struct FrameIndex {
    /// The first frame's batch begins behind the header: no entry is needed for that.
    first: Lsn,
    places: Vec<Place>,
}

impl FrameIndex {
    /// The index of a segment that begins with frame `first`.
    pub(crate) fn new(first: Lsn) -> Self {
        Self { first, places: Vec::new() }
    }

    /// Notes a frame there; those before it are known. A known frame does no harm.
    pub(crate) fn note(&mut self, lsn: Lsn, offset: u64) {
        let last = self.places.last().copied().unwrap_or(self.begin());
        if offset >= last.offset + STEP_BYTES {
            assert!(lsn > last.lsn, "frames ascend along a segment");
            self.places.push(Place { lsn, offset });
        }
    }

    /// The last known place at or before a frame.
    pub(crate) fn before(&self, lsn: Lsn) -> Place {
        assert!(lsn >= self.first, "it lies in this segment");
        let behind = self.places.partition_point(|place| place.lsn <= lsn);
        let found = behind.checked_sub(1).and_then(|index| self.places.get(index));
        let place = found.copied().unwrap_or(self.begin());
        assert!(place.lsn <= lsn, "a frame is looked for forwards");
        place
    }

    fn begin(&self) -> Place {
        Place { lsn: self.first, offset: BLOCK_BYTES as u64 }
    }
}

/// At 16 bytes an entry a segment of 32 MiB has 8 KiB of them.
pub(crate) const STEP_BYTES: u64 = 64 * 1024;
const _: () = assert!(STEP_BYTES >= BLOCK_BYTES as u64, "two marks have no place in common");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_index_is_sparse_and_near() {
        let mut index = FrameIndex::new(Lsn(10));
        let offset = |lsn: u64| 4096 + 64 + (lsn - 10) * 1000;
        for lsn in 10..33_000 {
            index.note(Lsn(lsn), offset(lsn));
        }
        assert!(index.places.len() <= 512, "{}", index.places.len());
        assert!(index.places.len() >= 490, "{}", index.places.len());
        for lsn in 10..33_000 {
            let place = index.before(Lsn(lsn));
            assert!(place.lsn <= Lsn(lsn));
            assert!(offset(lsn) - place.offset < STEP_BYTES + 64, "{lsn} is near {place:?}");
        }
        assert_eq!(index.before(Lsn(10)).offset, 4096, "the first batch's mark");
    }

    #[test]
    fn frame_index_ignores_repeated_notes() {
        let mut index = FrameIndex::new(Lsn(1));
        for _ in 0..2 {
            for lsn in 1..1000_u64 {
                index.note(Lsn(lsn), lsn * 4096);
            }
        }
        assert!(index.places.is_sorted_by_key(|place| place.lsn));
        assert_eq!(index.places.len(), 62);
    }
}

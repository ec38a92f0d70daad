//! A part of a segment in memory that may begin and end anywhere in a batch: its frames one by one.
//!
//! [`crate::reader`] takes batches whole or not at all, for it has to find out where the log ends.
//! Here the place of each frame is known, and each frame proves itself: by its checksum, which
//! contains the segment's salt, and by its position.

use std::ops::Range;

use model::Lsn;

use crate::BLOCK_BYTES;
use crate::format::{Epoch, FRAME_HEADER_BYTES, Frame, KIND_CHANGES, Life, Mark, u32_at, u64_at};

/// Bytes of a segment, from the start of a block on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSlice<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) life: Life,
}

/// The bytes at the place of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameLookup {
    /// The frame.
    Frame {
        /// The opening in which it was written.
        epoch: Epoch,
        /// The range of its payload.
        payload: Range<usize>,
    },
    /// The bytes end within it: it, or the mark before it, begins there and has so many.
    Cut {
        /// The offset of its start.
        at: usize,
        /// Its bytes, at least.
        bytes: usize,
    },
    /// Something else.
    Other,
}

impl SegmentSlice<'_> {
    /// The frame `lsn` at `at`, or in the batch that begins with the next block.
    pub(crate) fn frame_at(&self, at: usize, lsn: Lsn) -> FrameLookup {
        if let Some(found) = self.whole_frame(at, lsn) {
            return found;
        }
        let mark_at = at.next_multiple_of(BLOCK_BYTES);
        if self.mark_at(mark_at, lsn) {
            let behind = mark_at + self.life.mark_bytes();
            return self.whole_frame(behind, lsn).unwrap_or_else(|| self.cut_frame(behind, lsn));
        }
        match self.cut_frame(at, lsn) {
            FrameLookup::Other if self.bytes.len() < mark_at + self.life.mark_bytes() => {
                FrameLookup::Cut { at: mark_at, bytes: self.life.mark_bytes() }
            }
            found => found,
        }
    }

    fn whole_frame(&self, at: usize, lsn: Lsn) -> Option<FrameLookup> {
        let frame = Frame::decode(self.bytes.get(at..)?, self.life)?;
        let payload = at + FRAME_HEADER_BYTES..at + frame.bytes();
        let fits = frame.lsn == lsn && frame.kind == KIND_CHANGES;
        fits.then_some(FrameLookup::Frame { epoch: frame.epoch, payload })
    }

    fn mark_at(&self, at: usize, lsn: Lsn) -> bool {
        let bytes = self.bytes.get(at..).unwrap_or_default();
        Mark::decode(bytes, self.life, usize::MAX).is_some_and(|mark| mark.lsn == lsn)
    }

    /// Bytes that look like the frame, which is longer than they are. It may turn out to be no
    /// frame.
    fn cut_frame(&self, at: usize, lsn: Lsn) -> FrameLookup {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if rest.len() < FRAME_HEADER_BYTES {
            return FrameLookup::Cut { at, bytes: FRAME_HEADER_BYTES };
        }
        let payload = u32_at(rest, 0).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = payload.map_or(0, |bytes| bytes.saturating_add(FRAME_HEADER_BYTES));
        if u64_at(rest, 8) == Some(lsn.0) && bytes > rest.len() {
            return FrameLookup::Cut { at, bytes };
        }
        FrameLookup::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{
        DirectoryId, KIND_MARK, MARK_BYTES, Opening, SegmentHeader, SegmentNumber,
    };

    const FIRST: Lsn = Lsn(40);

    fn life(version: u32) -> Life {
        let directory = DirectoryId(0xD1);
        let opening = Opening { epoch: Epoch(3), salt: 0x5A17, directory };
        let header = SegmentHeader::new(SegmentNumber(9), opening);
        Life::of(SegmentNumber(9), &SegmentHeader { version, ..header })
    }

    fn frame(life: Life, lsn: Lsn, payload: &[u8]) -> Vec<u8> {
        let frame = Frame { lsn, epoch: Epoch(3), kind: KIND_CHANGES, payload };
        [&frame.header(life), payload].concat()
    }

    /// A batch of two frames, and the first of the next one.
    fn batches(life: Life) -> Vec<u8> {
        let mut bytes = mark(life, FIRST, 2);
        bytes.extend(frame(life, FIRST, b"first"));
        bytes.extend(frame(life, Lsn(41), &[7; 5000]));
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        bytes.extend(mark(life, Lsn(42), 1));
        bytes.extend(frame(life, Lsn(42), b"third"));
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        bytes
    }

    /// As [`Mark::encode`] writes it, for either version.
    fn mark(life: Life, lsn: Lsn, frames: u32) -> Vec<u8> {
        let mut payload = [0; MARK_BYTES - FRAME_HEADER_BYTES];
        payload[..8].copy_from_slice(&life.number.0.to_le_bytes());
        payload[8..12].copy_from_slice(&(2 * BLOCK_BYTES as u32).to_le_bytes());
        payload[12..16].copy_from_slice(&frames.to_le_bytes());
        payload[32..].copy_from_slice(&0x5A17_u64.to_le_bytes());
        let payload = &payload[..life.mark_bytes() - FRAME_HEADER_BYTES];
        let frame = Frame { lsn, epoch: Epoch(3), kind: KIND_MARK, payload };
        [&frame.header(life), payload].concat()
    }

    fn payloads(slice: SegmentSlice<'_>) -> Vec<Vec<u8>> {
        let mut at = 0;
        let mut payloads = Vec::new();
        for lsn in (FIRST.0..).map(Lsn) {
            let FrameLookup::Frame { payload, .. } = slice.frame_at(at, lsn) else { break };
            at = payload.end;
            payloads.push(slice.bytes[payload].to_vec());
        }
        payloads
    }

    #[test]
    fn frames_continue_over_marks_and_padding() {
        for version in [1, 2] {
            let life = life(version);
            let bytes = batches(life);
            let found = payloads(SegmentSlice { bytes: &bytes, life });
            assert_eq!(found, [b"first".to_vec(), vec![7; 5000], b"third".to_vec()]);
        }
    }

    #[test]
    fn flipped_bit_is_never_a_frame() {
        let life = life(2);
        let bytes = batches(life);
        let whole = payloads(SegmentSlice { bytes: &bytes, life });
        for bit in 0..bytes.len() * 8 {
            let mut rotten = bytes.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            let found = payloads(SegmentSlice { bytes: &rotten, life });
            assert!(whole.starts_with(&found), "bit {bit}");
        }
    }

    #[test]
    fn cut_frame_says_where_to_read() {
        let life = life(2);
        let bytes = batches(life);
        for cut in 0..bytes.len() {
            let slice = SegmentSlice { bytes: &bytes[..cut], life };
            let (mut at, mut lsn) = (0, FIRST);
            let cut_off = loop {
                match slice.frame_at(at, lsn) {
                    FrameLookup::Frame { payload, .. } => (at, lsn) = (payload.end, lsn.next()),
                    other => break other,
                }
            };
            if lsn > Lsn(42) {
                continue;
            }
            let FrameLookup::Cut { at: from, bytes: more } = cut_off else { panic!("{cut_off:?}") };
            assert!(from >= at && from + more > cut, "cut at {cut}: {from} and {more}");
            let start = from / BLOCK_BYTES * BLOCK_BYTES;
            let further = SegmentSlice { bytes: &bytes[start..], life };
            assert!(
                matches!(further.frame_at(from - start, lsn), FrameLookup::Frame { .. }),
                "{cut}"
            );
        }
    }
}

//! The options of a journal.

use model::{StorePolicy, limits};

use crate::BLOCK_BYTES;
use crate::format::MARK_BYTES;
use crate::segments::RESERVED_SPARES;

/// Segments that a log takes at least: with messages, under compaction, and the next one.
const IN_USE_MIN: usize = 4;

/// The fewest segments that a log can be held to: these, and the reserves for settling.
pub const SEGMENTS_MIN: usize = IN_USE_MIN + RESERVED_SPARES;

/// Sizes and policy of a journal. They may differ from one opening to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// The meaning of "persistent"; only the period matters here.
    pub policy: StorePolicy,
    /// Bytes of a full segment, its header block included; a multiple of [`BLOCK_BYTES`].
    pub segment_bytes: u64,
    /// Bytes by which a segment is filled with zeros ahead of the writing, and the first bytes of
    /// a new one; a multiple of [`BLOCK_BYTES`].
    pub extent_bytes: u64,
    /// Bytes that a spare segment offers at least: the room in which settling goes on when the
    /// device is full; up to half a segment in a longer log. A multiple of [`BLOCK_BYTES`].
    pub reserve_bytes: u64,
    /// The largest payload that one frame may have.
    pub frame_payload_bytes_max: usize,
    /// A batch is closed once it has as many bytes, unless its only frame is larger.
    pub batch_bytes: usize,
    /// Batches that may be written at once.
    pub writes_in_flight_max: usize,
    /// Bytes of frames that may wait for earlier writes, beside a chain and the frame that exceeds
    /// them; beyond, the journal stalls. A fifth of it is left to frames that add nothing.
    pub waiting_bytes_max: usize,
    /// Bytes that segments and snapshots may take together; beyond, it is as if the device was
    /// full. At least [`JournalOptions::disk_bytes_min`]; `None`: as many as the device has.
    pub disk_bytes_max: Option<u64>,
    /// Segments that there may be, spare ones included; beyond, it is as if the device was full:
    /// each takes open files as long as it is there. At least [`SEGMENTS_MIN`]; `None`: as many as
    /// come to be.
    pub segments_max: Option<usize>,
    /// Bytes that bodies may take beside these which left memory without being in the log: see
    /// [`crate::Spill`]. Zero: they stay in memory.
    pub spill_bytes_max: u64,
}

impl JournalOptions {
    /// The defaults for a store of this policy.
    #[must_use]
    pub fn new(policy: StorePolicy) -> Self {
        Self {
            policy,
            segment_bytes: 16 * 1024 * 1024,
            extent_bytes: 4 * 1024 * 1024,
            reserve_bytes: 1024 * 1024,
            frame_payload_bytes_max: limits::MESSAGE_BYTES_DEFAULT + FRAME_OVERHEAD_BYTES,
            batch_bytes: 1024 * 1024,
            writes_in_flight_max: 2,
            waiting_bytes_max: WAITING_BYTES_MAX,
            disk_bytes_max: None,
            segments_max: None,
            spill_bytes_max: 0,
        }
    }

    /// The options made fit for bodies of up to `bytes` bytes: larger ones need larger segments.
    #[must_use]
    pub fn with_message_bytes_max(mut self, bytes: usize) -> Self {
        self.frame_payload_bytes_max = bytes.max(MANY_SMALL_RECORDS_BYTES) + FRAME_OVERHEAD_BYTES;
        let needed = self.largest_batch_bytes() * 2 + BLOCK_BYTES as u64;
        self.segment_bytes = self.segment_bytes.max(needed);
        self
    }

    /// The options with segments of about so many bytes: rounded to whole blocks, and as large as
    /// the largest message needs. Small ones roll, recycle and compact often.
    #[must_use]
    pub fn with_segment_bytes(mut self, bytes: u64) -> Self {
        let block = BLOCK_BYTES as u64;
        let needed = self.largest_batch_bytes() * 2 + block;
        let bounded = bytes.clamp(needed, SEGMENT_BYTES_MAX.max(needed));
        self.segment_bytes = bounded.next_multiple_of(block);
        self.extent_bytes = self.extent_bytes.min(self.segment_bytes / 4 / block * block);
        self.reserve_bytes = self.reserve_bytes.min(self.segment_bytes);
        self
    }

    /// The options with frames as large as two of them fit into a segment, so that most
    /// transactions are one frame. Beyond some size that only makes all clients wait for more room.
    #[must_use]
    pub fn with_transactions(mut self) -> Self {
        let block = BLOCK_BYTES as u64;
        let half = usize::try_from((self.segment_bytes - block) / 2 / block * block);
        let fits = half.unwrap_or(usize::MAX) - crate::FRAME_HEADER_BYTES - MARK_BYTES;
        let wanted = fits.min(TRANSACTION_FRAME_BYTES_MAX);
        self.frame_payload_bytes_max = self.frame_payload_bytes_max.max(wanted);
        self
    }

    /// The least bytes that a log of these sizes can be held to: segments with messages, one under
    /// compaction, the next one, and the reserves for settling.
    #[must_use]
    pub fn disk_bytes_min(&self) -> u64 {
        self.segment_bytes * IN_USE_MIN as u64 + self.reserve_bytes * RESERVED_SPARES as u64
    }

    /// Bytes that a batch with only the largest frame takes.
    pub(crate) fn largest_batch_bytes(&self) -> u64 {
        let bytes = self.frame_payload_bytes_max + crate::FRAME_HEADER_BYTES;
        let bytes = (bytes + MARK_BYTES).next_multiple_of(BLOCK_BYTES);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Bytes to be ready beyond the written ones: enough for any frame, and for frames that arrive
    /// while the next extent is being filled.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.extent_bytes.max(self.largest_batch_bytes().saturating_mul(2))
    }

    /// Room that there must be before so many bytes are added: for the largest frame, and for
    /// frames that only settle too. Never more than the room made ready ahead.
    pub(crate) fn left_payload_bytes(&self, payload_bytes: usize) -> usize {
        let most = self.frame_payload_bytes_max;
        let settling = (most / 4).min(SETTLING_BYTES);
        most + settling + payload_bytes.min(most - settling)
    }

    /// Bytes that may wait to be written before frames that add have to wait.
    pub(crate) fn adding_bytes_max(&self) -> usize {
        self.waiting_bytes_max / 5 * 4
    }

    /// The largest room that one segment can offer.
    pub(crate) fn room_bytes_max(&self) -> u64 {
        self.segment_bytes - BLOCK_BYTES as u64
    }

    /// # Panics
    /// When the sizes contradict each other: a mistake of the program, not of its user.
    pub(crate) fn assert_valid(&self) {
        let block = BLOCK_BYTES as u64;
        assert!(self.segment_bytes.is_multiple_of(block), "segments are whole blocks");
        assert!(self.extent_bytes.is_multiple_of(block), "extents are whole blocks");
        assert!(self.reserve_bytes.is_multiple_of(block), "reserves are whole blocks");
        assert!(self.reserve_bytes > block, "a reserve has room for a batch");
        assert!(self.reserve_bytes <= self.segment_bytes, "a reserve is part of a segment");
        assert!(self.extent_bytes > 0, "an extent has blocks");
        assert!(
            self.largest_batch_bytes().saturating_mul(2) + block <= self.segment_bytes,
            "two of the largest frames fit into a segment"
        );
        assert!(self.segment_bytes <= u64::from(u32::MAX), "offsets in a batch are 32 bits");
        assert!(self.batch_bytes >= 2 * BLOCK_BYTES, "a batch is more than its mark and padding");
        assert!(self.writes_in_flight_max > 0, "something can be written");
        let least = self.disk_bytes_min();
        assert!(self.disk_bytes_max.is_none_or(|most| most >= least), "the log has to fit");
        assert!(self.segments_max.is_none_or(|most| most >= SEGMENTS_MIN), "the log has to fit");
    }
}

/// At the speed of a plain disk it is a fifth of a second.
const WAITING_BYTES_MAX: usize = 40 * 1024 * 1024;

/// Room left to frames that only settle, if that is less than a quarter of the largest frame.
const SETTLING_BYTES: usize = 8 * 1024 * 1024;

/// Beyond this a segment only takes longer to come free.
const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Frames are made this large for transactions, if segments let them.
const TRANSACTION_FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes that a record adds to a body at most: names, header, counters.
const FRAME_OVERHEAD_BYTES: usize = 1024;

/// A frame of many small records (a kick of [`limits::FRAME_RECORDS_MAX`] messages).
const MANY_SMALL_RECORDS_BYTES: usize = 64 * limits::FRAME_RECORDS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_size_grows_with_segments_bounded() {
        let options = JournalOptions::new(StorePolicy::Always);
        let largest = |bytes| options.clone().with_segment_bytes(bytes).with_transactions();
        let default = largest(options.segment_bytes).frame_payload_bytes_max;
        assert!(default > 8 * 1024 * 1024 - 2 * BLOCK_BYTES, "{default}");
        let large = largest(65 * 1024 * 1024).frame_payload_bytes_max;
        assert_eq!(large, TRANSACTION_FRAME_BYTES_MAX);
    }

    #[test]
    fn options_are_valid_for_any_sizes() {
        for message_bytes in [0, 1, 65_535, limits::MESSAGE_BYTES_MAX] {
            for segment_bytes in [0, 1, 4097, 1 << 20, 1 << 24, u64::MAX] {
                let options = JournalOptions::new(StorePolicy::Always)
                    .with_message_bytes_max(message_bytes)
                    .with_segment_bytes(segment_bytes);
                options.assert_valid();
                let with_transactions = options.clone().with_transactions();
                with_transactions.assert_valid();
                let (less, more) = (&options, &with_transactions);
                assert!(less.frame_payload_bytes_max <= more.frame_payload_bytes_max);
                assert_eq!(less.segment_bytes, more.segment_bytes);
            }
        }
    }
}

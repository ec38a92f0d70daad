//! The frames the log takes now: adding ones, settling ones, or none before a write or a chore
//! completes.

use model::Capacity;

use crate::batch::Batch;
use crate::format::MARK_BYTES;
use crate::segments::RESERVED_SPARES;
use crate::{BLOCK_BYTES, FRAME_HEADER_BYTES, Journal};

impl<F: Clone> Journal<F> {
    /// The capacity of the log now. It changes with the log, so ask before each call of the engine.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let is_ample = self.is_ample();
        let stalled = !is_ample && self.stalled();
        Capacity {
            room_bytes: if is_ample { u64::MAX } else { self.room() },
            settling_bytes: if stalled { 0 } else { self.settle_payload_bytes_max() },
            is_behind: !is_ample && (stalled || self.holds_back(usize::MAX)),
            written: Some(self.durable().written),
        }
    }

    /// True if the log restricts no frame. This is the usual state, and quick to see.
    fn is_ample(&self) -> bool {
        !self.house.device_is_full()
            && !self.is_overtaken()
            && self.house.slots_suffice()
            && !self.is_far_behind()
            && self.fits(self.options.left_payload_bytes(usize::MAX), self.spares_set_aside())
    }

    /// An ample log restricts nothing, by the rules one by one.
    pub(crate) fn check_room(&self) {
        if self.is_ample() {
            assert!(self.takes_largest(), "an ample log takes the largest frame");
            assert!(!self.holds_back(usize::MAX), "an ample log holds nothing back");
        }
    }

    /// True if not even the largest frame that settles something can be appended before a write
    /// or a chore completes. Feed no command meanwhile.
    #[must_use]
    pub fn stalled(&self) -> bool {
        if self.is_ample() {
            return false;
        }
        if self.is_behind_by(self.options.waiting_bytes_max) || self.is_overtaken() {
            return true;
        }
        if self.house.device_is_full() {
            return self.must_compact_first() || !self.fits(self.settle_payload_bytes_max(), 0);
        }
        !self.takes_largest()
    }

    /// Returns true if a frame that adds so many bytes has to wait: too much waits to be written,
    /// or too little room is prepared. Frames that settle need not wait yet: some bytes more are
    /// left for them. On a full device frames that add are refused instead: see [`Journal::room`].
    #[must_use]
    pub fn holds_back(&self, payload_bytes: usize) -> bool {
        let is_short =
            || !self.fits(self.options.left_payload_bytes(payload_bytes), self.spares_set_aside());
        self.is_far_behind() || !self.house.device_is_full() && is_short()
    }

    /// The largest payload that adds something and can be appended now. Less than the options
    /// allow only when the device is full.
    #[must_use]
    pub fn room(&self) -> u64 {
        if self.takes_largest() {
            return u64::MAX;
        }
        let spared =
            self.segments.spares() >= self.spares_set_aside() && !self.house.is_compacting();
        if !spared || !self.house.slots_suffice() {
            return 0;
        }
        let rest = self.segments.active_rest(self.planned_end());
        let next = self.segments.next_spare_rest();
        let usable = if self.segments.spares() > self.spares_set_aside() { next } else { 0 };
        rest.max(usable).saturating_sub(BATCH_HEAD_BYTES)
    }

    /// True if a frame can be appended and `reserve` spares are left alone.
    pub(crate) fn fits(&self, payload_bytes: usize, reserve: usize) -> bool {
        let bytes = padded_batch_bytes(payload_bytes);
        let spares = self.segments.spares();
        (spares >= reserve && self.segments.active_rest(self.planned_end()) >= bytes)
            || (spares > reserve && self.segments.next_spare_rest() >= bytes)
    }

    /// Spares that messages leave alone: those for settling, and in a log of many segments one
    /// more. On a full device the live rest of another segment is copied into it, at any state of
    /// settling.
    pub(crate) fn spares_set_aside(&self) -> usize {
        let long = self.options.segment_bytes * LONG_LOG_SEGMENTS;
        RESERVED_SPARES + usize::from(self.segments.file_bytes() >= long)
    }

    /// The largest frame that only settles: it must go into the reserve.
    pub(crate) fn settle_payload_bytes_max(&self) -> usize {
        let reserve = usize::try_from(self.options.reserve_bytes).unwrap_or(usize::MAX);
        let fits = reserve.saturating_sub(BLOCK_BYTES + MARK_BYTES + FRAME_HEADER_BYTES);
        self.options.frame_payload_bytes_max.min(fits)
    }

    /// True if so much waits to be written that frames that add have to wait. Frames that wait
    /// since a chain came, and those before it, do not count: they hold up no other.
    pub(crate) fn is_far_behind(&self) -> bool {
        self.is_behind_by(self.options.adding_bytes_max())
    }

    fn takes_largest(&self) -> bool {
        self.house.slots_suffice()
            && self.fits(self.options.frame_payload_bytes_max, self.spares_set_aside())
    }

    fn is_behind_by(&self, bytes: usize) -> bool {
        let counted = self.waiting().filter(|batch| batch.first > self.chained());
        counted.map(Batch::len).sum::<usize>() > bytes
    }
}

/// Bytes of a batch with only one frame beside its payload, without padding.
const BATCH_HEAD_BYTES: u64 = (MARK_BYTES + FRAME_HEADER_BYTES) as u64;

/// A log as long as so many segments can do without a part of one more.
const LONG_LOG_SEGMENTS: u64 = 7;

/// Bytes in the log of a batch with only one frame.
pub(crate) fn padded_batch_bytes(payload_bytes: usize) -> u64 {
    (BATCH_HEAD_BYTES + payload_bytes as u64).next_multiple_of(BLOCK_BYTES as u64)
}

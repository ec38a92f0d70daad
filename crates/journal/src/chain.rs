//! Room for a chain of frames, which may be more than several segments hold.
//!
//! The journal makes all of it ready before the first frame is appended, so a chain never stops
//! halfway; meanwhile others go on. They wait only if they use the room made for the chain again
//! and again. Frames that wait to be written because of a chain hold up no others. They came at
//! once and do not become more, for the next chain has to wait until they are written.

use model::ChainRoom;

use crate::chore::Work;
use crate::format::MARK_BYTES;

use crate::room::padded_batch_bytes;
use crate::{BLOCK_BYTES, FRAME_HEADER_BYTES, Journal};

/// The readiness for a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainReadiness {
    /// Now.
    Ready,
    /// Once more room is made and the frames before are written.
    Awaited,
    /// Not before the device has room.
    NoRoom,
}

impl<F: Clone> Journal<F> {
    /// Has room for a chain made ready, for which [`Journal::readiness`] is to be asked; `None`:
    /// none is wanted any more.
    pub fn want_room(&mut self, wanted: Option<ChainRoom>) {
        if let Some(wanted) = &wanted {
            assert!(wanted.frames > 0, "a chain has frames");
        }
        self.house.want_room(wanted);
    }

    /// The readiness for a chain that needs this room.
    #[must_use]
    pub fn readiness(&self, wanted: &ChainRoom) -> ChainReadiness {
        let is_behind = self.durable().written < self.chained() || self.is_far_behind();
        if is_behind || self.has_failed() {
            return ChainReadiness::Awaited;
        }
        if self.has_room_for(wanted) {
            return ChainReadiness::Ready;
        }
        if self.house.device_is_full() { ChainReadiness::NoRoom } else { ChainReadiness::Awaited }
    }

    /// The frames appended last were a chain.
    pub fn end_chain(&mut self) {
        self.note_chain();
        self.house.end_chain();
        assert!(!self.is_overtaken(), "others go on behind a chain");
    }

    /// Others have used up too much room while a chain waits. On a full device there is no room
    /// that they could use up.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.house.overtaken() > OVERTAKEN_SEGMENTS_MAX && !self.house.device_is_full()
    }

    /// The next piece of the room that a chain waits for.
    pub(crate) fn chain_work(&mut self) -> Option<Work<F>> {
        let wanted = self.house.wanted()?;
        if self.has_room_for(&wanted) {
            return None;
        }
        let active = self.segments.active();
        self.extend_work(active.life.number, &active.file, active.initialised)
            .or_else(|| {
                let bytes = self.options.segment_bytes;
                let mut usable = self.usable_spares();
                let spare = usable.find(|spare| spare.initialised < bytes)?;
                self.extend_work(spare.life.number, &spare.file, spare.initialised)
            })
            .or_else(|| {
                let old = self.segments.take_retired(self.reach.number());
                Some(self.prepare_work(old, self.options.segment_bytes))
            })
    }

    /// True if there is room for all frames, wherever they are cut, and for the largest frame of
    /// another client behind them.
    fn has_room_for(&self, wanted: &ChainRoom) -> bool {
        let largest = padded_batch_bytes(wanted.frame_bytes);
        let needed = wanted.bytes + wanted.frames * BATCH_OVERHEAD_BYTES;
        // A frame that finds no room any more leaves less than its own bytes unused.
        let active = self.segments.active_rest(self.planned_end()).saturating_sub(largest);
        let rests: Vec<_> = self.usable_spares().map(|spare| spare.rest()).collect();
        let Some((behind, rests)) = rests.split_last() else { return false };
        let spares: u64 = rests.iter().map(|rest| rest.saturating_sub(largest)).sum();
        active + spares >= needed
            && *behind >= self.options.largest_batch_bytes()
            && self.house.slots_have(wanted.snapshot_bytes)
    }

    fn usable_spares(&self) -> impl Iterator<Item = &crate::segments::Spare<F>> {
        let usable = self.segments.spares().saturating_sub(self.spares_set_aside());
        self.segments.iter_spares().take(usable)
    }
}

/// Bytes of a batch of one frame beside the frame's payload, at most.
const BATCH_OVERHEAD_BYTES: u64 = (MARK_BYTES + FRAME_HEADER_BYTES + BLOCK_BYTES) as u64;

/// Segments that others may begin while a chain waits for room; from then on they wait too. Twice
/// the need of the largest chain, of the usual size.
const OVERTAKEN_SEGMENTS_MAX: u32 = 32;

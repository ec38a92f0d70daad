//! Changing a list by places: replacing, inserting, removing, keeping a part.
//!
//! A new element may take a place that another message had: its record says so, behind the one by
//! which that has gone or moved. A message that is there never gets such a place: a snapshot shows
//! each message as it is at a moment of its own, and might show two there.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{End, MessageId, Persistence, Refusal, limits};

use crate::ids::QueueSlot;
use crate::keyspace::lists::places::Search;
use crate::log::{DELETED_BYTES_MAX, FrameWriter};
use crate::store::MessageStore;

/// A new element and where it is to be.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    /// Beside the first of these.
    pub(crate) beside: Search,
    /// On which side of it: towards this end.
    pub(crate) towards: End,
    pub(crate) element: Arc<[u8]>,
    pub(crate) persistence: Persistence,
}

impl MessageStore {
    pub(crate) fn outermost(&self, slot: QueueSlot, end: End, count: u64) -> Vec<MessageId> {
        self.elements(slot, end).take(count as usize).collect()
    }

    /// A place between two that no message has, living or yet to come.
    pub(crate) fn free_place(&self, before: i64, behind: i64) -> Option<i64> {
        let between = (before + 1..behind).take(PROBES_MAX).filter(|place| *place != 0);
        let is_free = |place: &i64| {
            let place = *place as u64;
            self.messages.get(place).is_none() && self.reordered.get(place).is_none()
        };
        between.into_iter().find(is_free)
    }

    /// Those of one priority on one side of a gap, from the gap outwards, and at which end: the
    /// fewer, as far as one frame takes them.
    pub(crate) fn smaller_side(
        &mut self,
        slot: QueueSlot,
        before: (u32, i64),
        behind: (u32, i64),
    ) -> Result<(End, Vec<MessageId>), Refusal> {
        let ready = self.queues.at(slot).delivery.dispatch.ready();
        let side = |first, end: End| {
            let from = end.opposite();
            core::iter::successors(Some(first), move |at| ready.next_from(from, *at))
                .take_while(|(priority, _)| *priority == before.0)
        };
        let (mut heads, mut tails) = (side(before, End::Head), side(behind, End::Tail));
        let mut count = 0;
        let end = loop {
            match (heads.next(), tails.next()) {
                (None, _) => break End::Head,
                (_, None) => break End::Tail,
                _ => count += 1,
            }
            if count >= limits::FRAME_RECORDS_MAX {
                return Err(Refusal::ListTooLong);
            }
        };
        let first = if end == End::Head { before } else { behind };
        let moving = side(first, end).map(|(_, order)| self.message_of(order)).collect();
        self.took_steps(2 * count);
        Ok((end, moving))
    }
}

impl FrameWriter {
    /// How many elements one command may delete now, at most so many. A batch has seen to it that
    /// there is room for all that it deletes.
    pub(crate) fn deletions_max(&self, max: usize) -> usize {
        if self.is_whole() {
            return limits::TRANSACTION_RECORDS_MAX;
        }
        max.min(self.settling_bytes_max() / DELETED_BYTES_MAX)
    }
}

/// Places that are tried before neighbours move.
const PROBES_MAX: usize = 64;

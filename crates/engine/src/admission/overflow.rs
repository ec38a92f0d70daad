//! Messages beyond the bounds of a queue go, if its rules say so: after they were stored, in the
//! same frame if that has room, and before any consumer is served.
//!
//! Messages that were there before the bounds became so narrow go with the next send, not before.
//!
//! The queue sheds from the least urgent priority that is ready, and there the older of the first
//! and the last: a queue loses from its head, a list that grows at its head from its tail.

use model::{DeadLetters, MessageId, QueueBounds, QueuePolicy, WhenFull};

use crate::admission::Admission;
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::message::Message;
use crate::store::queue::Queue;

impl Queue {
    pub(crate) fn sheds(&self) -> bool {
        let bounds = &self.policy.bounds;
        let sheds = matches!(bounds.when_full, WhenFull::DropOldest | WhenFull::DeadLetter);
        bounds.is_bounded() && sheds && !self.is_leaving()
    }

    /// True if a message without a place becomes a dead letter.
    pub(crate) fn parks(&self) -> bool {
        let QueuePolicy { bounds, dead_letters, .. } = &self.policy;
        bounds.when_full == WhenFull::DeadLetter && *dead_letters != DeadLetters::Drop
    }

    pub(crate) fn is_beyond_bounds(&self) -> bool {
        self.held().exceeds(&self.policy.bounds).is_some()
    }

    /// The messages that are there now do not go because of the present bounds.
    pub(crate) fn spare_what_is_there(&mut self) {
        self.admission.spares = self.is_beyond_bounds();
    }
}

impl MessageStore {
    /// True if some queues may not hold any number of messages.
    #[inline]
    pub(crate) const fn is_bounded(&self) -> bool {
        self.admission.is_bounded
    }

    /// A queue may have these bounds from now on.
    pub(crate) fn take_bounds(&mut self, bounds: &QueueBounds) {
        self.admission.is_bounded |= bounds.is_bounded();
    }
}

impl Admission {
    /// A queue holds more than it may, since there is no room for dead letters.
    pub(crate) fn stays_overfull(&mut self, slot: QueueSlot, store: &MessageStore) {
        debug_assert!(store.is_bounded(), "a queue without bounds is never too full");
        self.overfull.insert(slot);
    }

    /// A step may have made too many dead letters.
    #[inline]
    pub(crate) fn note_dead_letters(&mut self, too_many: bool) {
        self.has_to_evict |= too_many;
    }

    /// True if a step has made too many dead letters, and nothing asked before.
    #[inline]
    pub(crate) fn take_has_to_evict(&mut self) -> bool {
        core::mem::take(&mut self.has_to_evict)
    }

    /// There is room again: messages without a place that could not become dead letters do so now.
    #[inline]
    pub(crate) fn shed_what_stayed(&mut self, store: &mut MessageStore) {
        if !self.overfull.is_empty() {
            self.shed_overfull(store);
        }
    }

    fn shed_overfull(&mut self, store: &mut MessageStore) {
        for slot in core::mem::take(&mut self.overfull) {
            if store.queues.get(slot).is_some() {
                store.resume_later(slot);
            }
        }
    }
}

impl FrameWriter {
    /// True if it cannot become a dead letter: that takes more room than it frees. The sender is
    /// told that there is no room.
    pub(crate) fn stays_for_now(&self, queue: &Queue, message: &Message) -> bool {
        let is_to_move = queue.parks() && message.is_journalled() && message.dead().is_none();
        is_to_move && self.is_scarce()
    }
}

impl MessageStore {
    pub(crate) fn least_needed(&self, queue: &Queue) -> Option<MessageId> {
        let (priority, last) = queue.delivery.dispatch.ready().last()?;
        let (_, first) = queue.delivery.dispatch.ready().first_from(priority, i64::MIN)?;
        let (first, last) = (self.message_of(first), self.message_of(last));
        let bytes_max = queue.policy.bounds.bytes_max.unwrap_or(u64::MAX);
        // No eviction makes a place for a message larger than the bounds, such as a subscription's
        // copy.
        let is_too_large = self.message(last).body_bytes() > bytes_max;
        Some(if is_too_large { last } else { first.min(last) })
    }
}

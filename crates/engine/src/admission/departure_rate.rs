//! How fast messages leave a queue, and whether more than that are in it.
//!
//! The rate is a count: the messages that left within the last target age. As long as no more
//! messages than that are in the queue, each waits no longer, if the rate stays. From nothing it
//! grows as fast as consumers can take: as many messages may be there next as have left.

use model::{MessageId, Nanos};

use crate::admission::{Drain, SLICES};
use crate::ids::QueueSlot;
use crate::store::MessageStore;
use crate::store::queue::{Queue, Role};

impl Drain {
    fn advance(&mut self, now: Nanos, age: Nanos) {
        let slice = slice_of(now, age);
        let passed = slice.saturating_sub(self.slice).min(SLICES as u64);
        for number in (slice + 1 - passed)..=slice {
            *self.count_of(number) = 0;
        }
        self.slice = self.slice.max(slice);
    }

    fn add_one(&mut self, now: Nanos, age: Nanos) {
        self.advance(now, age);
        *self.count_of(self.slice) += 1;
    }

    /// How many left within the target age before now.
    fn count(mut self, now: Nanos, age: Nanos) -> u64 {
        self.advance(now, age);
        self.counts.iter().sum()
    }

    fn count_of(&mut self, slice: u64) -> &mut u64 {
        let index = (slice % SLICES as u64) as usize;
        self.counts.get_mut(index).expect("invariant: the index is below the number of slices")
    }
}

impl MessageStore {
    /// A message is in a queue no more.
    pub(crate) fn drained_one(&mut self, slot: QueueSlot) {
        if !self.is_bounded() {
            return;
        }
        let now = self.latest;
        let queue = self.queues.at_mut(slot);
        if let Some(age) = queue.policy.bounds.target_age {
            queue.admission.drain.add_one(now, age);
        }
        queue.admission.catches_up = queue.admission.catches_up && queue.is_beyond_bounds();
        self.made_place(slot);
    }

    /// Messages of a queue may be younger or fewer now, or the consumer for which they would wait
    /// is gone.
    #[inline]
    pub(crate) fn may_have_caught_up(&mut self, slot: QueueSlot) {
        let is_timed = |queue: &Queue| queue.policy.bounds.target_age.is_some();
        if self.is_bounded() && self.queues.get(slot).is_some_and(is_timed) {
            self.made_place(slot);
        }
    }

    /// A message is settled in a transaction, and waits only for the commit.
    pub(crate) fn began_settling(&mut self, slot: QueueSlot) {
        let queue = self.queues.at_mut(slot);
        queue.began_settling();
        if queue.policy.bounds.target_age.is_some() {
            self.made_place(slot);
        }
    }

    /// The transaction ends, one way or the other.
    pub(crate) fn ended_settling(&mut self, slot: QueueSlot) {
        self.queues.at_mut(slot).ended_settling();
    }

    /// True if a message that came now would wait longer than it should. Without consumers the wait
    /// is unknown: then it is true only if the oldest message has waited longer. It is never true
    /// for a subscription without a subscriber.
    pub(crate) fn is_behind(&self, queue: &Queue) -> bool {
        let Some(age) = queue.policy.bounds.target_age else { return false };
        if queue.delivery.consumers.is_empty() && matches!(queue.role, Role::Subscription { .. }) {
            return false;
        }
        if self.oldest_ready(queue).is_some_and(|since| self.latest.since(since) > age) {
            return true;
        }
        let drained = queue.admission.drain.count(self.latest, age);
        let is_consumed = drained > 0 || !queue.delivery.consumers.is_empty();
        // A consumer that commits many at once needs all of them before any of them can leave.
        let there = queue.counts().ready() + queue.counts().leased() - queue.settling();
        is_consumed && there >= drained.max(THERE_ALWAYS)
    }

    /// Since when the older of the two outermost is to be had.
    fn oldest_ready(&self, queue: &Queue) -> Option<Nanos> {
        let ends =
            [queue.delivery.dispatch.ready().first()?, queue.delivery.dispatch.ready().last()?];
        let oldest: MessageId = ends.map(|(_, order)| self.message_of(order)).into_iter().min()?;
        Some(self.message(oldest).available_since())
    }
}

fn slice_of(now: Nanos, age: Nanos) -> u64 {
    now.0 / (age.0 / SLICES as u64).max(1)
}

/// Messages that may be there however slowly they leave: enough to begin with.
const THERE_ALWAYS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_count_within_age() {
        let age = Nanos::from_secs(8);
        let at = Nanos::from_millis;
        let mut drain = Drain::default();
        for _ in 0..3 {
            drain.add_one(at(100_500), age);
        }
        drain.add_one(at(104_000), age);
        assert_eq!(drain.count(at(104_000), age), 4);
        assert_eq!(drain.count(at(107_999), age), 4);
        assert_eq!(drain.count(at(108_000), age), 1);
        assert_eq!(drain.count(at(111_999), age), 1);
        assert_eq!(drain.count(at(112_000), age), 0);
        assert_eq!(drain.count(at(900_000), age), 0);
        drain.add_one(at(900_000), age);
        assert_eq!(drain.count(at(900_000), age), 1);
    }
}

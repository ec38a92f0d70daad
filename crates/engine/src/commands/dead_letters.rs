//! Messages that expire or fail too often, and messages that are purged.

use model::{DeadReason, MessageId, Nanos, QueueName, Refusal, Reply, limits};

use crate::Effects;
use crate::delivery::dead_letters::SCARCE_RETRY;
use crate::delivery::paging::{PageQuery, PageRange};
use crate::engine::Engine;
use crate::ids::QueueSlot;
use crate::outcome::Outcome;
use crate::store::queue::Role;

impl Engine {
    /// Handles a message that is in no index and dead for this reason: it becomes a dead letter or
    /// goes. If it is one already, it is ready again. Returns the queue that has a ready message
    /// by it.
    ///
    /// On a full device it stays in its queue, hidden for a while and unchanged as far as the log
    /// knows: as a dead letter it would take more room than it does. When it comes back it is over
    /// again, or delivered and rejected again.
    pub(crate) fn dead_letter(
        &mut self,
        id: MessageId,
        reason: DeadReason,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let message = self.store.message(id);
        let slot = message.queue();
        let queue = self.store.queues.at(slot);
        if message.dead().is_some() {
            return self.return_ready(id, effects);
        }
        if queue.is_memory_only()
            || !self.log.becomes_dead_letter(message, reason, queue.policy.dead_letters)
        {
            self.store.count_dropped();
            self.finish(id, effects);
            return None;
        }
        if message.is_journalled() && self.log.is_scarce() {
            self.keyspace.hide(id, self.store.latest + SCARCE_RETRY, &self.bodies, &mut self.store);
            return None;
        }
        let (from, of, at) = (queue.name.clone(), queue.subscription(), self.store.latest);
        let to = self.directory.dead_letter_queue(&mut self.store);
        if self.directory.is_too_large_for(to, id, &self.store) {
            self.store.count_evicted(id);
            self.finish(id, effects);
            self.directory.remove_if_idle(to, &mut self.sessions, &mut self.store);
            return None;
        }
        let order = self.keyspace.place_among_dead(to, id, &mut self.store);
        self.store.amend(id, |message| message.die(reason, from, of, at));
        self.relocate(id, to, order, effects);
        self.store.count_parked();
        self.admission.note_dead_letters(self.directory.has_too_many_dead_letters(to, &self.store));
        Some(to)
    }

    /// A step has made too many dead letters: the oldest go, before any consumer is served.
    pub(crate) fn evict_if_needed(&mut self, effects: &mut Effects) {
        if self.admission.take_has_to_evict()
            && let Some(slot) = self.store.queues.find(self.directory.dead_letters_name().as_str())
        {
            self.evict_dead_letters(slot, effects);
        }
    }

    /// Deletes dead letters, the oldest first, until their queue is within its bounds again. A
    /// timer goes on where the log takes no more. Held messages stay, and so do messages that
    /// clients sent there.
    pub(crate) fn evict_dead_letters(&mut self, slot: QueueSlot, effects: &mut Effects) {
        for _ in 0..EVICTED_PER_STEP_MAX {
            if !self.directory.has_too_many_dead_letters(slot, &self.store) {
                return;
            }
            // A batch has room only for the changes it was known to make.
            if self.log.is_whole() || !self.log.takes_change() {
                break;
            }
            let Some(id) = self.store.oldest_dead_letter(slot) else { return };
            self.store.count_evicted(id);
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            self.finish(id, effects);
        }
        if self.directory.has_too_many_dead_letters(slot, &self.store) {
            self.store.resume_at(slot, Nanos::ZERO);
        }
    }

    /// The time of the queue's first message is over.
    pub(crate) fn expire_next(
        &mut self,
        slot: QueueSlot,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let first = self.store.queues.at(slot).first_expiring();
        let (at, id) = first.expect("invariant: the timer is set while messages expire");
        assert!(at <= self.store.latest, "a message expires when its time is over");
        let is_expired = self.store.is_expired_member(id);
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        if is_expired {
            self.finish(id, effects);
            return None;
        }
        self.dead_letter(id, DeadReason::Expired, effects)
    }
}

impl Engine {
    /// Deletes the messages that are found. With an expired message the queue may lose the one that
    /// held it up.
    pub(crate) fn purge(&mut self, sought: &PageQuery<'_>, effects: &mut Effects) -> Outcome {
        assert!(!sought.held, "what somebody holds is not purged");
        let page_range = self.bodies.seek(sought, &mut self.store);
        let count = self.delete_found(&page_range, effects);
        let reply = page_range.reply(count);
        self.log.outcome_of(reply).waking(sought.queue)
    }

    pub(crate) fn delete_queue(&mut self, name: &QueueName, effects: &mut Effects) -> Outcome {
        let Some(slot) = self.store.queues.find(name.as_str()) else { return self.log.not_found() };
        let queue = self.store.queues.at(slot);
        let in_use = !queue.delivery.consumers.is_empty() || queue.counts().leased() > 0;
        if in_use || queue.role != Role::Named {
            return Outcome::refused(Refusal::QueueInUse);
        }
        let (selector, max) = (None, limits::FRAME_RECORDS_MAX);
        let sought =
            PageQuery { queue: slot, state: None, held: false, selector, after: None, max };
        let page_range = self.bodies.seek(&sought, &mut self.store);
        let count = self.delete_found(&page_range, effects);
        let reply = match page_range.reply(count) {
            Reply::Count(_) => Reply::Done,
            Reply::CountUntil { count, .. } => Reply::CountSoFar(count),
            other => other,
        };
        self.log.outcome_of(reply)
    }

    /// Deletes these as far as the frame takes it: so many.
    fn delete_found(&mut self, page_range: &PageRange, effects: &mut Effects) -> usize {
        let mut count = 0;
        for (_, id) in page_range.found() {
            if !self.log.takes_change() {
                break;
            }
            self.keyspace.unindex(*id, &mut self.sessions, &mut self.store);
            self.finish(*id, effects);
            count += 1;
        }
        count
    }
}

/// Dead letters that are deleted in one step; the rest in the next, and others are served in
/// between.
const EVICTED_PER_STEP_MAX: usize = 1_024;

//! Dead letters: messages whose time is over, or that nobody can deal with.
//!
//! They move to a queue of their own and say why and from where. They are deleted instead where the
//! rules of their queue say so, which by default they do of what memory alone keeps, and where a
//! message belongs to somebody who is gone with it (a temporary queue, a subscription that is not
//! durable). A dead letter stays where it is: it does not expire, and however often it fails, it is
//! only ready again.
//!
//! Dead letters hold nobody up: their queue takes each of them, and the oldest are deleted beyond
//! its bounds, or beyond those that the engine has for it.

use alloc::boxed::Box;

use model::{DeadLetter, DeadReason, MessageId, Nanos, QueueBounds, StorePolicy, limits};

use crate::bounds::Amount;
use crate::engine::{Context, Directory, Engine, MessageStore};
use crate::message::{Dead, Message};
use crate::queue::{Queue, QueueSlot};
use crate::{DeadLetters, DeadLettersMax, Effects};

impl Engine {
    /// What becomes of a message that is in no index and dead for this reason. Says which queue
    /// has a ready message by it.
    ///
    /// On a full device it stays in its queue, hidden for a while and unchanged as far as the log
    /// knows: as a dead letter it would take more room than it does. When it comes back it is over
    /// again, or delivered and rejected again.
    pub(crate) fn park(
        &mut self,
        id: MessageId,
        reason: DeadReason,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let message = self.store.living(id);
        let slot = message.queue;
        let queue = self.store.queues.at(slot);
        if message.dead().is_some() {
            return self.return_ready(id, effects);
        }
        if queue.is_memory_only()
            || !self.context.is_parked(message, reason, queue.policy.dead_letters)
        {
            self.store.totals.dead_letters.dropped_total += 1;
            self.finish(id, effects);
            return None;
        }
        if message.is_journalled() && self.log.is_scarce() {
            self.hide(id, self.store.latest + SCARCE_RETRY);
            return None;
        }
        let (from, attempts) = (queue.name.clone(), message.counters().failed);
        let subscription = queue.subscription();
        let dead = Dead { reason, from, subscription, at: self.store.latest, attempts };
        let to = self.directory.dead_letter_queue(&mut self.store);
        if self.directory.is_too_large_for(to, id, &self.store) {
            self.store.count_evicted(id);
            self.finish(id, effects);
            self.remove_if_idle(to);
            return None;
        }
        let order = self.place_among_dead(to, id);
        self.store.amend(id, |message| {
            message.set_expiry(None);
            let history = message.history_mut();
            history.failed = 0;
            history.dead = Some(Box::new(dead));
        });
        self.relocate(id, to, order, effects);
        self.store.totals.dead_letters.parked_total += 1;
        self.admission.has_to_evict |= self.directory.has_too_many_dead_letters(to, &self.store);
        Some(to)
    }

    /// What a step has made dead letters is too much: the oldest go, before anybody is served.
    pub(crate) fn evict_if_needed(&mut self, effects: &mut Effects) {
        if core::mem::take(&mut self.admission.has_to_evict)
            && let Some(slot) = self.store.queues.find(self.directory.dead_letter_queue.as_str())
        {
            self.evict_dead_letters(slot, effects);
        }
    }

    /// Deletes dead letters, the oldest first, until their queue is within its bounds again; by
    /// time where the log takes no more. What is held stays, and so does what clients sent there.
    pub(crate) fn evict_dead_letters(&mut self, slot: QueueSlot, effects: &mut Effects) {
        for _ in 0..EVICTED_PER_STEP_MAX {
            if !self.directory.has_too_many_dead_letters(slot, &self.store) {
                return;
            }
            // A batch has room for what it was known to do.
            if self.log.is_whole() || !self.log.takes_change() {
                break;
            }
            let Some(id) = self.store.oldest_dead_letter(slot) else { return };
            self.store.count_evicted(id);
            self.leave(id);
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
        let first = self.store.queues.at(slot).index.expiring.first().copied();
        let (at, id) = first.expect("invariant: the timer is set while messages expire");
        assert!(at <= self.store.latest, "a message expires when its time is over");
        let doomed = self.store.is_doomed(id);
        self.leave(id);
        if doomed {
            self.finish(id, effects);
            return None;
        }
        self.park(id, DeadReason::Expired, effects)
    }

    /// A dead letter keeps its place; but where a list that is over is still being deleted, that
    /// may be among what is, as far as the log knows.
    fn place_among_dead(&mut self, to: QueueSlot, id: MessageId) -> i64 {
        self.end_list_if_over(to);
        let is_being_deleted = self.store.queues.at(to).index.lifetime.over.is_some();
        if is_being_deleted { self.store.last_place() } else { self.store.living(id).order(id) }
    }
}

impl Context {
    /// Whether such a message becomes a dead letter. A store that keeps nothing has messages that
    /// memory alone keeps and no others; and what is to be a dead letter for want of a place is so
    /// by a rule of its queue.
    fn is_parked(&self, message: &Message, reason: DeadReason, rule: DeadLetters) -> bool {
        match rule {
            DeadLetters::ParkPersistent => {
                let is_kept = message.is_journalled() || self.policy == StorePolicy::Memory;
                is_kept || reason == DeadReason::Overflow
            }
            DeadLetters::Park => true,
            DeadLetters::Drop => false,
        }
    }
}

impl Directory {
    /// Whether a queue is that of dead letters, and holds more than it may.
    fn has_too_many_dead_letters(&self, slot: QueueSlot, store: &MessageStore) -> bool {
        let queue = store.queues.get(slot).filter(|queue| queue.name == self.dead_letter_queue);
        queue.is_some_and(|queue| queue.held().exceeds(&self.dead_letter_bounds(queue)).is_some())
    }

    /// The queue of dead letters holds no more of them than it may, but for what is held, or about
    /// to go.
    ///
    /// # Panics
    /// When it does.
    pub(crate) fn check_dead_letters(&self, queue: &Queue, store: &MessageStore) {
        let is_theirs = queue.name == self.dead_letter_queue;
        let is_theirs = is_theirs && queue.delivery.resumes.is_none() && !queue.admission.spares;
        let is_dead = |order: i64| store.living(store.message_of(order)).dead().is_some();
        if is_theirs && queue.delivery.dispatch.ready().iter().all(|(_, order)| is_dead(order)) {
            let ready =
                || queue.delivery.dispatch.ready().iter().map(|(_, order)| store.message_of(order));
            let bytes = || ready().map(|id| store.living(id).body_bytes()).sum();
            let held = Amount { messages: queue.index.counts.ready, bytes: bytes() };
            let bound = held.exceeds(&self.dead_letter_bounds(queue));
            assert_eq!(bound, None, "dead letters are within their bounds");
        }
    }

    /// Whether one letter alone is more than there may be.
    fn is_too_large_for(&self, slot: QueueSlot, id: MessageId, store: &MessageStore) -> bool {
        let bounds = self.dead_letter_bounds(store.queues.at(slot));
        let bytes = store.living(id).body_bytes();
        bounds.bytes_max.is_some_and(|max| bytes > max)
    }

    /// How much the queue of dead letters may hold of them: what its own rules say of messages and
    /// of bytes, or what there is for it otherwise.
    fn dead_letter_bounds(&self, queue: &Queue) -> QueueBounds {
        let DeadLettersMax { messages, bytes } = self.dead_letters_max;
        let QueueBounds { messages_max, bytes_max, .. } = queue.policy.bounds;
        QueueBounds {
            messages_max: messages_max.or(Some(messages)),
            bytes_max: bytes_max.or(Some(bytes)),
            ..QueueBounds::default()
        }
    }

    /// As a consumer sees it.
    pub(crate) fn letter_of(&self, dead: &Dead) -> DeadLetter {
        let of = dead.subscription.and_then(|number| self.subscriptions.get(number));
        DeadLetter {
            reason: dead.reason,
            from: dead.from.clone(),
            subscription: of.and_then(|entry| entry.asks.name.clone()),
            at: dead.at,
            attempts: dead.attempts,
        }
    }

    fn dead_letter_queue(&self, store: &mut MessageStore) -> QueueSlot {
        let name = self.dead_letter_queue.clone();
        let known = store.queues.find(name.as_str());
        known.unwrap_or_else(|| {
            let policy = self.policy_for(&name);
            store.queues.create(name, policy)
        })
    }
}

impl MessageStore {
    /// A dead letter of the least urgent priority that is ready, the oldest unless there are many
    /// messages before it that are none.
    fn oldest_dead_letter(&mut self, slot: QueueSlot) -> Option<MessageId> {
        let queue = self.queues.get(slot)?;
        let (priority, last) = queue.delivery.dispatch.ready().last()?;
        let is_dead = |order: &i64| self.living(self.message_of(*order)).dead().is_some();
        let first = queue.delivery.dispatch.ready().first_from(priority, i64::MIN);
        let next = |(priority, order): &(u32, i64)| {
            queue.delivery.dispatch.ready().first_from(*priority, order + 1)
        };
        let all = core::iter::successors(first, next);
        let mut looked = 0;
        let all = all.take(limits::SCAN_MESSAGES_MAX).inspect(|_| looked += 1);
        let found = all.map(|(_, order)| order).find(is_dead).or(Some(last).filter(is_dead));
        let found = found.map(|order| self.message_of(order));
        self.took_steps(looked);
        found
    }

    fn count_evicted(&mut self, id: MessageId) {
        let is_durable = self.living(id).is_journalled();
        let counts = &mut self.totals.dead_letters;
        counts.evicted_total += 1;
        counts.evicted_durable_total += u64::from(is_durable);
    }

    /// Whether nobody may receive it any more.
    pub(crate) fn is_over(&self, id: MessageId) -> bool {
        let expires = self.living(id).expires();
        expires.is_some_and(|at| at <= self.latest) || self.is_of_list_over(id)
    }
}

/// Dead letters that are deleted in one step; the rest in the next, and others are served in
/// between.
const EVICTED_PER_STEP_MAX: usize = 1_024;

/// How long what is dead is hidden while there is no room to move it. A million such messages cost
/// a second of each such span.
pub(crate) const SCARCE_RETRY: Nanos = Nanos::from_secs(30);

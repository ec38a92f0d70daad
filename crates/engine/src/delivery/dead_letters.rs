//! Dead letters: messages that have expired, or that no consumer can deal with.
//!
//! They move to a queue of their own and say why and from where. They are deleted instead if the
//! rules of their queue say so: by default, if only memory keeps them. They are also deleted if
//! they belong to a client and go with it (a temporary queue, a subscription that is not durable).
//! A dead letter stays where it is: it does not expire, and however often it fails, it is only
//! ready again.
//!
//! Dead letters block no sends: their queue takes each of them. The oldest are deleted beyond its
//! bounds, or beyond those that the engine has for it.

use model::{DeadLetter, DeadReason, MessageId, Nanos, QueueBounds, limits};

use records::DeadView;

use crate::admission::bounds::Amount;
use crate::directory::Directory;
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::message::{Dead, Message};
use crate::store::queue::Queue;
use crate::{DeadLetters, DeadLettersMax};

impl FrameWriter {
    /// True if such a message becomes a dead letter. A store that journals nothing has only
    /// messages that memory alone keeps, so it parks them. A message that finds no place becomes a
    /// dead letter by a rule of its queue.
    pub(crate) fn becomes_dead_letter(
        &self,
        message: &Message,
        reason: DeadReason,
        rule: DeadLetters,
    ) -> bool {
        match rule {
            DeadLetters::ParkPersistent => {
                let is_kept = message.is_journalled() || self.keeps_nothing();
                is_kept || reason == DeadReason::Overflow
            }
            DeadLetters::Park => true,
            DeadLetters::Drop => false,
        }
    }
}

impl Directory {
    /// True if a queue is that of dead letters, and holds more than it may.
    pub(crate) fn has_too_many_dead_letters(&self, slot: QueueSlot, store: &MessageStore) -> bool {
        let queue = store.queues.get(slot).filter(|queue| queue.name == *self.dead_letters_name());
        queue.is_some_and(|queue| queue.held().exceeds(&self.dead_letter_bounds(queue)).is_some())
    }

    /// Checks that the queue of dead letters holds no more of them than it may, but for those that
    /// are held, or about to go.
    ///
    /// # Panics
    /// When it holds more.
    pub(crate) fn check_dead_letters(&self, queue: &Queue, store: &MessageStore) {
        let is_theirs = queue.name == *self.dead_letters_name();
        let is_theirs = is_theirs && queue.delivery.resumes.is_none() && !queue.admission.spares;
        let is_dead = |order: i64| store.message(store.message_of(order)).dead().is_some();
        if is_theirs && queue.delivery.dispatch.ready().iter().all(|(_, order)| is_dead(order)) {
            let ready =
                || queue.delivery.dispatch.ready().iter().map(|(_, order)| store.message_of(order));
            let bytes = || ready().map(|id| store.message(id).body_bytes()).sum();
            let held = Amount { messages: queue.counts().ready(), bytes: bytes() };
            let bound = held.exceeds(&self.dead_letter_bounds(queue));
            assert_eq!(bound, None, "dead letters are within their bounds");
        }
    }

    /// True if one letter alone is more than there may be.
    pub(crate) fn is_too_large_for(
        &self,
        slot: QueueSlot,
        id: MessageId,
        store: &MessageStore,
    ) -> bool {
        let bounds = self.dead_letter_bounds(store.queues.at(slot));
        let bytes = store.message(id).body_bytes();
        bounds.bytes_max.is_some_and(|max| bytes > max)
    }

    /// The most dead letters that their queue may hold: by its own rules on messages and bytes, or
    /// by the engine's limits otherwise.
    fn dead_letter_bounds(&self, queue: &Queue) -> QueueBounds {
        let DeadLettersMax { messages, bytes } = self.dead_letters_max();
        let QueueBounds { messages_max, bytes_max, .. } = queue.policy.bounds;
        QueueBounds {
            messages_max: messages_max.or(Some(messages)),
            bytes_max: bytes_max.or(Some(bytes)),
            ..QueueBounds::default()
        }
    }

    /// As a consumer sees it.
    pub(crate) fn letter_of(&self, dead: &Dead) -> DeadLetter {
        let DeadView { reason, subscription, at, attempts, .. } = dead.view();
        let of = subscription.and_then(|number| self.subscriptions().get(number));
        let subscription = of.and_then(|entry| entry.asks().name.clone());
        DeadLetter { reason, from: dead.from().clone(), subscription, at, attempts }
    }

    pub(crate) fn dead_letter_queue(&self, store: &mut MessageStore) -> QueueSlot {
        let name = self.dead_letters_name().clone();
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
    pub(crate) fn oldest_dead_letter(&mut self, slot: QueueSlot) -> Option<MessageId> {
        let queue = self.queues.get(slot)?;
        let (priority, last) = queue.delivery.dispatch.ready().last()?;
        let is_dead = |order: &i64| self.message(self.message_of(*order)).dead().is_some();
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

    /// True if no consumer may receive it any more.
    pub(crate) fn is_over(&self, id: MessageId) -> bool {
        let expires = self.message(id).expires();
        expires.is_some_and(|at| at <= self.latest) || self.is_of_list_over(id)
    }
}

/// How long a dead message is hidden while there is no room to move it. A million such messages
/// cost a second of each such span.
pub(crate) const SCARCE_RETRY: Nanos = Nanos::from_secs(30);

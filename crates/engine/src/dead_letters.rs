//! Dead letters: messages whose time is over, or that nobody can deal with.
//!
//! They move to a queue of their own and say why and from where; nothing is lost by it. Only where
//! the rules of a queue say so, or where a message belongs to somebody who is gone with it (a
//! temporary queue, a subscription that is not durable), it is deleted. A dead letter stays where
//! it is: it does not expire, and however often it fails, it is only ready again.

use alloc::boxed::Box;

use model::{DeadLetter, DeadReason, MessageId, Nanos};

use crate::engine::Engine;
use crate::message::Dead;
use crate::queue::QueueSlot;
use crate::{DeadLetters, Effects};

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
        let message = self.living(id);
        let slot = message.queue;
        let queue = self.queues.at(slot);
        if message.dead().is_some() {
            return self.return_ready(id, effects);
        }
        if queue.is_memory_only() || queue.policy.dead_letters == DeadLetters::Drop {
            self.finish(id, effects);
            return None;
        }
        if message.is_journalled() && self.log.is_scarce() {
            self.hide(id, self.latest + SCARCE_RETRY);
            return None;
        }
        let (from, attempts) = (queue.name.clone(), message.counters().failed);
        let subscription = queue.subscription();
        let dead = Dead { reason, from, subscription, at: self.latest, attempts };
        let to = self.dead_letter_queue();
        let order = self.place_among_dead(to, id);
        self.amend(id, |message| {
            message.set_expiry(None);
            let history = message.history_mut();
            history.failed = 0;
            history.dead = Some(Box::new(dead));
        });
        self.relocate(id, to, order, effects);
        Some(to)
    }

    /// The time of the queue's first message is over.
    pub(crate) fn expire_next(
        &mut self,
        slot: QueueSlot,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let first = self.queues.at(slot).expiring.first().copied();
        let (at, id) = first.expect("invariant: the timer is set while messages expire");
        assert!(at <= self.latest, "a message expires when its time is over");
        let doomed = self.is_doomed(id);
        self.leave(id);
        if doomed {
            self.finish(id, effects);
            return None;
        }
        self.park(id, DeadReason::Expired, effects)
    }

    /// Whether nobody may receive it any more.
    pub(crate) fn is_over(&self, id: MessageId) -> bool {
        let expires = self.living(id).expires();
        expires.is_some_and(|at| at <= self.latest) || self.is_of_list_over(id)
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

    /// A dead letter keeps its place; but where a list that is over is still being deleted, that
    /// may be among what is, as far as the log knows.
    fn place_among_dead(&mut self, to: QueueSlot, id: MessageId) -> i64 {
        self.end_list_if_over(to);
        let is_being_deleted = self.queues.at(to).lifetime.over.is_some();
        if is_being_deleted { self.last_place() } else { self.living(id).order(id) }
    }

    fn dead_letter_queue(&mut self) -> QueueSlot {
        let name = self.dead_letter_queue.clone();
        let known = self.queues.find(name.as_str());
        known.unwrap_or_else(|| {
            let policy = self.policy_for(&name);
            self.queues.create(name, policy)
        })
    }
}

/// How long what is dead is hidden while there is no room to move it. A million such messages cost
/// a second of each such span.
pub(crate) const SCARCE_RETRY: Nanos = Nanos::from_secs(30);

//! Commands that settle a delivery: accept, release, fail, bury, renew, kick.

use model::{
    DeadReason, DependsOn, LinkId, MessageId, Nanos, Refusal, Reply, Settlement, TransactionId,
    limits,
};

use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::store::message::State;
use crate::{Effects, ReleaseOrder};

impl Engine {
    pub(crate) fn delete(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        effects: &mut Effects,
    ) -> Outcome {
        if self.sessions.held_queue(by, id, &self.store).is_none() {
            match self.store.reach(id).map(|message| message.state()) {
                Some(state) if state.holder().is_none() => {}
                _ => return self.log.not_found(),
            }
        }
        // An expired message holds up its queue, where a consumer may wait for the message behind
        // it.
        let held_up = self.store.is_over(id).then(|| self.store.message(id).queue());
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        let after = self.finish(id, effects);
        Outcome::reply(after, Reply::Done).waking_all(held_up)
    }

    pub(crate) fn settle(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        settlement: Settlement,
        transaction: Option<TransactionId>,
        effects: &mut Effects,
    ) -> Outcome {
        if let Some(transaction) = transaction {
            return self.settle_in_transaction(by, transaction, id, settlement);
        }
        if self.sessions.held_queue(by, id, &self.store).is_none() {
            return self.log.not_found();
        }
        let has_gone = self.store.went_with_subscription(id);
        let woken = self.apply_settlement(by, id, settlement, effects);
        let outcome = Outcome::reply(self.log.after_settling(has_gone), Reply::Done);
        match woken {
            Some(queue) => outcome.waking(queue),
            None => outcome,
        }
    }

    /// Applies a settlement to a message that this session holds. Returns the queue that has a
    /// ready message by it; the caller serves that queue, and seals the frame.
    pub(crate) fn apply_settlement(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        settlement: Settlement,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let before = self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        assert_eq!(before.holder(), Some(by), "who settles a message holds it");
        match settlement {
            Settlement::Accept => {
                self.finish(id, effects);
                None
            }
            Settlement::Return => self.return_ready(id, effects),
            Settlement::Release => self.give_back(id, self.store.redelivery_delay(id), effects),
            Settlement::GiveBack { failed: false, delay } => {
                self.give_back(id, Some(delay), effects)
            }
            Settlement::Fail => self.fail(id, None, effects),
            Settlement::GiveBack { failed: true, delay } => self.fail(id, Some(delay), effects),
            Settlement::Park(reason) => self.dead_letter(id, reason, effects),
        }
    }

    /// A message that is in no index goes back to its place: at once, or once that delay is over.
    /// As far as the log knows it is ready; of a delay it is told, but on a full device.
    fn give_back(
        &mut self,
        id: MessageId,
        delay: Option<Nanos>,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let Some(delay) = delay.filter(|delay| *delay > Nanos::ZERO) else {
            return self.return_ready(id, effects);
        };
        self.hide_until(id, self.store.latest + delay, effects);
        None
    }

    /// A message that is in no index is not delivered before that.
    fn hide_until(&mut self, id: MessageId, until: Nanos, effects: &mut Effects) {
        let is_told = !self.store.message(id).is_journalled() || !self.log.is_scarce();
        if is_told {
            self.keyspace.spare(id, &mut self.store);
        }
        self.keyspace.index(id, State::Delayed { until }, &self.bodies, &mut self.store);
        if is_told {
            self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        }
    }

    /// A message that is in no index is ready again, where it was. As far as the log knows it
    /// always was. So the log is not told, unless that place is among those being deleted.
    pub(crate) fn return_ready(
        &mut self,
        id: MessageId,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let is_spared = self.log.may_say_where() && self.keyspace.spare(id, &mut self.store);
        self.keyspace.index(id, State::Ready, &self.bodies, &mut self.store);
        if is_spared {
            self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        }
        Some(self.store.message(id).queue())
    }

    /// Deletes a message that is in no index.
    pub(crate) fn finish(&mut self, id: MessageId, effects: &mut Effects) -> DependsOn {
        let message = self.bodies.take(id, &mut self.store);
        let after = self.bodies.journal_deletion(id, &message, &self.store, &mut self.log, effects);
        self.store.queues.at_mut(message.queue()).count_deleted();
        self.directory.remove_if_idle(message.queue(), &mut self.sessions, &mut self.store);
        after
    }

    pub(crate) fn release(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        priority: u32,
        delay: Option<Nanos>,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(queue) = self.sessions.held_queue(by, id, &self.store) else {
            return self.log.not_found();
        };
        let by_rule = self.store.redelivery_delay(id).unwrap_or_default();
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        if self.store.queues.at(queue).policy.release_order == ReleaseOrder::Back {
            let order = self.store.last_place();
            self.store.reorder(id, order);
        }
        let message = self.store.message_mut(id);
        message.set_priority(priority);
        message.set_delay(delay.unwrap_or_default());
        message.count_release();
        let delay = delay.unwrap_or(by_rule);
        if delay == Nanos::ZERO {
            return self.settle_into(id, State::Ready, effects).waking(queue);
        }
        self.settle_into(id, State::Delayed { until: self.store.latest + delay }, effects)
    }

    pub(crate) fn bury(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        priority: u32,
        effects: &mut Effects,
    ) -> Outcome {
        if self.sessions.held_queue(by, id, &self.store).is_none() {
            return self.log.not_found();
        }
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        let message = self.store.message_mut(id);
        message.set_priority(priority);
        message.count_burial();
        let order = self.store.buried_place();
        self.settle_into(id, State::Buried { order }, effects)
    }

    /// Not journalled: no lease is.
    pub(crate) fn renew(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        lease: Option<Nanos>,
    ) -> Outcome {
        if self.sessions.held_queue(by, id, &self.store).is_none() {
            return self.log.not_found();
        }
        let message = self.store.message(id);
        let (lease, after) = (lease.unwrap_or(message.lease()), message.after());
        if let State::Held { .. } = message.state() {
            return Outcome::reply(after, Reply::Done);
        }
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        let state = State::Leased { holder: by, until: self.store.latest + lease };
        self.sessions.index(id, state, &mut self.store);
        Outcome::reply(after, Reply::Done)
    }

    pub(crate) fn kick(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        max: u64,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(slot) = self.sessions.producer_queue(by, link) else {
            return Outcome::refused(Refusal::NoSuchLink);
        };
        let from_buried = self.store.queues.at(slot).first_buried().is_some();
        let at_once = max.min(limits::FRAME_RECORDS_MAX as u64);
        let mut count = 0;
        while count < at_once
            && self.log.takes_change()
            && let Some(id) = self.store.next_to_kick(slot, from_buried)
        {
            self.make_ready(id, effects);
            count += 1;
        }
        let more = count < max && self.store.next_to_kick(slot, from_buried).is_some();
        let reply = if more { Reply::CountSoFar(count) } else { Reply::Count(count) };
        Outcome::reply(self.log.after_all(), reply).waking(slot)
    }

    pub(crate) fn kick_message(&mut self, id: MessageId, effects: &mut Effects) -> Outcome {
        match self.store.reach(id).map(|message| (message.state(), message.queue())) {
            Some((State::Buried { .. } | State::Delayed { .. }, queue)) => {
                self.make_ready(id, effects).waking(queue)
            }
            _ => self.log.not_found(),
        }
    }

    /// The delay of the queue's first delayed message ends, by time. Not journalled for itself:
    /// when it is replayed, its time has come as well.
    pub(crate) fn end_delay(&mut self, slot: QueueSlot, effects: &mut Effects) -> QueueSlot {
        let first = self.store.queues.at(slot).first_delayed();
        let (_, id) = first.expect("invariant: the timer is set while there are delayed messages");
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        self.return_ready(id, effects);
        slot
    }

    /// One delivery more of a message that is in no index has failed. It comes back after that
    /// delay, or that of the rules.
    fn fail(
        &mut self,
        id: MessageId,
        delay: Option<Nanos>,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let is_scarce = self.log.is_scarce();
        let message = self.store.message_mut(id);
        let failed = message.count_failure();
        let (slot, is_dead) = (message.queue(), message.dead().is_some());
        if is_scarce && message.is_journalled() {
            // Counted in memory alone: a session that holds much and is lost must not use up the
            // room that is kept for settlements that give some back.
            let delay = delay.or_else(|| self.store.redelivery_delay(id));
            return self.give_back(id, delay, effects);
        }
        let max_delivery_attempts = self.store.queues.at(slot).policy.max_delivery_attempts;
        if max_delivery_attempts != 0 && failed >= max_delivery_attempts && !is_dead {
            return self.dead_letter(id, DeadReason::Attempts, effects);
        }
        let delay = delay.or_else(|| self.store.redelivery_delay(id));
        if let Some(delay) = delay.filter(|delay| *delay > Nanos::ZERO) {
            self.hide_until(id, self.store.latest + delay, effects);
            return None;
        }
        self.keyspace.spare(id, &mut self.store);
        self.keyspace.index(id, State::Ready, &self.bodies, &mut self.store);
        self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        Some(slot)
    }

    /// Kicks a buried or delayed message.
    fn make_ready(&mut self, id: MessageId, effects: &mut Effects) -> Outcome {
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        self.store.message_mut(id).count_kick();
        self.settle_into(id, State::Ready, effects)
    }

    /// Puts a message into a state for good: journalled and confirmed.
    fn settle_into(&mut self, id: MessageId, state: State, effects: &mut Effects) -> Outcome {
        self.keyspace.spare(id, &mut self.store);
        self.keyspace.index(id, state, &self.bodies, &mut self.store);
        self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        Outcome::reply(self.store.message_mut(id).after(), Reply::Done)
    }
}

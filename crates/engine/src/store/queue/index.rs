//! The index of a queue: each message is in exactly one, that of its state.
//!
//! Ready messages are in the queue's dispatch list and in the views that they match, or among the
//! expired members. Leased and held ones are in the index of their session. The counts and the
//! timers of the queue follow from its index, so they change here alone.

use core::ops::{Bound, RangeToInclusive};

use model::{MessageId, Nanos};

use crate::ids::QueueSlot;
use crate::store::MessageStore;
use crate::store::message::State;
use crate::store::queue::{Counts, ListLifetime, Queue, entry_of};
use crate::store::timers::Timer;

impl MessageStore {
    /// Takes a message out of the index of its state, but for that of a session. Gives the index
    /// and the state that it was in. From now on it is in no index of its queue.
    #[inline]
    pub(crate) fn unindex(&mut self, id: MessageId) -> (Left, State) {
        let message = self.message(id);
        let (state, priority, order) = (message.state(), message.priority(), message.order(id));
        let (slot, expires, bytes) = (message.queue(), message.expires(), message.body_bytes());
        let (is_grouped, account) = (message.message_group().is_some(), message.account());
        let (queue, accounts) = self.queues.at_with_accounts(slot);
        accounts.remove_message(account, bytes);
        queue.change_body_bytes(bytes, 0);
        let forgets_at = queue.forgets_at();
        let is_expired = state == State::Ready && queue.is_expired_member(priority, order);
        queue.index.counts.subtract(state, priority, is_expired);
        self.totals.counts.subtract(state, priority, is_expired);
        self.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        let was_there = match state {
            State::Ready if is_expired => queue.index.expired_members.remove(priority, order),
            State::Ready => {
                let entry = entry_of(queue, &self.messages, id, (priority, order));
                if !queue.delivery.views.is_empty() {
                    self.totals.steps += queue.unindex_from_views(entry);
                }
                queue.delivery.dispatch.remove(entry)
            }
            State::Buried { order } => queue.index.buried.remove(&order) == Some(id),
            State::Delayed { until } => {
                let first = queue.first_delay();
                let was_there = queue.index.delayed.remove(&(until, id));
                self.timers.change(Timer::Delay(slot), first, queue.first_delay());
                was_there
            }
            State::Leased { .. } | State::Held { .. } => true,
        };
        assert!(was_there, "message {id} is in the index of its state");
        debug_assert!(queue.counts_agree(), "the counts follow from the index");
        if let Some(at) = expires
            && queue.index.expiring.contains(&(at, id))
        {
            self.stop_expiring(slot, at, id);
        }
        if is_grouped {
            self.leave_group(id);
        }
        let left = if is_expired { Left::ExpiredMembers(slot) } else { Left::Index(slot) };
        (left, state)
    }

    /// Puts a message that is in no index into that of its new state, but for that of a session.
    /// Gives its queue.
    #[inline(always)]
    pub(crate) fn index(&mut self, id: MessageId, state: State) -> QueueSlot {
        let now = self.latest;
        let message = self.message_mut(id);
        message.move_to(state, now);
        let (priority, order, slot) = (message.priority(), message.order(id), message.queue());
        let (expires, bytes) = (message.expires(), message.body_bytes());
        let account = message.account();
        if message.message_group().is_some() {
            self.enter_group(id);
        }
        let (queue, accounts) = self.queues.at_with_accounts(slot);
        accounts.add_message(account, bytes);
        queue.change_body_bytes(0, bytes);
        let forgets_at = queue.forgets_at();
        queue.index.counts.add(state, priority);
        self.totals.counts.add(state, priority);
        self.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        let is_new = match state {
            State::Ready => {
                let entry = entry_of(queue, &self.messages, id, (priority, order));
                queue.delivery.dispatch.insert(entry)
            }
            State::Buried { order } => queue.index.buried.insert(order, id).is_none(),
            State::Delayed { until } => {
                let first = queue.first_delay();
                let is_new = queue.index.delayed.insert((until, id));
                self.timers.change(Timer::Delay(slot), first, queue.first_delay());
                is_new
            }
            State::Leased { .. } | State::Held { .. } => true,
        };
        assert!(is_new, "message {id} was in the index of its state already");
        debug_assert!(queue.counts_agree(), "the counts follow from the index");
        if let Some(at) = expires
            && state.holder().is_none()
        {
            let first = queue.first_expiry();
            let is_new = queue.index.expiring.insert((at, id));
            assert!(is_new, "message {id} expires once");
            self.timers.change(Timer::Expire(slot), first, queue.first_expiry());
        }
        slot
    }

    /// A message that is hidden beyond its time is not looked for at that time.
    pub(crate) fn hide_expiry(&mut self, id: MessageId) {
        let message = self.message(id);
        let (slot, expires) = (message.queue(), message.expires());
        assert!(matches!(message.state(), State::Delayed { .. }), "message {id} is hidden");
        if let Some(at) = expires.filter(|at| *at <= self.latest) {
            self.stop_expiring(slot, at, id);
        }
    }

    fn stop_expiring(&mut self, slot: QueueSlot, at: Nanos, id: MessageId) {
        let queue = self.queues.at_mut(slot);
        let first = queue.first_expiry();
        let was_there = queue.index.expiring.remove(&(at, id));
        assert!(was_there, "message {id} expires once");
        self.timers.change(Timer::Expire(slot), first, queue.first_expiry());
    }

    /// All ready messages of a queue become expired members.
    pub(crate) fn expire_ready(&mut self, slot: QueueSlot) {
        let queue = self.queues.at_mut(slot);
        let forgets_at = queue.forgets_at();
        let expired = queue.index.counts.expire_ready();
        let ready = queue.delivery.dispatch.take_all();
        if queue.index.expired_members.first().is_none() {
            queue.index.expired_members = ready;
        } else {
            for (priority, order) in ready.iter() {
                let is_new = queue.index.expired_members.insert(priority, order);
                assert!(is_new, "a message expires with one list");
            }
        }
        for view in queue.delivery.views.values_mut() {
            view.dispatch_mut().take_all();
        }
        self.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        self.totals.counts.expire_some(&expired);
    }

    /// One ready message of a queue becomes an expired member.
    pub(crate) fn expire_member(&mut self, slot: QueueSlot, (priority, order): (u32, i64)) {
        let id = self.message_of(order);
        let entry = self.queues.at(slot).entry_of(id, self.message(id));
        let mut one = Counts::default();
        one.add(State::Ready, priority);
        let queue = self.queues.at_mut(slot);
        let forgets_at = queue.forgets_at();
        let was_ready = queue.delivery.dispatch.remove(entry);
        assert!(was_ready, "message {id} was ready");
        queue.index.expired_members.insert(priority, order);
        queue.index.counts.expire_some(&one);
        self.totals.counts.expire_some(&one);
        self.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
    }

    /// Sets the lifetime of a queue's list. Gives the one before.
    pub(crate) fn set_lifetime(&mut self, slot: QueueSlot, lifetime: ListLifetime) -> ListLifetime {
        let queue = self.queues.at_mut(slot);
        debug_assert!(lifetime.at.is_none() || queue.is_list(), "a deadline is that of a list");
        let before = core::mem::replace(&mut queue.index.lifetime, lifetime);
        self.timers.change(Timer::End(slot), before.at, lifetime.at);
        before
    }
}

/// The index that a message was in, of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// That of its state.
    Index(QueueSlot),
    /// The members of an expired list.
    ExpiredMembers(QueueSlot),
}

impl Queue {
    /// How many messages stand where.
    pub(crate) const fn counts(&self) -> &Counts {
        &self.index.counts
    }

    /// When its list goes.
    pub(crate) const fn lifetime(&self) -> ListLifetime {
        self.index.lifetime
    }

    /// The first member of an expired list.
    pub(crate) fn first_expired_member(&self) -> Option<(u32, i64)> {
        self.index.expired_members.first()
    }

    /// The message with the first delay to end, and when.
    pub(crate) fn first_delayed(&self) -> Option<(Nanos, MessageId)> {
        self.index.delayed.first().copied()
    }

    /// Delayed messages by the end of their delays, behind that one.
    pub(crate) fn delayed_after(
        &self,
        after: Bound<(Nanos, MessageId)>,
    ) -> impl Iterator<Item = (Nanos, MessageId)> {
        self.index.delayed.range((after, Bound::Unbounded)).copied()
    }

    /// The message that was buried first.
    pub(crate) fn first_buried(&self) -> Option<MessageId> {
        self.index.buried.first_key_value().map(|(_, id)| *id)
    }

    /// Buried messages by their places, behind that one.
    pub(crate) fn buried_after(&self, after: Bound<u64>) -> impl Iterator<Item = (u64, MessageId)> {
        self.index.buried.range((after, Bound::Unbounded)).map(|(order, id)| (*order, *id))
    }

    /// True if a buried message has that place.
    pub(crate) fn has_buried(&self, place: u64) -> bool {
        self.index.buried.contains_key(&place)
    }

    /// The message that expires first, and when.
    pub(crate) fn first_expiring(&self) -> Option<(Nanos, MessageId)> {
        self.index.expiring.first().copied()
    }

    /// Messages that expire by then.
    pub(crate) fn expiring_by(&self, now: Nanos) -> impl Iterator<Item = MessageId> + Clone {
        let by: RangeToInclusive<_> = ..=(now, MessageId(u64::MAX));
        self.index.expiring.range(by).map(|(_, id)| *id)
    }

    /// How many messages expire.
    pub(crate) fn expiring_count(&self) -> usize {
        self.index.expiring.len()
    }

    /// True if it knows that this message expires then.
    pub(crate) fn expires(&self, at: Nanos, id: MessageId) -> bool {
        self.index.expiring.contains(&(at, id))
    }

    /// True if this message, which no session holds, is in the index of that state.
    pub(crate) fn has_indexed(&self, id: MessageId, state: State, place: (u32, i64)) -> bool {
        match state {
            State::Ready => {
                let is_ready = self.delivery.dispatch.ready().contains(place.0, place.1);
                is_ready != self.is_expired_member(place.0, place.1)
            }
            State::Delayed { until } => self.index.delayed.contains(&(until, id)),
            State::Buried { order } => self.index.buried.get(&order) == Some(&id),
            State::Leased { .. } | State::Held { .. } => false,
        }
    }

    /// Bytes of the bodies of all its messages, in memory or not.
    pub(crate) const fn body_bytes(&self) -> u64 {
        self.bodies.body_bytes
    }

    /// A body of it has so many bytes now, and had so many before.
    pub(crate) const fn change_body_bytes(&mut self, before: u64, now: u64) {
        assert!(before <= self.bodies.body_bytes, "bytes of a body were counted when it came");
        self.bodies.body_bytes = self.bodies.body_bytes - before + now;
    }

    /// True if the counts follow from the index, as far as that is soon seen.
    pub(crate) fn counts_agree(&self) -> bool {
        let Counts { delayed, buried, expired_members, ready, urgent, .. } = self.index.counts;
        let has_expired = self.index.expired_members.first().is_some();
        let has_ready = self.delivery.dispatch.ready().first().is_some();
        delayed == self.index.delayed.len() as u64
            && buried == self.index.buried.len() as u64
            && has_expired == (expired_members > 0)
            && has_ready == (ready > 0)
            && urgent <= ready
    }

    /// Checks that the counts follow from the index.
    ///
    /// # Panics
    /// When they do not.
    pub(crate) fn check_counts(&self) {
        let (name, counts) = (&self.name, &self.index.counts);
        assert_eq!(counts.ready, self.delivery.dispatch.ready().count(), "ready in {name}");
        assert_eq!(counts.delayed, self.index.delayed.len() as u64, "delayed in {name}");
        assert_eq!(counts.buried, self.index.buried.len() as u64, "buried in {name}");
        let expired = self.index.expired_members.count();
        assert_eq!(counts.expired_members, expired, "expired members in {name}");
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) const fn miscount_ready(&mut self) {
        self.index.counts.miscount();
    }

    /// The same.
    #[cfg(test)]
    pub(crate) fn misexpire(&mut self, at: Nanos, id: MessageId) {
        self.index.expiring.insert((at, id));
    }
}

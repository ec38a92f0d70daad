//! How a message moves: out of the index of the state it is in, into that of another.
//!
//! A message is in exactly one index, that of its state: its queue's ready, delayed or buried set
//! or its holder's leases. Only [`Engine::unindex`] and [`Engine::index`] touch these, together
//! with the counts and the timers that follow from them. Between the two the message is in none.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use model::{DependsOn, MessageId, Nanos};
use records::{RecordView, place_of};

use crate::Effects;
use crate::admission::Admission;
use crate::bodies::Bodies;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::Keyspace;
use crate::log::{FrameWriter, Placed};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::message::{Message, State};
use crate::store::queue::{Role, entry_of, whose_place};
use crate::store::timers::Timer;

impl Engine {
    /// Takes a message out of the index of its state.
    pub(crate) fn unindex(&mut self, id: MessageId) -> State {
        let message = self.store.message(id);
        let (state, priority, order) = (message.state(), message.priority, message.order(id));
        let (slot, expires, bytes) = (message.queue, message.expires(), message.body_bytes());
        let is_grouped = message.message_group().is_some();
        let queue = self.store.queues.at_mut(slot);
        queue.bodies.body_bytes -= bytes;
        let forgets_at = queue.forgets_at();
        let is_expired = state == State::Ready && queue.is_expired_member(priority, order);
        queue.index.counts.subtract(state, priority, is_expired);
        self.store.totals.counts.subtract(state, priority, is_expired);
        self.store.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        let was_there = match state {
            State::Ready if is_expired => queue.index.expired_members.remove(priority, order),
            State::Ready => {
                let entry = entry_of(queue, &self.store.messages, id, (priority, order));
                if !queue.delivery.views.is_empty() {
                    self.store.totals.steps += queue.unindex_from_views(entry);
                }
                let was_there = queue.delivery.dispatch.remove(entry);
                self.touched_list(slot);
                was_there
            }
            State::Buried { order } => queue.index.buried.remove(&order) == Some(id),
            State::Delayed { until } => {
                let first = queue.first_delay();
                let was_there = queue.index.delayed.remove(&(until, id));
                let timer = Timer::Delay(slot);
                self.store.timers.change(timer, first, queue.first_delay());
                was_there
            }
            State::Leased { holder, until } => {
                let session = self.sessions.at_mut(holder);
                let first = session.first_lease();
                let was_there = session.end_lease(id, until);
                self.sessions.first_lease_changed(holder, first, &mut self.store);
                was_there
            }
            State::Held { holder, .. } => {
                let session = self.sessions.at_mut(holder);
                let first = session.first_lease();
                let was_there = session.end_hold(id);
                self.sessions.first_lease_changed(holder, first, &mut self.store);
                was_there
            }
        };
        assert!(was_there, "message {id} is in the index of its state");
        if let Some(at) = expires
            && self.store.queues.at(slot).index.expiring.contains(&(at, id))
        {
            self.store.change_expiring(slot, |expiring| expiring.remove(&(at, id)));
        }
        if is_grouped {
            self.store.leave_group(id);
        }
        if state == State::Ready {
            self.keyspace.left_ready(slot, is_expired, &mut self.store);
        }
        self.admission.may_have_caught_up(slot, &mut self.store);
        state
    }

    /// Puts a message that is in no index into that of its new state.
    pub(crate) fn index(&mut self, id: MessageId, state: State) {
        self.store.took_steps(1);
        if state == State::Ready {
            // It is not of a list that is over.
            self.end_list_if_over(self.store.message(id).queue);
        }
        let now = self.store.latest;
        let message = self.store.message_mut(id);
        message.move_to(state, now);
        let (priority, order, slot) = (message.priority, message.order(id), message.queue);
        let (expires, bytes) = (message.expires(), message.body_bytes());
        if message.message_group().is_some() {
            self.store.enter_group(id);
        }
        let queue = self.store.queues.at_mut(slot);
        queue.bodies.body_bytes += bytes;
        let forgets_at = queue.forgets_at();
        queue.index.counts.add(state, priority);
        self.store.totals.counts.add(state, priority);
        self.store.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        let is_new = match state {
            State::Ready => {
                let entry = entry_of(queue, &self.store.messages, id, (priority, order));
                queue.delivery.dispatch.insert(entry)
            }
            State::Buried { order } => queue.index.buried.insert(order, id).is_none(),
            State::Delayed { until } => {
                let first = queue.first_delay();
                let is_new = queue.index.delayed.insert((until, id));
                let timer = Timer::Delay(slot);
                self.store.timers.change(timer, first, queue.first_delay());
                is_new
            }
            State::Leased { holder, until } => {
                let session = self.sessions.at_mut(holder);
                let first = session.first_lease();
                let is_new = session.lease(id, until);
                self.sessions.first_lease_changed(holder, first, &mut self.store);
                is_new
            }
            State::Held { holder, .. } => self.sessions.at_mut(holder).hold(id),
        };
        assert!(is_new, "message {id} was in the index of its state already");
        if let Some(at) = expires
            && state.holder().is_none()
        {
            self.store.change_expiring(slot, |expiring| expiring.insert((at, id)));
        }
        if state == State::Ready {
            self.touched_list(slot);
            self.bodies.index_in_views(slot, id, &mut self.store, &self.context);
            let queue = self.store.queues.at(slot);
            if queue.index.counts.ready == 1 && queue.role == Role::Named {
                self.keyspace.list_began(slot, &self.store);
            }
        }
    }

    /// Delays a message that is in no index. Its time may be over: that is dealt with when it comes
    /// back.
    pub(crate) fn hide(&mut self, id: MessageId, until: Nanos) {
        assert!(until > self.store.latest, "what is hidden comes back later");
        self.store.message_mut(id).set_aside(true);
        self.index(id, State::Delayed { until });
        let message = self.store.message(id);
        let slot = message.queue;
        if let Some(at) = message.expires()
            && at <= self.store.latest
        {
            self.store.change_expiring(slot, |expiring| expiring.remove(&(at, id)));
        }
    }

    /// Forgets a queue when nothing points to it any more. One of a subscription that is not
    /// durable goes with its last consumer.
    pub(crate) fn remove_if_idle(&mut self, slot: QueueSlot) {
        let Some(queue) = self.store.queues.get(slot) else { return };
        if let Role::Subscription { number, durable: false } = queue.role
            && queue.delivery.consumers.is_empty()
        {
            self.withdraw(number);
            return;
        }
        if queue.is_idle() {
            self.store.timers.change(Timer::Pause(slot), queue.pause_ends(), None);
            self.store.timers.change(Timer::Resume(slot), queue.delivery.resumes, None);
            self.store.queues.remove(slot);
        }
    }
}

impl Keyspace {
    /// A message is no longer among the ready messages of a queue, or its expired members.
    fn left_ready(&mut self, slot: QueueSlot, is_expired: bool, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        if is_expired && queue.index.counts.expired_members == 0 {
            self.expiry_is_done(slot, store);
        } else if !is_expired && queue.role == Role::Named && queue.index.counts.ready == 0 {
            self.list_ended(slot, store);
        }
    }
}

impl MessageStore {
    /// Changes which messages of a queue expire, and its timer with them.
    fn change_expiring(
        &mut self,
        slot: QueueSlot,
        change: impl FnOnce(&mut BTreeSet<(Nanos, MessageId)>) -> bool,
    ) {
        let queue = self.queues.at_mut(slot);
        let first = queue.first_expiry();
        let changed = change(&mut queue.index.expiring);
        assert!(changed, "what expires is known once");
        self.timers.change(Timer::Expire(slot), first, queue.first_expiry());
    }

    /// Changes the part of a message that a snapshot records. The message is in no index.
    pub(crate) fn amend(&mut self, id: MessageId, change: impl FnOnce(&mut Message)) {
        let before = self.snapshot_bytes_of(self.message(id));
        change(self.message_mut(id));
        let now = self.snapshot_bytes_of(self.message(id));
        self.totals.snapshot_bytes = self.totals.snapshot_bytes + now - before;
    }

    /// Gives a message that is in no index another place among the ready.
    pub(crate) fn reorder(&mut self, id: MessageId, order: i64) {
        let message = self.message_mut(id);
        let before = message.order(id);
        message.set_order(id, order);
        if before != place_of(id) {
            self.reordered.remove(before as u64);
        }
        if order != place_of(id) {
            self.reordered.insert(order as u64, id);
        }
    }

    /// A place behind all that there are, never given out before.
    pub(crate) fn last_place(&mut self) -> i64 {
        let place = place_of(MessageId(self.next.message));
        self.next.message += 1;
        place
    }

    /// A place in front of all that there are, never given out before.
    pub(crate) fn first_place(&mut self) -> i64 {
        let place = self.next.front;
        self.next.front -= 1;
        place
    }

    /// The message that this order among the ready belongs to.
    pub(crate) fn message_of(&self, order: i64) -> MessageId {
        whose_place(&self.reordered, order)
    }

    /// A message that an index, or a lookup just before, says is there.
    pub(crate) fn message(&self, id: MessageId) -> &Message {
        self.messages.get(id.0).expect("invariant: what is in an index lives")
    }

    /// See [`MessageStore::message`].
    pub(crate) fn message_mut(&mut self, id: MessageId) -> &mut Message {
        self.messages.get_mut(id.0).expect("invariant: what is in an index lives")
    }
}

impl Admission {
    /// Takes a message that is in no index out of the engine.
    pub(crate) fn take(
        &mut self,
        id: MessageId,
        bodies: &mut Bodies,
        store: &mut MessageStore,
    ) -> Box<Message> {
        let message = store.messages.remove(id.0).expect("invariant: only a living message goes");
        store.snapshot_changed(&message, false);
        bodies.unaccount(id, &message, store);
        bodies.forget_body(id, &message, store);
        let order = message.order(id);
        if order != place_of(id) {
            store.reordered.remove(order as u64);
        }
        self.drained_one(message.queue, store);
        message
    }
}

impl Bodies {
    /// Gives a message that is in no index to another queue.
    pub(crate) fn change_queue(&mut self, id: MessageId, to: QueueSlot, store: &mut MessageStore) {
        let Some(mut message) = store.messages.remove(id.0) else { return };
        self.unaccount(id, &message, store);
        let before = store.snapshot_bytes_of(&message);
        message.queue = to;
        let now = store.snapshot_bytes_of(&message);
        store.totals.snapshot_bytes = store.totals.snapshot_bytes + now - before;
        self.account(id, &message, store);
        store.messages.insert(id.0, message);
    }

    /// Tells the log how a message stands now.
    pub(crate) fn journal_change(
        &mut self,
        id: MessageId,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        // Not `message_mut`: the log is borrowed beside it.
        let Some(message) = store.messages.get_mut(id.0) else { return };
        if message.is_journalled() && !store.queues.at(message.queue).is_leaving() {
            let record = store.queues.change_of(id, message);
            let changed = log.append(&record, message.durability, effects);
            message.changed = changed.lsn;
            effects.grown.extend(self.note_growth(id, changed.bytes, store));
        }
    }

    /// Tells the log that a message is gone. Returns the position that its deletion waits for. The
    /// messages of a leaving queue went with it, as far as the log knows.
    pub(crate) fn journal_deletion(
        &mut self,
        id: MessageId,
        message: &Message,
        store: &MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> DependsOn {
        if !message.is_journalled() {
            return DependsOn::NOTHING;
        }
        self.release_record(message, effects);
        if store.queues.at(message.queue).is_leaving() {
            return log.after_all();
        }
        let record = RecordView::Deleted { message: id };
        let Placed { lsn, .. } = log.append(&record, message.durability, effects);
        DependsOn::new(lsn, message.durability)
    }
}

impl Sessions {
    /// Moves the timers that follow from a session's first lease, which ended at `before`.
    fn first_lease_changed(
        &self,
        holder: SessionSlot,
        before: Option<Nanos>,
        store: &mut MessageStore,
    ) {
        let session = self.at(holder);
        let now = session.first_lease();
        store.timers.change(Timer::Lease(holder), before, now);
        if before == now {
            return;
        }
        for &link in session.margins() {
            let timer = Timer::Margin(crate::ids::ConsumerKey { session: holder, link });
            let (from, to) =
                (session.margin_begins(link, before), session.margin_begins(link, now));
            store.timers.change(timer, from, to);
        }
    }
}

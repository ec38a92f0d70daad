//! How a message moves: out of the index of the state it is in, into that of another.
//!
//! A message is in exactly one index, that of its state: its queue's ready, delayed or buried set
//! or its holder's leases. Only [`Keyspace::unindex`], [`Keyspace::index`] and [`Sessions::index`]
//! change these, by [`MessageStore::unindex`] and [`MessageStore::index`], and tell the other
//! parts. Between the two the message is in none.

use alloc::boxed::Box;

use model::{DependsOn, MessageId, Nanos};
use records::RecordView;

use crate::Effects;
use crate::bodies::Bodies;
use crate::directory::Directory;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::keyspace::Keyspace;
use crate::log::{FrameWriter, Placed};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::message::{Message, State};
use crate::store::queue::Role;
use crate::store::queue::index::Left;
use crate::store::timers::Timer;

impl Keyspace {
    /// A message is no longer among the ready messages of a queue.
    #[inline]
    fn left_ready(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        if queue.role == Role::Named && queue.counts().ready() == 0 {
            self.list_ended(slot, store);
        }
    }

    /// A message is no longer among the members of an expired list.
    fn expired_member_left(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        if store.queues.at(slot).counts().expired_members() == 0 {
            self.expiry_is_done(slot, store);
        }
    }

    /// A message has become ready in a queue.
    #[inline]
    fn entered_ready(&mut self, slot: QueueSlot, store: &MessageStore) {
        let queue = store.queues.at(slot);
        if queue.counts().ready() == 1 && queue.role == Role::Named {
            self.list_began(slot, store);
        }
    }

    /// Takes a message out of the index of its state.
    pub(crate) fn unindex(
        &mut self,
        id: MessageId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> State {
        let (left, state) = store.unindex(id);
        sessions.unindex(id, state, store);
        let slot = match left {
            Left::ExpiredMembers(slot) => {
                self.expired_member_left(slot, store);
                slot
            }
            Left::Index(slot) => {
                if state == State::Ready {
                    self.touched_list(slot, store);
                    self.left_ready(slot, store);
                }
                slot
            }
        };
        store.may_have_caught_up(slot);
        state
    }

    /// Puts a message that is in no index into that of its new state, in which no session has it.
    pub(crate) fn index(
        &mut self,
        id: MessageId,
        state: State,
        bodies: &Bodies,
        store: &mut MessageStore,
    ) {
        assert!(state.holder().is_none(), "a session indexes the messages that it has");
        store.took_steps(1);
        if state == State::Ready {
            // It is not of a list that is over.
            self.end_list_if_over(store.message(id).queue(), store);
        }
        let slot = store.index(id, state);
        if state == State::Ready {
            self.touched_list(slot, store);
            bodies.index_in_views(slot, id, store);
            self.entered_ready(slot, store);
        }
    }

    /// Delays a message that is in no index. Its time may be over: that is dealt with when it comes
    /// back.
    pub(crate) fn hide(
        &mut self,
        id: MessageId,
        until: Nanos,
        bodies: &Bodies,
        store: &mut MessageStore,
    ) {
        assert!(until > store.latest, "what is hidden comes back later");
        store.message_mut(id).set_aside(true);
        self.index(id, State::Delayed { until }, bodies, store);
        store.hide_expiry(id);
    }

    /// A message takes its place in its queue.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        id: MessageId,
        message: Box<Message>,
        bodies: &mut Bodies,
        store: &mut MessageStore,
    ) {
        let (state, slot) = (message.state(), message.queue());
        store.snapshot_changed(&message, true);
        bodies.account(id, &message, store);
        store.insert(id, message);
        self.index(id, state, bodies, store);
        store.queues.at_mut(slot).came_one();
        store.count_stored();
    }

    pub(crate) fn move_to_lease(
        &mut self,
        holder: SessionSlot,
        id: MessageId,
        lease: Option<Nanos>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        self.unindex(id, sessions, store);
        let now = store.latest;
        let message = store.message_mut(id);
        message.count_delivery();
        let until = now + lease.unwrap_or(message.lease());
        sessions.index(id, State::Leased { holder, until }, store);
    }

    /// A consumer takes a message.
    pub(crate) fn move_to_hold(
        &mut self,
        key: ConsumerKey,
        id: MessageId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        self.unindex(id, sessions, store);
        store.message_mut(id).count_delivery();
        let state = State::Held { holder: key.session, since: store.latest };
        sessions.index(id, state, store);
    }
}

impl Bodies {
    /// Takes a message that is in no index out of the engine.
    pub(crate) fn take(&mut self, id: MessageId, store: &mut MessageStore) -> Box<Message> {
        let message = store.messages.remove(id.0).expect("invariant: only a living message goes");
        store.snapshot_changed(&message, false);
        self.unaccount(id, &message, store);
        self.forget_body(id, &message, store);
        store.leave_order(id, message.order(id));
        store.drained_one(message.queue());
        message
    }

    /// Gives a message that is in no index to another queue.
    pub(crate) fn change_queue(&mut self, id: MessageId, to: QueueSlot, store: &mut MessageStore) {
        let Some(mut message) = store.messages.remove(id.0) else { return };
        self.unaccount(id, &message, store);
        let before = store.snapshot_bytes_of(&message);
        message.set_queue(to);
        store.change_snapshot_bytes(before, store.snapshot_bytes_of(&message));
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
        if message.is_journalled() && !store.queues.at(message.queue()).is_leaving() {
            let record = store.queues.change_of(id, message);
            let changed = log.append(&record, message.durability(), effects);
            message.set_changed(changed.lsn);
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
        if store.queues.at(message.queue()).is_leaving() {
            return log.after_all();
        }
        let record = RecordView::Deleted { message: id };
        let Placed { lsn, .. } = log.append(&record, message.durability(), effects);
        DependsOn::new(lsn, message.durability())
    }
}

impl Sessions {
    /// A message that a session held or leased leaves its index; no effect in other states.
    #[inline]
    fn unindex(&mut self, id: MessageId, state: State, store: &mut MessageStore) {
        let Some(holder) = state.holder() else { return };
        let session = self.at_mut(holder);
        let first = session.first_lease();
        let was_there = match state {
            State::Leased { until, .. } => session.end_lease(id, until),
            _ => session.end_hold(id),
        };
        assert!(was_there, "message {id} is with its holder");
        self.first_lease_changed(holder, first, store);
    }

    /// Puts a message that is in no index into that of the session that holds or leases it from now
    /// on.
    pub(crate) fn index(&mut self, id: MessageId, state: State, store: &mut MessageStore) {
        store.took_steps(1);
        store.index(id, state);
        let holder = state.holder().expect("invariant: a session has what it indexes");
        let session = self.at_mut(holder);
        let first = session.first_lease();
        let is_new = match state {
            State::Leased { until, .. } => session.lease(id, until),
            _ => session.hold(id),
        };
        assert!(is_new, "message {id} was with its holder already");
        self.first_lease_changed(holder, first, store);
    }

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
            let timer = Timer::Margin(ConsumerKey { session: holder, link });
            let (from, to) =
                (session.margin_begins(link, before), session.margin_begins(link, now));
            store.timers.change(timer, from, to);
        }
    }
}

impl Directory {
    /// Forgets a queue when nothing points to it any more. One of a subscription that is not
    /// durable goes with its last consumer.
    pub(crate) fn remove_if_idle(
        &mut self,
        slot: QueueSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let Some(queue) = store.queues.get(slot) else { return };
        if let Role::Subscription { number, durable: false } = queue.role
            && queue.delivery.consumers.is_empty()
        {
            self.withdraw(number, sessions, store);
            return;
        }
        if queue.is_idle() {
            store.timers.change(Timer::Pause(slot), queue.pause_ends(), None);
            store.timers.change(Timer::Resume(slot), queue.delivery.resumes, None);
            store.queues.remove(slot);
        }
    }
}

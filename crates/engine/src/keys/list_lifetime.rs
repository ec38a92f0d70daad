//! When a list goes: at its deadline, all at once for whoever looks, and in steps for the log.
//!
//! When the time of a list is over, its ready messages are *doomed*: they leave the ready set all
//! at once, so that nobody finds them, and are deleted one by one, by a timer that is due at once.
//! What is stored from then on is a new list. The log knows the deadline; from when it was reached
//! until the last message is deleted it also knows which messages are over, so that a crash in
//! between brings back neither an old message nor takes a new one.
//!
//! The lifetime of a list changes in many ways, as when its last message is leased to somebody.
//! Each leaves the name among those to be stated, and before its frame ends the log is told.

use alloc::vec::Vec;

use model::{DependsOn, Durability, MessageId, Nanos, QueueName};
use records::{CHANGED_BYTES_MAX, DeadlineView, Over, RecordView};

use super::setting::DEADLINE_BYTES_MAX;
use crate::Effects;
use crate::engine::{Engine, MessageStore};
use crate::keys::Keyspace;
use crate::log::Log;
use crate::message::State;
use crate::queue::{Counts, ListLifetime, QueueSlot, Role};
use crate::timers::Timer;

impl Engine {
    /// Notices that the time of a list is over, if it is.
    pub(crate) fn end_list_if_over(&mut self, slot: QueueSlot) {
        if self.store.queues.at(slot).is_ended(self.store.latest) {
            self.end_list(slot);
            self.store.end_drains_later(slot);
        }
    }

    /// The time of a list is over: its messages are doomed.
    pub(crate) fn end_list(&mut self, slot: QueueSlot) {
        let (above, below) = (self.store.next.front, self.store.next.message);
        let queue = self.store.queues.at_mut(slot);
        let at = queue.index.lifetime.at.expect("invariant: a list ends that has a deadline");
        assert!(queue.is_list(), "a deadline is that of a list");
        let forgets_at = queue.forgets_at();
        let doomed = queue.index.counts.doom();
        let ready = queue.delivery.dispatch.take_all();
        if queue.index.doomed.first().is_none() {
            queue.index.doomed = ready;
        } else {
            for (priority, order) in ready.iter() {
                queue.index.doomed.insert(priority, order);
            }
        }
        for view in queue.delivery.views.values_mut() {
            view.dispatch.take_all();
        }
        self.store.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        let before = queue.index.lifetime.over.map_or(at, |over| over.at);
        let over = Over { at: at.max(before), above, below };
        self.store.totals.counts.doom_some(&doomed);
        self.keyspace.list_ended(slot, &mut self.store);
        self.keyspace.change_lifetime(
            slot,
            ListLifetime { at: None, over: Some(over) },
            &mut self.store,
        );
        self.touched_list(slot);
    }

    /// Tells the log the lifetimes that have changed. Where the frame has become long, or the room
    /// short, it hears of lists whose queues hold nothing any more when there are such lists again:
    /// until then it does not matter.
    pub(crate) fn state_lifetimes(&mut self, effects: &mut Effects) {
        if !self.keyspace.unstated.is_empty() {
            self.state_changed_lifetimes(effects);
        }
    }

    fn state_changed_lifetimes(&mut self, effects: &mut Effects) {
        while let Some(name) = self.keyspace.unstated.pop_first() {
            let slot = self.store.queues.find(name.as_str());
            let is_empty =
                slot.is_none_or(|slot| self.store.queues.at(slot).index.counts.sum() == 0);
            if is_empty && !self.log.takes_change() {
                self.keyspace.stale.insert(name);
                continue;
            }
            if let Some(slot) = slot {
                self.spare_held(slot, effects);
            }
            self.log.make_way(DEADLINE_BYTES_MAX, effects);
            self.state_lifetime(&name, effects);
        }
    }

    /// What is held of a list that is over is its holders'. The log knows no holders: before it
    /// hears that the list is over, it hears of new places for what is held.
    fn spare_held(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let queue = self.store.queues.at(slot);
        if queue.index.lifetime.over.is_none()
            || queue.index.counts.leased == 0
            || self.log.is_whole()
        {
            return;
        }
        let mut looks = 0;
        let held = self.sessions.iter().flat_map(|(_, session)| session.holds());
        let held = held.take(HELD_LOOKS_MAX).inspect(|_| looks += 1);
        let mut held: Vec<_> = held.filter(|id| self.store.living(*id).queue == slot).collect();
        // The first of them goes in front last, and so stays the first.
        held.sort_unstable_by_key(|id| core::cmp::Reverse(self.store.living(*id).order(*id)));
        self.store.took_steps(looks);
        for id in held {
            if !self.log.may_say_where() {
                return;
            }
            // It is in no index that knows its place.
            if self.spare(id) {
                self.log.make_way(CHANGED_BYTES_MAX, effects);
                self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
            }
        }
    }

    /// The log is about to hear of a message for this queue: if it knows a lifetime of its list
    /// that is over, it is told first. Later might be a frame later, and a crash in between would
    /// give the new list the deadline of the old one.
    pub(crate) fn state_if_stale(&mut self, slot: QueueSlot, effects: &mut Effects) {
        if !self.keyspace.is_stale(slot, &self.store) {
            return;
        }
        let name = self.store.queues.at(slot).name.clone();
        self.state_lifetime(&name, effects);
        // A batch has room for it beside all else; other frames may have none.
        if !self.log.is_whole() {
            self.log.seal(effects);
        }
    }

    /// Tells the log the lifetime of the list of that name, as it is.
    pub(crate) fn state_lifetime(&mut self, name: &QueueName, effects: &mut Effects) -> DependsOn {
        self.keyspace.lifetime_is_stated(name);
        let level = self.context.key_level();
        if level == Durability::None {
            return DependsOn::NOTHING;
        }
        let record = RecordView::KeyDeadline(self.store.lifetime_view(name));
        let placed = self.log.append(&record, level, effects);
        DependsOn::new(placed.lsn, level)
    }

    /// A message that is held, or in no index, comes back to its queue. Where a list is still being
    /// deleted there, it would lie among what is, as far as the log knows, and a restart would
    /// delete it too: so it gets a place in front of all, of which the log is to be told. Says
    /// whether it did.
    pub(crate) fn spare(&mut self, id: MessageId) -> bool {
        let slot = self.store.living(id).queue;
        self.end_list_if_over(slot);
        let Some(over) = self.store.queues.at(slot).index.lifetime.over else { return false };
        let message = self.store.living(id);
        if !message.is_journalled() || !over.has(message.order(id), message.created) {
            return false;
        }
        let order = self.store.first_place();
        self.store.reorder(id, order);
        true
    }
}

impl Keyspace {
    /// The last doomed message of a queue is gone.
    pub(crate) fn doom_is_done(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let at = store.queues.at(slot).index.lifetime.at;
        self.change_lifetime(slot, ListLifetime { at, over: None }, store);
    }

    /// A list that was empty only while one element took another's place keeps its deadline.
    pub(crate) fn keep_deadline(
        &mut self,
        slot: QueueSlot,
        at: Option<Nanos>,
        store: &mut MessageStore,
    ) {
        let queue = store.queues.at(slot);
        if queue.index.lifetime.at != at && queue.is_list() {
            let over = queue.index.lifetime.over;
            self.change_lifetime(slot, ListLifetime { at, over }, store);
        }
    }

    /// Sets the lifetime of a list; the log is told before the frame ends.
    pub(crate) fn change_lifetime(
        &mut self,
        slot: QueueSlot,
        lifetime: ListLifetime,
        store: &mut MessageStore,
    ) {
        let queue = store.queues.at_mut(slot);
        let before = core::mem::replace(&mut queue.index.lifetime, lifetime);
        let name = queue.name.clone();
        let bytes = |lifetime| snapshot_bytes(&name, lifetime);
        store.totals.snapshot_bytes = store.totals.snapshot_bytes + bytes(lifetime) - bytes(before);
        store.timers.change(Timer::End(slot), before.at, lifetime.at);
        if lifetime == ListLifetime::default() {
            self.limited.remove(&name);
        } else {
            self.limited.insert(name.clone());
        }
        self.unstated.insert(name);
    }

    /// The log was just told the lifetime of the list of that name.
    pub(crate) fn lifetime_is_stated(&mut self, name: &QueueName) {
        self.unstated.remove(name);
        self.stale.remove(name);
    }

    /// Whether the log knows another lifetime of the list of this queue than it has.
    pub(crate) fn is_stale(&self, slot: QueueSlot, store: &MessageStore) -> bool {
        self.stale.contains(&store.queues.at(slot).name)
    }

    /// Dooms those ready messages of a queue that are over, as the log has it.
    pub(crate) fn doom_again(&mut self, slot: QueueSlot, over: Over, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        let is_over =
            |place: &(u32, i64)| over.has(place.1, store.living(store.message_of(place.1)).created);
        let doomed: Vec<_> = queue.delivery.dispatch.ready().iter().filter(is_over).collect();
        for (priority, order) in doomed {
            self.doom_one(slot, priority, order, store);
        }
    }

    fn doom_one(&mut self, slot: QueueSlot, priority: u32, order: i64, store: &mut MessageStore) {
        let id = store.message_of(order);
        let entry = store.queues.at(slot).entry_of(id, store.living(id));
        let mut one = Counts::default();
        one.add(State::Ready, priority);
        let queue = store.queues.at_mut(slot);
        let forgets_at = queue.forgets_at();
        queue.delivery.dispatch.remove(entry);
        queue.index.doomed.insert(priority, order);
        queue.index.counts.doom_some(&one);
        store.totals.counts.doom_some(&one);
        store.timers.change(Timer::Forget(slot), forgets_at, queue.forgets_at());
        if queue.index.counts.ready == 0 {
            self.list_ended(slot, store);
        }
    }
}

impl MessageStore {
    /// What the log is to know of the list of that name.
    pub(crate) fn lifetime_view<'a>(&self, name: &'a QueueName) -> DeadlineView<'a> {
        let slot = self.queues.find(name.as_str());
        let queue = slot.map(|slot| self.queues.at(slot)).filter(|queue| queue.role == Role::Named);
        let ListLifetime { at, over } = queue.map(|queue| queue.index.lifetime).unwrap_or_default();
        DeadlineView { name: name.as_str(), of_value: false, at, over }
    }
}

impl Log {
    /// Whether the log has room for the place of one that is spared. What is kept for deleting is
    /// not for that.
    pub(crate) fn may_say_where(&self) -> bool {
        self.takes_change() && !self.is_scarce()
    }
}

/// Held messages, of whatever queues, that are looked at when a list is over.
const HELD_LOOKS_MAX: usize = 100_000;

/// What the lifetime of a list may take in a snapshot.
pub(crate) fn snapshot_bytes(name: &QueueName, lifetime: ListLifetime) -> u64 {
    let is_default = lifetime == ListLifetime::default();
    if is_default { 0 } else { (name.as_str().len() + LIFETIME_BYTES_MAX) as u64 }
}

/// What a KeyDeadline record has beside the name, and its share of what a chunk costs.
const LIFETIME_BYTES_MAX: usize = 2 + 2 + 8 + 8 + 9 + 9 + 8;

//! Deadlines of keys, and the lifetime of lists in the log.

use alloc::vec::Vec;

use model::{
    Deadline, DeadlineRule, DependsOn, Durability, Lifetime, MessageId, Nanos, QueueName, Refusal,
    Reply,
};
use records::{CHANGED_BYTES_MAX, DeadlineView, ExpiredList, RecordView};

use crate::Effects;
use crate::engine::Engine;
use crate::ids::QueueSlot;
use crate::keyspace::setting::{DEADLINE_BYTES_MAX, KEY_RECORDS_MAX, ready_max};
use crate::keyspace::{Key, Value};
use crate::log::DELETED_BYTES_MAX;
use crate::outcome::Outcome;
use crate::store::queue::ListLifetime;

impl Engine {
    pub(crate) fn set_deadline(
        &mut self,
        name: &QueueName,
        deadline: Deadline,
        rule: DeadlineRule,
        effects: &mut Effects,
    ) -> Outcome {
        let key = self.find_key(name);
        let at = self.store.moment_of(deadline);
        let allowed =
            key.filter(|key| allows(rule, self.keyspace.deadline_of(name, *key, &self.store), at));
        let changed = allowed
            .map_or(Ok(0), |key| self.give_deadline(name, key, Some(at), effects).map(|()| 1));
        match changed {
            Ok(count) => Outcome::reply(self.log.after_all(), Reply::Count(count)),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn clear_deadline(&mut self, name: &QueueName, effects: &mut Effects) -> Outcome {
        let key = self.find_key(name);
        let limited =
            key.filter(|key| self.keyspace.deadline_of(name, *key, &self.store).is_some());
        let changed =
            limited.map_or(Ok(0), |key| self.give_deadline(name, key, None, effects).map(|()| 1));
        match changed {
            Ok(count) => Outcome::reply(self.log.after_all(), Reply::Count(count)),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn lifetime_of_key(&mut self, name: &QueueName) -> Outcome {
        let Some(key) = self.find_key(name) else { return self.log.not_found() };
        let at = self.keyspace.deadline_of(name, key, &self.store);
        let left = at.map(|at| at.since(self.store.latest));
        Outcome::reply(self.log.after_all(), Reply::Lifetime(Lifetime { at, left }))
    }

    fn give_deadline(
        &mut self,
        name: &QueueName,
        key: Key,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        match (key, at) {
            (Key::Value, Some(at)) if at <= self.store.latest => {
                self.delete_value(name, effects);
                Ok(())
            }
            (Key::Value, at) => self.give_value_deadline(name, at, effects),
            (Key::List(slot), Some(at)) if at <= self.store.latest => {
                self.end_now(slot, name, effects)
            }
            (Key::List(slot), at) => self.give_list_deadline(slot, name, at, effects),
        }
    }

    fn give_value_deadline(
        &mut self,
        name: &QueueName,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: true, at, over: None },
            effects,
        )?;
        let value = self.keyspace.values().get(name, self.store.latest).cloned();
        let value = value.expect("invariant: it was just found");
        self.insert_value(name, Value { at, ..value });
        Ok(())
    }

    fn give_list_deadline(
        &mut self,
        slot: QueueSlot,
        name: &QueueName,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let over = self.store.queues.at(slot).lifetime().over;
        self.log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: false, at, over },
            effects,
        )?;
        self.keyspace.change_lifetime(slot, ListLifetime { at, over }, &mut self.store);
        self.keyspace.lifetime_is_stated(name);
        self.keyspace.touched(name, &mut self.store);
        Ok(())
    }

    /// Ends a list that is past its deadline. A long list ends at the next moment: messages stored
    /// at this very moment must be told from it.
    fn end_now(
        &mut self,
        slot: QueueSlot,
        name: &QueueName,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let count = self.store.ready_count(slot);
        let bytes = count.saturating_mul(DELETED_BYTES_MAX);
        if count <= ready_max(KEY_RECORDS_MAX) && self.log.surely_takes(bytes) {
            self.delete_list(slot, effects);
            return Ok(());
        }
        self.give_list_deadline(slot, name, Some(self.store.latest + Nanos(1)), effects)
    }
}

impl Engine {
    /// Notices that the time of a list is over, if it is.
    #[inline]
    pub(crate) fn end_list_if_over(&mut self, slot: QueueSlot) {
        if self.store.queues.at(slot).is_ended(self.store.latest) {
            self.end_list(slot);
            self.store.end_drains_later(slot);
        }
    }

    /// The time of a list is over: its ready messages become expired members.
    pub(crate) fn end_list(&mut self, slot: QueueSlot) {
        let (above, below) = self.store.places_given_out();
        let queue = self.store.queues.at(slot);
        let ListLifetime { at, over } = queue.lifetime();
        let at = at.expect("invariant: a list ends that has a deadline");
        assert!(queue.is_list(), "a deadline is that of a list");
        self.store.expire_ready(slot);
        let before = over.map_or(at, |over| over.at);
        let over = ExpiredList { at: at.max(before), above, below };
        self.keyspace.list_ended(slot, &mut self.store);
        self.keyspace.change_lifetime(
            slot,
            ListLifetime { at: None, over: Some(over) },
            &mut self.store,
        );
        self.touched_list(slot);
    }

    /// Tells the log the lifetimes that have changed. If the frame has become long, or the room
    /// short, lists with empty queues are left out. The log hears of these when there are such
    /// lists again: until then it does not matter.
    pub(crate) fn state_lifetimes(&mut self, effects: &mut Effects) {
        if self.keyspace.has_unstated() {
            self.state_changed_lifetimes(effects);
        }
    }

    fn state_changed_lifetimes(&mut self, effects: &mut Effects) {
        while let Some(name) = self.keyspace.next_unstated() {
            let slot = self.store.queues.find(name.as_str());
            let is_empty = slot.is_none_or(|slot| self.store.queues.at(slot).counts().sum() == 0);
            if is_empty && !self.log.takes_change() {
                self.keyspace.put_off(name);
                continue;
            }
            if let Some(slot) = slot {
                self.spare_held(slot, effects);
            }
            self.log.make_way(DEADLINE_BYTES_MAX, effects);
            self.state_lifetime(&name, effects);
        }
    }

    /// Held messages of an expired list belong to their holders. The log knows no holders. So it
    /// hears of new places for held messages before it hears that the list is over.
    fn spare_held(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let queue = self.store.queues.at(slot);
        if queue.lifetime().over.is_none() || queue.counts().leased() == 0 || self.log.is_whole() {
            return;
        }
        let mut looks = 0;
        let held = self.sessions.iter().flat_map(|(_, session)| session.holds());
        let held = held.take(HELD_LOOKS_MAX).inspect(|_| looks += 1);
        let mut held: Vec<_> = held.filter(|id| self.store.message(*id).queue() == slot).collect();
        // The first of them goes in front last, and so stays the first.
        held.sort_unstable_by_key(|id| core::cmp::Reverse(self.store.message(*id).order(*id)));
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
        let level = self.log.key_level();
        if level == Durability::None {
            return DependsOn::NOTHING;
        }
        let record = RecordView::KeyDeadline(self.store.lifetime_view(name));
        let placed = self.log.append(&record, level, effects);
        DependsOn::new(placed.lsn, level)
    }

    /// A message that is held, or in no index, comes back to its queue.
    ///
    /// While a list is still being deleted there, the message would lie among the deleted ones, as
    /// far as the log knows. A restart would delete it too. So it gets a place in front of all, and
    /// the log is to be told. Returns whether it got one.
    pub(crate) fn spare(&mut self, id: MessageId) -> bool {
        let slot = self.store.message(id).queue();
        self.end_list_if_over(slot);
        let Some(over) = self.store.queues.at(slot).lifetime().over else { return false };
        let message = self.store.message(id);
        if !message.is_journalled() || !over.has(message.order(id), message.created()) {
            return false;
        }
        let order = self.store.first_place();
        self.store.reorder(id, order);
        true
    }
}

/// True if a deadline may be set where there is that one.
fn allows(rule: DeadlineRule, before: Option<Nanos>, at: Nanos) -> bool {
    match rule {
        DeadlineRule::Always => true,
        DeadlineRule::IfNone => before.is_none(),
        DeadlineRule::IfSome => before.is_some(),
        DeadlineRule::IfLater => before.is_some_and(|before| at > before),
        DeadlineRule::IfEarlier => before.is_none_or(|before| at < before),
        DeadlineRule::IfSomeEarlier => before.is_some_and(|before| at < before),
    }
}

/// Held messages, of any queues, that are looked at when a list is over.
const HELD_LOOKS_MAX: usize = 100_000;

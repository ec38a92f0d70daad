//! Commands on keys: setting, renaming, deleting, reading.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Durability, KeyCommand, KeyKind, QueueName, Refusal, Reply, SetRule, ValueDeadline, Values,
    limits,
};
use records::{CHANGED_BYTES_MAX, RecordView};

use crate::Effects;
use crate::delivery::move_messages::RELOCATION_BYTES_MAX;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::deleting::Deletion;
use crate::keyspace::lists::runs::{SHOWN_BYTES_MAX, STEPS};
use crate::keyspace::setting::{DEADLINE_BYTES_MAX, KEY_RECORDS_MAX, Wish, ready_max};
use crate::keyspace::{Key, Value};
use crate::log::DELETED_BYTES_MAX;
use crate::outcome::Outcome;
use crate::store::queue::{ListLifetime, Role};

impl Engine {
    pub(crate) fn key(
        &mut self,
        _by: SessionSlot,
        command: KeyCommand,
        effects: &mut Effects,
    ) -> Outcome {
        match command {
            KeyCommand::Kind { name } => self.kind_of_key(&name),
            KeyCommand::CountOf { names } => self.count_of_keys(&names),
            KeyCommand::Delete { names } => self.delete_keys(&names, effects),
            KeyCommand::DeleteAll => self.delete_all_keys(effects),
            KeyCommand::Rename { from, to, only_new } => {
                self.rename_key(&from, &to, only_new, effects)
            }
            KeyCommand::SetDeadline { name, deadline, rule } => {
                self.set_deadline(&name, deadline, rule, effects)
            }
            KeyCommand::ClearDeadline { name } => self.clear_deadline(&name, effects),
            KeyCommand::Lifetime { name } => self.lifetime_of_key(&name),
            KeyCommand::Names { after, max, kind } => {
                self.keyspace.names_of_keys(after, max, kind, &mut self.store, &self.log)
            }
            KeyCommand::CountAll => self.keyspace.count_keys(&mut self.store, &self.log),
            KeyCommand::SetValue { name, value, deadline, rule, want_old } => {
                let wish = Wish { value, deadline, rule, want_old };
                self.set_value(&name, wish, effects)
            }
            KeyCommand::Value { name, take } => self.value_of_key(&name, take, effects),
            KeyCommand::ValueEach { names } => self.values_of_keys(names),
        }
    }

    /// The key found by this name.
    pub(crate) fn find_key(&mut self, name: &QueueName) -> Option<Key> {
        if self.keyspace.is_value(name, &self.store) {
            return Some(Key::Value);
        }
        self.find_list(name).map(Key::List)
    }

    /// The queue of this name if it is a list: also behind a value.
    pub(crate) fn find_list(&mut self, name: &QueueName) -> Option<QueueSlot> {
        let slot = self.store.queues.find(name.as_str())?;
        self.end_list_if_over(slot);
        self.store.queues.at(slot).is_list().then_some(slot)
    }

    /// A key past its time goes now rather than by time.
    pub(crate) fn notice_end(&mut self, name: &QueueName, effects: &mut Effects) {
        if self.keyspace.values().holds(name) && !self.keyspace.is_value(name, &self.store) {
            self.delete_value(name, effects);
        }
        self.find_list(name);
    }

    fn kind_of_key(&mut self, name: &QueueName) -> Outcome {
        let kind = self.find_key(name).map(|key| match key {
            Key::List(_) => KeyKind::List,
            Key::Value => KeyKind::Value,
        });
        Outcome::reply(self.log.after_all(), Reply::Kind(kind))
    }

    fn count_of_keys(&mut self, names: &[QueueName]) -> Outcome {
        self.store.took_steps(names.len());
        let count = names.iter().filter(|name| self.find_key(name).is_some()).count();
        Outcome::reply(self.log.after_all(), Reply::Count(count as u64))
    }
}

impl Engine {
    pub(crate) fn set_value(
        &mut self,
        name: &QueueName,
        wish: Wish,
        effects: &mut Effects,
    ) -> Outcome {
        let there = self.keyspace.values().get(name, self.store.latest);
        let before = there.map(|value| Arc::clone(&value.bytes));
        let list = if before.is_some() { None } else { self.find_list(name) };
        if wish.want_old && list.is_some() {
            return self.log.refuse(Refusal::WrongKind);
        }
        let key = list.map(Key::List).or(before.as_ref().map(|_| Key::Value));
        let old = before.filter(|_| wish.want_old);
        let allowed = match wish.rule {
            SetRule::Always => true,
            SetRule::IfNone => key.is_none(),
            SetRule::IfSome => key.is_some(),
        };
        if !allowed {
            let replaced = Reply::Replaced { set: false, old };
            let reply = if wish.want_old { replaced } else { Reply::NotFound };
            return Outcome::reply(self.log.after_all(), reply);
        }
        let at = match wish.deadline {
            ValueDeadline::Never => None,
            // Of any key of the name: a list's as well.
            ValueDeadline::Kept => {
                key.and_then(|key| self.keyspace.deadline_of(name, key, &self.store))
            }
            ValueDeadline::New(deadline) => Some(self.store.moment_of(deadline)),
        };
        match self.replace_key(name, list, Value { bytes: wish.value, at }, effects) {
            Ok(()) => Outcome::reply(self.log.after_all(), Reply::Replaced { set: true, old }),
            Err(refusal) => self.log.refuse(refusal),
        }
    }

    pub(crate) fn value_of_key(
        &mut self,
        name: &QueueName,
        take: bool,
        effects: &mut Effects,
    ) -> Outcome {
        let there = self.keyspace.values().get(name, self.store.latest);
        let bytes = match there.map(|value| Arc::clone(&value.bytes)) {
            Some(_) if take => self.delete_value(name, effects).map(|value| value.bytes),
            None if self.find_list(name).is_some() => return self.log.refuse(Refusal::WrongKind),
            bytes => bytes,
        };
        Outcome::reply(self.log.after_all(), Reply::Value(bytes))
    }

    /// So many of them as are not too much for one answer: at least one.
    pub(crate) fn values_of_keys(&mut self, mut names: Vec<QueueName>) -> Outcome {
        let (mut found, mut bytes) = (Vec::with_capacity(names.len()), 0);
        for name in &names {
            if bytes >= SHOWN_BYTES_MAX {
                break;
            }
            let there = self.keyspace.values().get(name, self.store.latest);
            let value = there.map(|value| Arc::clone(&value.bytes));
            bytes += value.as_ref().map_or(0, |value| value.len());
            let is_list = value.is_none() && self.find_list(name).is_some();
            found.push(if is_list { Err(Refusal::WrongKind) } else { Ok(value) });
        }
        self.store.took_steps(STEPS * found.len());
        let rest = names.split_off(found.len());
        Outcome::reply(self.log.after_all(), Reply::Values(Box::new(Values { found, rest })))
    }

    /// Stores a value in place of the key of that name: a value, or this list, which is deleted.
    pub(crate) fn replace_key(
        &mut self,
        name: &QueueName,
        list: Option<QueueSlot>,
        value: Value,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let count = list.map_or(0, |slot| self.store.ready_count(slot));
        if count > ready_max(KEY_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        if !self.log.surely_takes(count * DELETED_BYTES_MAX + DEADLINE_BYTES_MAX) {
            return Err(Refusal::StoreFull);
        }
        self.keyspace.values().takes(name, value.bytes.len(), self.bodies.beside_messages_max())?;
        self.log.store_value(name, &value, effects)?;
        if let Some(slot) = list {
            self.delete_list(slot, effects);
        }
        self.insert_value(name, value);
        Ok(())
    }

    /// Deletes a value, unless its time was over.
    pub(crate) fn delete_value(
        &mut self,
        name: &QueueName,
        effects: &mut Effects,
    ) -> Option<Value> {
        let is_over = !self.keyspace.is_value(name, &self.store);
        let value = self.remove_value(name)?;
        if self.log.key_level() != Durability::None {
            let record = RecordView::ValueDeleted { name: name.as_str() };
            self.log.append(&record, self.log.key_level(), effects);
        }
        (!is_over).then_some(value)
    }

    /// The time of the first value is over.
    pub(crate) fn end_next_value(&mut self, effects: &mut Effects) {
        let first = self.keyspace.values().first_deadline().cloned();
        let (at, name) = first.expect("invariant: the timer is set while values have deadlines");
        assert!(at <= self.store.latest, "a value goes when its time is over");
        self.delete_value(&name, effects);
    }
}

impl Engine {
    pub(crate) fn rename_key(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        only_new: bool,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(key) = self.find_key(from) else { return self.log.not_found() };
        if only_new && self.find_key(to).is_some() {
            return Outcome::reply(self.log.after_all(), Reply::Count(0));
        }
        if from == to {
            return Outcome::reply(self.log.after_all(), Reply::Done);
        }
        let renamed = match key {
            Key::Value => self.rename_value(from, to, effects).map(|()| None),
            Key::List(slot) => self.rename_list(slot, from, to, effects).map(Some),
        };
        let done = || Outcome::reply(self.log.after_all(), Reply::Done);
        match renamed {
            Ok(Some(slot)) => done().waking(slot),
            Ok(None) => done(),
            Err(refusal) => self.log.refuse(refusal),
        }
    }

    fn rename_value(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let value = self.keyspace.values().get(from, self.store.latest).cloned();
        let value = value.expect("invariant: it was just found");
        let list = match self.find_key(to) {
            Some(Key::List(slot)) => Some(slot),
            Some(Key::Value) | None => None,
        };
        self.replace_key(to, list, value, effects)?;
        self.delete_value(from, effects);
        Ok(())
    }

    /// Moves the ready messages of one queue to another, in their order, and the list's deadline.
    /// All is one frame.
    fn rename_list(
        &mut self,
        from_slot: QueueSlot,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<QueueSlot, Refusal> {
        let there = self.find_list(to);
        let deleted = there.map_or(0, |slot| self.store.ready_count(slot));
        let moved = self.store.ready_count(from_slot);
        if moved.saturating_add(deleted) > ready_max(KEY_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        let record_bytes = CHANGED_BYTES_MAX - limits::QUEUE_NAME_BYTES_MAX + to.as_str().len();
        let bytes = moved * record_bytes + deleted * DELETED_BYTES_MAX + 2 * DEADLINE_BYTES_MAX;
        if bytes > self.log.frame_bytes_max() {
            return Err(Refusal::ListTooLong);
        }
        let room = moved as u64 * RELOCATION_BYTES_MAX;
        if !self.log.surely_takes(bytes) || room > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        let to_slot = self.directory.find_or_create(to.clone(), &mut self.store)?;
        if self.store.queues.at(to_slot).role != Role::Named {
            return Err(Refusal::NoSuchDestination);
        }
        // Or else it might go when it is empty.
        self.store.queues.at_mut(to_slot).keep();
        self.delete_value(to, effects);
        self.delete_list(to_slot, effects);
        let at = self.store.queues.at(from_slot).lifetime().at;
        self.move_list(from_slot, to_slot, effects);
        self.store.queues.at_mut(to_slot).let_go();
        if at.is_some() {
            let over = self.store.queues.at(to_slot).lifetime().over;
            self.keyspace.change_lifetime(to_slot, ListLifetime { at, over }, &mut self.store);
            self.state_lifetime(from, effects);
            self.state_lifetime(to, effects);
        }
        Ok(to_slot)
    }

    fn move_list(&mut self, from: QueueSlot, to: QueueSlot, effects: &mut Effects) {
        while let Some((_, order)) =
            self.store.queues.get(from).and_then(|queue| queue.delivery.dispatch.ready().first())
        {
            let id = self.store.message_of(order);
            self.unindex(id);
            let order = self.store.last_place();
            self.relocate(id, to, order, effects);
        }
        self.store.end_drains_later(from);
    }
}

impl Engine {
    pub(crate) fn delete_keys(&mut self, names: &[QueueName], effects: &mut Effects) -> Outcome {
        self.store.took_steps(names.len());
        let mut deletion = Deletion::begin();
        for name in names {
            let Some(key) = self.find_key(name) else { continue };
            if !self.delete_key(name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys()), deletion);
            }
        }
        self.log.deleted(Reply::Count(deletion.keys()), deletion)
    }

    pub(crate) fn delete_all_keys(&mut self, effects: &mut Effects) -> Outcome {
        self.store.took_steps(self.store.queues.count());
        let mut deletion = Deletion::begin();
        // One more than it may delete: then there is more.
        let at_once = deletion.left() + 1;
        let values = self.keyspace.values().iter_after(None).take(at_once);
        let values: Vec<_> = values.map(|(name, _)| (name.clone(), Key::Value)).collect();
        // Those that are over are no keys any more, and go by themselves.
        let is_over = |slot| self.store.queues.at(slot).is_ended(self.store.latest);
        let lists = self.store.queues.lists().filter(|(slot, _)| !is_over(*slot)).take(at_once);
        let lists: Vec<_> = lists.map(|(slot, name)| (name.clone(), Key::List(slot))).collect();
        for (name, key) in values.into_iter().chain(lists) {
            if !self.delete_key(&name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys()), deletion);
            }
        }
        self.log.deleted(Reply::Done, deletion)
    }

    /// Deletes all ready messages of a queue, which are known to fit into the frame.
    pub(crate) fn delete_list(&mut self, slot: QueueSlot, effects: &mut Effects) {
        while self.delete_first(slot, effects) {}
        self.store.end_drains_later(slot);
    }

    /// False where there is more of it than one command may delete.
    fn delete_key(
        &mut self,
        name: &QueueName,
        key: Key,
        deletion: &mut Deletion,
        effects: &mut Effects,
    ) -> bool {
        match key {
            Key::Value => {
                if !deletion.takes_one() || !self.log.takes_change() {
                    return false;
                }
                self.delete_value(name, effects);
            }
            Key::List(slot) => {
                deletion.touch(slot);
                while self.store.queues.get(slot).is_some_and(|queue| queue.counts().ready() > 0) {
                    if !deletion.takes_one() || !self.log.takes_change() {
                        return false;
                    }
                    self.delete_first(slot, effects);
                }
            }
        }
        deletion.count_key();
        true
    }

    /// Deletes the first ready message; false where there is none. The queue may go with it.
    fn delete_first(&mut self, slot: QueueSlot, effects: &mut Effects) -> bool {
        let first =
            self.store.queues.get(slot).and_then(|queue| queue.delivery.dispatch.ready().first());
        let Some((_, order)) = first else { return false };
        let id = self.store.message_of(order);
        self.unindex(id);
        self.finish(id, effects);
        true
    }
}

impl Engine {
    /// A value is there from now on, in place of the key that was there.
    pub(crate) fn insert_value(&mut self, name: &QueueName, value: Value) {
        self.keyspace.insert_value(name, value, &mut self.store);
    }

    /// A value is gone.
    pub(crate) fn remove_value(&mut self, name: &QueueName) -> Option<Value> {
        self.keyspace.remove_value(name, &mut self.store)
    }
}

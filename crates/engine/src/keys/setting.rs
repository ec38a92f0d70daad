//! Setting, reading and deleting small values.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Deadline, DependsOn, Durability, Nanos, QueueName, Refusal, Reply, SetRule, ValueDeadline,
    Values, limits,
};
use records::{RecordView, ValueView};

use super::{Key, Value};
use crate::Effects;
use crate::engine::{Context, Engine, MessageStore, Outcome};
use crate::lists::runs::{SHOWN_BYTES_MAX, STEPS};
use crate::log::{DELETED_BYTES_MAX, Log};
use crate::queue::QueueSlot;

/// What a value is to be, and under which condition.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) value: Arc<[u8]>,
    pub(crate) deadline: ValueDeadline,
    pub(crate) rule: SetRule,
    pub(crate) want_old: bool,
}

impl Engine {
    pub(crate) fn set_value(
        &mut self,
        name: &QueueName,
        wish: Wish,
        effects: &mut Effects,
    ) -> Outcome {
        let there = self.keyspace.values.get(name, self.store.latest);
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
            // Of whatever had the name: a list's as well.
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
        let there = self.keyspace.values.get(name, self.store.latest);
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
            let there = self.keyspace.values.get(name, self.store.latest);
            let value = there.map(|value| Arc::clone(&value.bytes));
            bytes += value.as_ref().map_or(0, |value| value.len());
            let is_list = value.is_none() && self.find_list(name).is_some();
            found.push(if is_list { Err(Refusal::WrongKind) } else { Ok(value) });
        }
        self.store.took_steps(STEPS * found.len());
        let rest = names.split_off(found.len());
        Outcome::reply(self.log.after_all(), Reply::Values(Box::new(Values { found, rest })))
    }

    /// Stores a value in place of whatever has that name: a value, or this list, which is deleted.
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
        self.keyspace.values.takes(
            name,
            value.bytes.len(),
            self.bodies.memory.beside_messages_max(),
        )?;
        self.log.store_value(name, &value, &self.context, effects)?;
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
        if self.context.key_level() != Durability::None {
            let record = RecordView::ValueDeleted { name: name.as_str() };
            self.log.append(&record, self.context.key_level(), effects);
        }
        (!is_over).then_some(value)
    }

    /// The time of the first value is over.
    pub(crate) fn end_next_value(&mut self, effects: &mut Effects) {
        let first = self.keyspace.values.first_deadline().cloned();
        let (at, name) = first.expect("invariant: the timer is set while values have deadlines");
        assert!(at <= self.store.latest, "a value goes when its time is over");
        self.delete_value(&name, effects);
    }
}

impl MessageStore {
    /// The moment that is meant.
    pub(crate) fn moment_of(&self, deadline: Deadline) -> Nanos {
        match deadline {
            Deadline::After(span) => self.latest + span,
            Deadline::At(at) => at,
        }
    }
}

impl Log {
    /// The record of a new value, if there is room for it.
    fn store_value(
        &mut self,
        name: &QueueName,
        value: &Value,
        context: &Context,
        effects: &mut Effects,
    ) -> Result<DependsOn, Refusal> {
        let level = context.key_level();
        if level == Durability::None {
            return Ok(DependsOn::NOTHING);
        }
        let view = ValueView { name: name.as_str(), bytes: &value.bytes, at: value.at };
        let placed = self.store(&RecordView::ValueSet(view), level, effects);
        let placed = placed.map_err(|_| Refusal::StoreFull)?;
        Ok(DependsOn::new(placed.lsn, level))
    }
}

/// Messages that one command may delete or move beside so many other records.
pub(crate) const fn ready_max(others: usize) -> usize {
    limits::FRAME_RECORDS_MAX - others
}

/// Records of a command about a key beside those of messages: two values, two deadlines.
pub(crate) const KEY_RECORDS_MAX: usize = 4;

/// A KeyDeadline record.
pub(crate) const DEADLINE_BYTES_MAX: usize = 32 + limits::QUEUE_NAME_BYTES_MAX;

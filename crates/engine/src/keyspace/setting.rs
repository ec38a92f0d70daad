//! Setting, reading and deleting small values.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Deadline, DependsOn, Durability, Nanos, QueueName, Refusal, Reply, SetRule, ValueDeadline,
    Values, limits,
};
use records::RecordView;

use super::Value;
use crate::Effects;
use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::keyspace::lists::runs::{SHOWN_BYTES_MAX, STEPS};
use crate::log::{DELETED_BYTES_MAX, FrameWriter};
use crate::outcome::Outcome;
use crate::store::MessageStore;

/// The value to set, and the condition for it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) value: Arc<[u8]>,
    pub(crate) deadline: ValueDeadline,
    pub(crate) rule: SetRule,
    pub(crate) want_old: bool,
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

impl FrameWriter {
    /// The record of a new value, if there is room for it.
    pub(crate) fn store_value(
        &mut self,
        name: &QueueName,
        value: &Value,
        effects: &mut Effects,
    ) -> Result<DependsOn, Refusal> {
        let level = self.key_level();
        if level == Durability::None {
            return Ok(DependsOn::NOTHING);
        }
        let placed = self.store(&value.record(name), level, effects);
        Ok(DependsOn::new(placed?.lsn, level))
    }
}

impl Keyspace {
    /// Checks that a value of so many bytes may be stored in place of the key of that name: a
    /// value, or this list. All values may take so much memory.
    pub(crate) fn takes_instead(
        &self,
        name: &QueueName,
        list: Option<QueueSlot>,
        bytes: usize,
        memory_max: u64,
        store: &MessageStore,
        log: &FrameWriter,
    ) -> Result<(), Refusal> {
        let count = list.map_or(0, |slot| store.ready_count(slot));
        if count > ready_max(KEY_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        if !log.surely_takes(count * DELETED_BYTES_MAX + DEADLINE_BYTES_MAX) {
            return Err(Refusal::StoreFull);
        }
        self.takes(name, bytes, memory_max)
    }

    /// Deletes a value, unless its time was over.
    pub(crate) fn delete_value(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Option<Value> {
        let is_over = !self.is_value(name, store);
        let value = self.remove_value(name, store)?;
        debug_assert!(!self.values().holds(name), "a name has one value");
        if log.key_level() != Durability::None {
            let record = RecordView::ValueDeleted { name: name.as_str() };
            log.append(&record, log.key_level(), effects);
        }
        (!is_over).then_some(value)
    }

    /// A value has another name by now, and this one no more.
    pub(crate) fn leave_name(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        let was_there = self.remove_name(name, store).is_some();
        assert!(was_there, "a value leaves the name that it had");
        if log.key_level() != Durability::None {
            let record = RecordView::ValueDeleted { name: name.as_str() };
            log.append(&record, log.key_level(), effects);
        }
    }

    /// The time of the first value is over.
    pub(crate) fn end_next_value(
        &mut self,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        let first = self.values().first_deadline();
        let (at, name) = first.expect("invariant: the timer is set while values have deadlines");
        assert!(at <= store.latest, "a value goes when its time is over");
        self.delete_value(&name, store, log, effects);
    }

    /// A key past its time goes now rather than by time.
    pub(crate) fn notice_end(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        if self.values().holds(name) && !self.is_value(name, store) {
            self.delete_value(name, store, log, effects);
        }
        self.find_list(name, store);
    }

    pub(crate) fn value_of_key(
        &mut self,
        name: &QueueName,
        take: bool,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Outcome {
        let there = self.values().get(name, store.latest);
        let bytes = match there.map(|value| value.shared()) {
            Some(Err(refusal)) => return log.refuse(refusal),
            Some(Ok(bytes)) => {
                if take {
                    self.delete_value(name, store, log, effects);
                }
                Some(bytes)
            }
            None if self.find_list(name, store).is_some() => return log.refuse(Refusal::WrongKind),
            None => None,
        };
        // The answer may look at all of it.
        store.took_steps(bytes.as_ref().map_or(0, |bytes| bytes.len()) / LOOKED_AT_BYTES_PER_STEP);
        Outcome::reply(log.after_all(), Reply::Value(bytes))
    }

    /// All of them as they are at this moment, if they have no more bytes than one answer may show.
    pub(crate) fn values_at_once(
        &mut self,
        names: &[QueueName],
        bytes_max: usize,
        too_much: Refusal,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        if names.len() > limits::BATCH_COMMANDS_MAX {
            return log.refuse(Refusal::BatchTooLarge);
        }
        store.took_steps(STEPS * names.len());
        let now = store.latest;
        let all = names.iter().map(|name| self.values().get(name, now));
        let found: Vec<_> = all.map(|value| Ok(value.and_then(|it| it.shared().ok()))).collect();
        if shown_bytes(&found) > bytes_max {
            return log.refuse(too_much);
        }
        debug_assert_eq!(found.len(), names.len(), "each name has an answer");
        let values = Values { found, rest: Vec::new() };
        Outcome::reply(log.after_all(), Reply::Values(Box::new(values)))
    }

    /// So many of them as are not too much for one answer: at least one.
    pub(crate) fn values_of_keys(
        &mut self,
        mut names: Vec<QueueName>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let (mut found, mut bytes) = (Vec::with_capacity(names.len()), 0);
        for name in &names {
            if bytes >= SHOWN_BYTES_MAX {
                break;
            }
            let there = self.values().get(name, store.latest);
            let value = there.map(|value| value.shared()).transpose();
            let is_list = value == Ok(None) && self.find_list(name, store).is_some();
            let value = if is_list { Err(Refusal::WrongKind) } else { value };
            bytes += value.as_ref().map_or(0, |value| value.as_ref().map_or(0, |it| it.len()));
            found.push(value);
        }
        store.took_steps(STEPS * found.len());
        let rest = names.split_off(found.len());
        Outcome::reply(log.after_all(), Reply::Values(Box::new(Values { found, rest })))
    }
}

/// Bytes that such an answer has.
pub(crate) fn shown_bytes(found: &[Result<Option<Arc<[u8]>>, Refusal>]) -> usize {
    let values = found.iter().map(|value| value.as_ref().ok().and_then(Option::as_ref));
    values.map(|value| limits::BESIDE_ELEMENT_BYTES + value.map_or(0, |value| value.len())).sum()
}

/// Bytes of a value that a command copies, or an answer looks at, in the time of a step.
pub(crate) const LOOKED_AT_BYTES_PER_STEP: usize = 512;

/// Messages that one command may delete or move beside so many other records.
pub(crate) const fn ready_max(others: usize) -> usize {
    limits::FRAME_RECORDS_MAX - others
}

/// Records of a command about a key beside those of messages: two values, two deadlines.
pub(crate) const KEY_RECORDS_MAX: usize = 4;

/// A KeyDeadline record.
pub(crate) const DEADLINE_BYTES_MAX: usize = 32 + limits::QUEUE_NAME_BYTES_MAX;

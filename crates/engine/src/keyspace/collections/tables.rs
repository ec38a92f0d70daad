//! The steps of a transaction on tables: what they come to, its records, and its taking effect.
//!
//! A commit works them out before anything of it happens, against the tables as they are. So it is
//! refused as a whole, or all of it takes effect.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry as Slot;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{CollectionKind, Durability, QueueName, Refusal, Reply, TableAction, TableStep};
use model::{ValueEdit, limits};
use records::{CollectionView, FieldsDraft, RecordView};

use super::changing::{NAME_BYTES_BESIDE, cost};
use super::{Collection, cell_of, value_of};
use crate::Effects;
use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::keyspace::editing::Edited;
use crate::keyspace::{Keyspace, Value};
use crate::log::{FrameWriter, NoRoom};
use crate::store::MessageStore;

/// The outcome of a transaction's steps on tables, before it happens.
#[derive(Debug, Default)]
pub(crate) struct TableChanges<'s> {
    /// The change of each table, and of its keys.
    tables: BTreeMap<&'s QueueName, TableChange<'s>>,
    /// The sums of what is added.
    sums: Vec<i64>,
}

/// The change of one table.
#[derive(Debug)]
struct TableChange<'s> {
    /// The table as it is; for a new one the number that it gets.
    collection: Collection,
    is_new: bool,
    /// The value of each key from then on; `None`: it is gone.
    keys: BTreeMap<&'s [u8], Option<Arc<[u8]>>>,
    /// No key is left.
    ends: bool,
}

/// Bytes of records that a step comes to, at most: of the name and of the key.
pub(crate) fn step_bytes_max(step: &TableStep) -> usize {
    let value = match &step.action {
        TableAction::Expect(_) => return 0,
        TableAction::Put(value) => value.len(),
        TableAction::Add(_) => INTEGER_BYTES_MAX,
        TableAction::Delete => 0,
    };
    let of_key = step.key.len() + value + FieldsDraft::ENTRY_BYTES_MAX;
    2 * RECORD_BYTES_MAX + step.table.as_str().len() + of_key
}

/// Records that a step comes to, at most.
pub(crate) fn step_records_max(step: &TableStep) -> usize {
    if step.writes() { 2 } else { 0 }
}

/// Checks that a table takes such a key and value at all.
pub(crate) fn check_step(step: &TableStep) -> Result<(), Refusal> {
    if step.key.len() > limits::FIELD_BYTES_MAX {
        return Err(Refusal::FieldTooLong);
    }
    match &step.action {
        TableAction::Put(value) if value.len() > limits::VALUE_BYTES_MAX => {
            Err(Refusal::TooManyValues)
        }
        _ => Ok(()),
    }
}

impl TableChanges<'_> {
    /// The sums of what is added, in the order of the steps.
    pub(crate) fn into_sums(self) -> Vec<i64> {
        self.sums
    }
}

impl Keyspace {
    /// The changes that the steps of a transaction come to, if all take so much memory.
    ///
    /// # Errors
    /// The tables are not as expected, or do not take it.
    pub(crate) fn table_changes<'s>(
        &mut self,
        steps: &'s [TableStep],
        memory_max: u64,
        store: &mut MessageStore,
    ) -> Result<TableChanges<'s>, Refusal> {
        store.took_steps(steps.len() * STEPS_PER_STEP);
        for (number, step) in steps.iter().enumerate() {
            let TableAction::Expect(expected) = &step.action else { continue };
            let there = self.collection(&step.table, CollectionKind::Hash, store)?;
            let value = there.and_then(|there| self.collections.get(there.number, &step.key));
            if !expected.holds(value.as_ref().map(value_of)) {
                let step = u32::try_from(number).expect("invariant: steps are counted");
                return Err(Refusal::TableConflict { step });
            }
        }
        let mut changes = TableChanges::default();
        for step in steps.iter().filter(|step| step.writes()) {
            self.add_change(step, &mut changes, store)?;
        }
        self.count_changes(&mut changes);
        self.have_room_for_changes(&changes, memory_max)?;
        Ok(changes)
    }

    fn add_change<'s>(
        &mut self,
        step: &'s TableStep,
        changes: &mut TableChanges<'s>,
        store: &mut MessageStore,
    ) -> Result<(), Refusal> {
        let table = match changes.tables.entry(&step.table) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(vacant) => {
                let there = self.collection(&step.table, CollectionKind::Hash, store)?;
                let collection = there.unwrap_or(Collection::new(CollectionKind::Hash, 0));
                let (is_new, keys) = (there.is_none(), BTreeMap::new());
                vacant.insert(TableChange { collection, is_new, keys, ends: false })
            }
        };
        let value = match &step.action {
            TableAction::Put(value) => Some(Arc::clone(value)),
            TableAction::Delete | TableAction::Expect(_) => None,
            TableAction::Add(more) => {
                let stored = self.collections.get(table.collection.number, &step.key);
                let before = match table.keys.get(&*step.key) {
                    Some(changed) => changed.as_deref(),
                    None => stored.as_ref().map(value_of),
                };
                let edited = Edited::of(before, &ValueEdit::Add(*more), store)?;
                let Reply::Integer(sum) = edited.reply else { return Err(Refusal::NotAnInteger) };
                changes.sums.push(sum);
                edited.bytes
            }
        };
        table.keys.insert(&step.key, value);
        Ok(())
    }

    /// Leaves out what changes nothing, gives new tables their numbers and finds those that end.
    fn count_changes(&self, changes: &mut TableChanges<'_>) {
        let mut number = self.collections.last;
        changes.tables.retain(|_, table| {
            let TableChange { collection, is_new, keys, ends } = table;
            let is_there = |key: &[u8]| self.collections.get(collection.number, key).is_some();
            keys.retain(|key, value| value.is_some() || is_there(key));
            let gone = keys.values().filter(|value| value.is_none()).count();
            *ends = gone == keys.len() && gone as u64 == collection.count;
            if *is_new && !keys.is_empty() {
                number += 1;
                collection.number = number;
            }
            !keys.is_empty()
        });
    }

    fn have_room_for_changes(
        &self,
        changes: &TableChanges<'_>,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let (mut more, mut less) = (0, 0);
        for (name, table) in &changes.tables {
            let of_name = if table.is_new { name.as_str().len() + NAME_BYTES_BESIDE } else { 0 };
            more += of_name;
            for (key, value) in &table.keys {
                let there = self.collections.get(table.collection.number, key);
                less += there.map_or(0, |there| cost(key, value_of(&there).len()));
                more += value.as_ref().map_or(0, |value| cost(key, value.len()));
            }
        }
        let memory = self.memory_bytes() + more as u64;
        let fits = less >= more || memory.saturating_sub(less as u64) <= memory_max;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }

    /// The records of these changes, into the frame or the chain that has begun.
    ///
    /// # Errors
    /// There is no room: the caller takes back what was appended.
    pub(crate) fn log_table_changes(
        &self,
        changes: &TableChanges<'_>,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<(), NoRoom> {
        let level = log.key_level();
        if level == Durability::None {
            return Ok(());
        }
        for (name, table) in &changes.tables {
            let (name, number) = (name.as_str(), table.collection.number);
            if table.ends {
                log.store(&RecordView::ValueDeleted { name }, level, effects)?;
                continue;
            }
            if table.is_new {
                let kind = CollectionKind::Hash;
                let view = CollectionView { name, kind, number, at: None };
                log.store(&RecordView::Collection(view), level, effects)?;
            }
            for (key, value) in &table.keys {
                let mut draft = FieldsDraft::new(number);
                let record = match value {
                    Some(value) => {
                        draft.push_with([key, &[]], value);
                        RecordView::FieldsSet(draft.set())
                    }
                    None => {
                        draft.push([key, &[]]);
                        RecordView::FieldsGone(draft.gone())
                    }
                };
                log.store(&record, level, effects)?;
            }
        }
        Ok(())
    }

    /// These changes take effect: their records are in the log.
    pub(crate) fn apply_table_changes(
        &mut self,
        changes: &TableChanges<'_>,
        store: &mut MessageStore,
    ) {
        for (name, table) in &changes.tables {
            if table.ends {
                self.remove_value(name, store);
                continue;
            }
            let mut collection = table.collection;
            for (key, value) in &table.keys {
                match value {
                    Some(value) => {
                        self.collections.set_counted(&mut collection, key, cell_of(value), None);
                    }
                    None => {
                        let bytes = self.collections.remove(&collection, key);
                        let bytes = bytes.expect("invariant: the key is there") + key.len();
                        collection.bytes -= bytes as u64;
                        collection.count -= 1;
                    }
                }
            }
            if table.is_new {
                let number = self.collections.next();
                assert_eq!(number, collection.number, "a new table has the next number");
                self.insert_value(name, Value::of_collection(collection, None), store);
            } else {
                self.values.recount(name, collection, None);
                self.touched(name, store);
            }
        }
    }
}

/// Bytes of the text of an integer.
const INTEGER_BYTES_MAX: usize = 20;

/// A step is searched for, worked out, written and done.
const STEPS_PER_STEP: usize = 24;

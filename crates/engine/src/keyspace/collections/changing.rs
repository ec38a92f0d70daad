//! Setting entries of collections and taking them out: memory, log, state, counts.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::{CollectionKind, Durability, QueueName, Refusal, limits};
use records::{CollectionView, FieldsDraft, RecordView};

use super::{Collection, Collections, Work, value_of};
use crate::admission::batch_load::{Load, RECORD_BYTES_MAX};
use crate::collections::packed_tree::{Cell, Place};
use crate::keyspace::{Keyspace, NamePlace, Value};

/// A field or member, and the value that it is to have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'p> {
    field: &'p [u8],
    value: Cell<'p>,
    /// Its place, if that was found.
    place: Option<Place>,
}

impl<'p> Pair<'p> {
    pub(super) const fn new(field: &'p [u8], value: Cell<'p>) -> Self {
        Self { field, value, place: None }
    }

    /// The place of the field was found.
    pub(super) const fn at(self, place: Option<Place>) -> Self {
        Self { place, ..self }
    }

    fn value_bytes(&self) -> usize {
        value_of(&self.value).len()
    }
}

impl Keyspace {
    /// Sets entries of the collection that is there, or of a new one in place of any value of the
    /// name, whose place may be known. All of it is in one frame. The number of those that are new.
    pub(super) fn set_entries(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        (place, there): (Option<NamePlace>, Option<Collection>),
        pairs: &[Pair<'_>],
        work: &mut Work<'_>,
    ) -> Result<u64, Refusal> {
        let is_new = there.is_none();
        let next = self.collections.last + 1;
        let mut collection = there.unwrap_or(Collection::new(kind, next));
        debug_assert!(collection.kind == kind && !pairs.is_empty(), "entries of their kind");
        check_lengths(pairs)?;
        self.has_room_for(name, there, pairs, work.memory_max)?;
        log_entries(name, &collection, is_new, pairs, work)?;
        let before = collection;
        for Pair { field, value, place } in pairs {
            self.collections.set_counted(&mut collection, field, *value, *place);
        }
        work.store.took_steps(steps_of(kind) * pairs.len());
        if is_new {
            let number = self.collections.next();
            assert_eq!(number, next, "a new collection has the next number");
            let place = place.unwrap_or_else(|| self.values.find(name).0);
            let value = Value::of_collection(collection, None);
            self.insert_value_at(place, name, value, work.store);
        } else {
            if collection != before {
                self.values.recount(name, collection, place);
            }
            self.touched(name, work.store);
        }
        Ok(collection.count - before.count)
    }

    /// Takes out these entries, which are there, each named once. The collection goes with its
    /// last.
    pub(super) fn take_entries(
        &mut self,
        name: &QueueName,
        collection: Collection,
        fields: &[Vec<u8>],
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let left = collection.count.checked_sub(fields.len() as u64);
        let left = left.expect("invariant: fields that are there are named once");
        if fields.is_empty() {
            return Ok(());
        }
        work.store.took_steps(steps_of(collection.kind) * fields.len());
        if left == 0 {
            return self.take_whole(name, work);
        }
        log_gone(collection.number, fields, work)?;
        let mut collection = collection;
        for field in fields {
            let bytes = self.collections.remove(&collection, field);
            let bytes = bytes.expect("invariant: the field is there") + field.len();
            collection.bytes -= bytes as u64;
        }
        collection.count = left;
        self.values.recount(name, collection, None);
        self.touched(name, work.store);
        Ok(())
    }

    /// Takes out all entries: the collection goes.
    pub(super) fn take_whole(
        &mut self,
        name: &QueueName,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let bytes = RECORD_BYTES_MAX + name.as_str().len();
        if !work.log.makes_way(1, bytes, work.effects) {
            return Err(Refusal::StoreFull);
        }
        self.delete_value(name, work.store, work.log, work.effects);
        Ok(())
    }

    /// Checks that memory takes these entries beside the others, or instead of those of the same
    /// fields.
    fn has_room_for(
        &self,
        name: &QueueName,
        there: Option<Collection>,
        pairs: &[Pair<'_>],
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let of_name = if there.is_none() { name.as_str().len() + NAME_BYTES_BESIDE } else { 0 };
        let more =
            of_name + pairs.iter().map(|pair| cost(pair.field, pair.value_bytes())).sum::<usize>();
        let memory = self.memory_bytes() + more as u64;
        if memory <= memory_max {
            return Ok(());
        }
        // Only now: finding those that go takes time. Of a field that comes twice the last stays.
        let last: BTreeMap<_, _> = pairs.iter().map(|pair| (pair.field, pair.value)).collect();
        let more = of_name
            + last.iter().map(|(field, value)| cost(field, value_of(value).len())).sum::<usize>();
        let number = there.map_or(0, |there| there.number);
        let old = |field: &[u8]| {
            self.collections
                .get(number, field)
                .map_or(0, |value| cost(field, value_of(&value).len()))
        };
        let less = last.keys().map(|field| old(field)).sum::<usize>();
        let memory = self.memory_bytes() + more as u64;
        let fits = less >= more || memory - less as u64 <= memory_max;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }
}

impl Collections {
    /// Sets an entry, and counts it.
    pub(super) fn set_counted(
        &mut self,
        collection: &mut Collection,
        field: &[u8],
        value: Cell<'_>,
        place: Option<Place>,
    ) {
        let before = self.set(collection, field, value, place);
        collection.bytes += value_of(&value).len() as u64;
        match before {
            Some(bytes) => collection.bytes -= bytes as u64,
            None => {
                collection.count += 1;
                collection.bytes += field.len() as u64;
            }
        }
    }
}

fn check_lengths(pairs: &[Pair<'_>]) -> Result<(), Refusal> {
    if pairs.len() > limits::COMMAND_ENTRIES_MAX {
        return Err(Refusal::BatchTooLarge);
    }
    for pair in pairs {
        if pair.field.len() > limits::FIELD_BYTES_MAX {
            return Err(Refusal::FieldTooLong);
        }
        if pair.value_bytes() > limits::VALUE_BYTES_MAX {
            return Err(Refusal::TooManyValues);
        }
    }
    Ok(())
}

/// The records of entries that are set, if there is room for them.
fn log_entries(
    name: &QueueName,
    collection: &Collection,
    is_new: bool,
    pairs: &[Pair<'_>],
    work: &mut Work<'_>,
) -> Result<(), Refusal> {
    let level = work.log.key_level();
    if level == Durability::None {
        return Ok(());
    }
    let Collection { kind, number, .. } = *collection;
    let mut draft = FieldsDraft::new(number);
    pairs.iter().for_each(|pair| draft.push_with([pair.field, &[]], value_of(&pair.value)));
    let fields = RecordView::FieldsSet(draft.set());
    if !is_new {
        work.log.store(&fields, level, work.effects)?;
        return Ok(());
    }
    let view = CollectionView { name: name.as_str(), kind, number, at: None };
    let named = RecordView::Collection(view);
    let more = draft.record_bytes_max();
    work.log.store_beside(&named, more, level, work.effects)?;
    let stored = work.log.store(&fields, level, work.effects);
    stored.expect("invariant: there was room for both records");
    Ok(())
}

/// The record of entries that are gone; the log takes these also where there is little room.
fn log_gone(number: u64, fields: &[Vec<u8>], work: &mut Work<'_>) -> Result<(), Refusal> {
    let level = work.log.key_level();
    if level == Durability::None {
        return Ok(());
    }
    let mut draft = FieldsDraft::new(number);
    fields.iter().for_each(|field| draft.push([field, &[]]));
    let bytes = draft.record_bytes_max();
    if work.log.is_whole() {
        if !work.log.holds(bytes) {
            return Err(Refusal::BatchTooLarge);
        }
    } else {
        if bytes > work.log.frame_bytes_max() {
            return Err(Refusal::BatchTooLarge);
        }
        if !work.log.surely_takes(bytes) || !work.log.makes_way(1, bytes, work.effects) {
            return Err(Refusal::StoreFull);
        }
    }
    work.log.append(&RecordView::FieldsGone(draft.gone()), level, work.effects);
    Ok(())
}

/// Begins a frame for a record of one entry in each of these collections, and for their ends. True
/// if the caller is to end it: it is not a batch's.
pub(super) fn begin_together(
    names: &[&QueueName],
    entry_bytes: usize,
    work: &mut Work<'_>,
) -> Result<bool, Refusal> {
    if work.log.is_whole() {
        return Ok(false);
    }
    let bytes = names.iter().map(|name| name.as_str().len() + entry_bytes + 2 * RECORD_BYTES_MAX);
    let mut load = Load::default();
    (load.stored_bytes, load.records) = (bytes.sum(), 2 * names.len());
    work.log.takes_batch(&load)?;
    work.log.begin_batch();
    Ok(true)
}

/// The bytes that an entry counts for.
pub(super) fn cost(field: &[u8], value_bytes: usize) -> usize {
    field.len() + value_bytes + ENTRY_BYTES_BESIDE
}

/// Bytes of memory that a new entry usually takes beside its own: lengths, offsets, spare room. A
/// member with a score takes its own once more. All is counted when it is there.
const ENTRY_BYTES_BESIDE: usize = 48;

/// The same of a new name.
pub(super) const NAME_BYTES_BESIDE: usize = 96;

/// An entry is searched for and written, of a sorted set in two orders.
const fn steps_of(kind: CollectionKind) -> usize {
    match kind {
        CollectionKind::Hash | CollectionKind::Set | CollectionKind::Stream => 16,
        CollectionKind::SortedSet => 40,
    }
}

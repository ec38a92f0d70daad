//! The changes of a command on a stream and its groups: said, then made as one frame.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Durability, QueueName, Refusal, limits};
use records::{CollectionView, FieldsDraft, RecordView};

use super::KIND;
use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::collections::packed_tree::{Cell, INLINE_BYTES_MAX};
use crate::collections::short_bytes::ShortBytes;
use crate::keyspace::collections::changing::{NAME_BYTES_BESIDE, cost};
use crate::keyspace::collections::{Collection, Work, cell_of, value_of};
use crate::keyspace::{Keyspace, NamePlace, Value};

/// Changes in the order in which they are made.
#[derive(Debug)]
pub(super) struct StreamChange {
    stream: Collection,
    /// The place of its name, if that was found.
    place: Option<NamePlace>,
    is_new: bool,
    changes: Vec<FieldChange>,
    /// The numbers of groups that go with all they have.
    dropped: Vec<u64>,
    /// The last number that was given.
    last_number: u64,
    room: Room,
    /// Commands that wait may be answered by it.
    is_news: bool,
}

/// The room that a change has to find. One that frees some finds what is kept for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// That which is kept.
    Kept,
    /// Free room of the device. Memory may have little: what is pending is to be acknowledged.
    OnDevice,
    /// Free room of the device, and of memory.
    InMemory,
}

/// A field that is set, or goes.
#[derive(Debug)]
struct FieldChange {
    number: u64,
    field: ShortBytes,
    value: Option<Vec<u8>>,
}

/// The fields of one record.
struct Part {
    draft: FieldsDraft,
    sets: bool,
}

impl StreamChange {
    /// Of a stream that is there.
    pub(super) fn of(stream: Collection, last_number: u64) -> Self {
        let (changes, dropped) = (Vec::with_capacity(USUAL_CHANGES), Vec::new());
        Self {
            stream,
            place: None,
            is_new: false,
            changes,
            dropped,
            last_number,
            room: Room::Kept,
            is_news: false,
        }
    }

    /// Of a stream that is there, or of a new one.
    pub(super) fn of_any(there: Option<Collection>, last_number: u64) -> Self {
        match there {
            Some(stream) => Self::of(stream, last_number),
            None => {
                let stream = Collection::new(KIND, last_number + 1);
                Self { is_new: true, ..Self::of(stream, last_number + 1) }
            }
        }
    }

    /// The place of the stream's name was found.
    pub(super) const fn is_at(&mut self, place: NamePlace) {
        self.place = Some(place);
    }

    /// The stream.
    pub(super) const fn stream(&self) -> Collection {
        self.stream
    }

    /// The number of a new group.
    pub(super) const fn new_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// It is refused where there is no such room.
    pub(super) const fn needs(&mut self, room: Room) {
        self.room = room;
    }

    /// It answers commands that wait: an entry has come, or a group has moved or gone.
    pub(super) const fn is_news(&mut self) {
        self.is_news = true;
    }

    /// A field of the stream, or of one of its groups, is to have this value.
    pub(super) fn set(&mut self, number: u64, field: ShortBytes, value: Vec<u8>) {
        self.changes.push(FieldChange { number, field, value: Some(value) });
    }

    /// A field that is there is to go.
    pub(super) fn remove(&mut self, number: u64, field: ShortBytes) {
        self.changes.push(FieldChange { number, field, value: None });
    }

    /// A group goes; its field is removed beside.
    pub(super) fn drop_group(&mut self, number: u64) {
        self.dropped.push(number);
    }

    /// Neighbours of one number are one record.
    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for FieldChange { number, field, value } in &self.changes {
            let sets = value.is_some();
            let fits = |part: &&mut Part| part.sets == sets && part.draft.number() == *number;
            if parts.last_mut().filter(fits).is_none() {
                parts.push(Part { draft: FieldsDraft::new(*number), sets });
            }
            let Some(part) = parts.last_mut() else { continue };
            match value {
                Some(value) => part.draft.push_with([field, &[]], value),
                None => part.draft.push([field, &[]]),
            }
        }
        parts
    }
}

impl Keyspace {
    pub(super) fn begin_change(&self, stream: Collection) -> StreamChange {
        StreamChange::of(stream, self.collections.last)
    }

    /// Makes the changes, all or none.
    ///
    /// # Errors
    /// There is no room for them. Nothing has changed.
    pub(super) fn make(
        &mut self,
        name: &QueueName,
        change: StreamChange,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        if change.changes.is_empty() {
            return Ok(());
        }
        if change.room == Room::InMemory {
            self.memory_takes(name, &change, work.memory_max)?;
        }
        log_change(name, &change, work)?;
        work.store.took_steps(STEPS_PER_CHANGE * change.changes.len());
        let mut stream = change.stream;
        for FieldChange { number, field, value } in &change.changes {
            self.change_field(&mut stream, *number, field, value.as_deref());
        }
        self.collections.last = self.collections.last.max(change.last_number);
        for number in change.dropped {
            self.collections.drop_later(Collection::new(KIND, number), work.store);
        }
        if change.is_new {
            self.insert_value(name, Value::of_collection(stream, None), work.store);
        } else {
            if stream != change.stream {
                self.values.recount(name, stream, change.place);
            }
            if change.is_news {
                self.touched(name, work.store);
            } else {
                self.tell_observers(name, work.store);
            }
        }
        Ok(())
    }

    /// Checks that memory takes the fields that are set, beside the others or instead of those that
    /// go.
    fn memory_takes(
        &self,
        name: &QueueName,
        change: &StreamChange,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let set = change.changes.iter().filter_map(|it| Some((&it.field, it.value.as_deref()?)));
        let of_name = if change.is_new { name.as_str().len() + NAME_BYTES_BESIDE } else { 0 };
        let more = of_name + set.map(|(field, value)| cost(field, value.len())).sum::<usize>();
        let memory = self.memory_bytes() + more as u64;
        if memory <= memory_max {
            return Ok(());
        }
        // Only now: finding those that go takes time. Each field is changed once, but an entry that
        // leaves as soon as it has come, which is not there.
        let old = change.changes.iter().filter_map(|FieldChange { number, field, .. }| {
            let cell = self.collections.get(*number, field)?;
            Some(cost(field, value_of(&cell).len()))
        });
        let less = old.sum::<usize>();
        let fits = less >= more || memory - less as u64 <= memory_max;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }

    fn change_field(
        &mut self,
        stream: &mut Collection,
        number: u64,
        field: &[u8],
        value: Option<&[u8]>,
    ) {
        let of_stream = number == stream.number;
        match value {
            Some(value) => {
                // A long one is a body.
                let body = (value.len() > INLINE_BYTES_MAX).then(|| Arc::from(value));
                let cell = body.as_ref().map_or(Cell::inline(value), cell_of);
                if of_stream {
                    self.collections.set_counted(stream, field, cell, None);
                } else {
                    self.collections.set(&Collection::new(KIND, number), field, cell, None);
                }
            }
            None => {
                let bytes = self.collections.remove(&Collection::new(KIND, number), field);
                let bytes = bytes.expect("invariant: a field that goes is there");
                if of_stream {
                    stream.count -= 1;
                    stream.bytes -= (field.len() + bytes) as u64;
                }
            }
        }
    }
}

/// The records of a change, if there is room for all of them.
fn log_change(name: &QueueName, change: &StreamChange, work: &mut Work<'_>) -> Result<(), Refusal> {
    let level = work.log.key_level();
    if level == Durability::None {
        return Ok(());
    }
    let parts = change.parts();
    let named = if change.is_new { RECORD_BYTES_MAX + name.as_str().len() } else { 0 };
    let bytes = parts.iter().map(|part| part.draft.record_bytes_max()).sum::<usize>() + named;
    if work.log.is_whole() {
        if !work.log.holds(bytes) {
            return Err(Refusal::BatchTooLarge);
        }
    } else {
        if bytes > work.log.frame_bytes_max() || parts.len() >= limits::FRAME_RECORDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        let has_room = match change.room {
            Room::Kept => work.log.surely_takes(bytes),
            Room::OnDevice | Room::InMemory => bytes as u64 <= work.log.room_left(),
        };
        if !has_room || !work.log.makes_way(parts.len() + 1, bytes, work.effects) {
            return Err(Refusal::StoreFull);
        }
    }
    if change.is_new {
        let Collection { kind, number, .. } = change.stream;
        let view = CollectionView { name: name.as_str(), kind, number, at: None };
        work.log.append(&RecordView::Collection(view), level, work.effects);
    }
    for Part { draft, sets } in &parts {
        let record = if *sets {
            RecordView::FieldsSet(draft.set())
        } else {
            RecordView::FieldsGone(draft.gone())
        };
        work.log.append(&record, level, work.effects);
    }
    Ok(())
}

/// A field is searched for and written, and the counts behind the name.
const STEPS_PER_CHANGE: usize = 20;

/// Most commands change no more fields.
const USUAL_CHANGES: usize = 4;

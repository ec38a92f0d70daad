//! Reading from streams, alone or as a consumer of a group.

use alloc::vec::Vec;

use model::{
    Nanos, QueueName, ReadPlace, Refusal, StreamEntries, StreamId, StreamRead, StreamReader,
    StreamReply,
};
use records::FieldsDraft;

use super::change::Room;
use super::describing::Past;
use super::entries::ShownEntries;
use super::layout::{
    Consumer, PENDING_BYTES_BESIDE, Pending, consumer_field, entry_field, group_field,
    pending_field,
};
use super::{Found, Group, KIND, check_name};
use crate::collections::packed_tree::Cell;
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{AwaitedEntries, Collection, Work, value_of};

/// How much a read may give yet.
struct Left {
    /// Entries of each stream.
    max: usize,
    /// Bytes of the reply.
    bytes: usize,
    /// Entries of all streams: some 10 ms, and one frame if they become pending.
    entries: usize,
}

impl Keyspace {
    /// Reads what is there; nothing where it would wait.
    pub(crate) fn read(
        &mut self,
        read: &StreamRead,
        work: &mut Work<'_>,
    ) -> Result<Option<StreamReply>, Refusal> {
        Self::may_wait_for(read.places.len())?;
        let max = read.max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        // Or else a command would wait for what it does not take.
        let max = max.max(1);
        let mut left = Left { max, bytes: work.shown_max, entries: delivered_max(read) };
        self.check_places(read, work)?;
        let mut found: Vec<(QueueName, StreamEntries)> = Vec::new();
        for (name, place) in &read.places {
            let entries = match &read.reader {
                None => self.read_alone(name, *place, &mut left, work),
                Some(reader) => self.read_as(name, *place, reader, &mut left, work),
            };
            match entries {
                Ok(entries) => found.extend(entries.map(|entries| (name.clone(), entries))),
                // The client reads on from there, and meets the refusal then.
                Err(_) if found.iter().any(|(_, shown)| !shown.is_empty()) => break,
                Err(refusal) => return Err(refusal),
            }
        }
        if let Some(reader) = &read.reader {
            self.see_consumers(read, reader, !found.is_empty(), work)?;
        }
        Ok((!found.is_empty()).then_some(StreamReply::Read(found)))
    }

    /// A consumer has tried to read; it is made where it is not there. The log has when it got
    /// something, but not each time that it tried.
    ///
    /// # Errors
    /// There is no room to make it, and the command has changed nothing before: else it is made
    /// when it reads again.
    fn see_consumers(
        &mut self,
        read: &StreamRead,
        reader: &StreamReader,
        mut has_changed: bool,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let (seen, field) = (work.store.latest, consumer_field(&reader.consumer));
        for (name, _) in &read.places {
            let Ok(Found { stream, group }) = self.group_of(name, &reader.group, work) else {
                continue;
            };
            let Some(there) = self.collections.consumer(&group, &reader.consumer) else {
                let mut change = self.begin_change(stream);
                change.needs(Room::OnDevice);
                let new = Consumer { seen, active: None };
                change.set(group.number, field.clone(), new.to_value());
                match self.make(name, change, work) {
                    Ok(()) => has_changed = true,
                    Err(refusal) if !has_changed => return Err(refusal),
                    Err(_) => {}
                }
                continue;
            };
            // One that got something was seen then.
            if there.seen == seen {
                continue;
            }
            let value = Consumer { seen, ..there }.to_value();
            let of_group = Collection::new(KIND, group.number);
            self.collections.set(&of_group, &field, Cell::inline(&value), None);
        }
        Ok(())
    }

    /// All are looked up before any is read: an error is the whole answer.
    fn check_places(&mut self, read: &StreamRead, work: &mut Work<'_>) -> Result<(), Refusal> {
        work.store.took_steps(read.places.len());
        if let Some(reader) = &read.reader {
            check_name(&reader.consumer)?;
        }
        for (name, _) in &read.places {
            match &read.reader {
                None => self.collection(name, KIND, work.store).map(|_| ())?,
                Some(reader) => self.group_of(name, &reader.group, work).map(|_| ())?,
            }
        }
        Ok(())
    }

    fn read_alone(
        &mut self,
        name: &QueueName,
        place: ReadPlace,
        left: &mut Left,
        work: &mut Work<'_>,
    ) -> Result<Option<StreamEntries>, Refusal> {
        let there = self.collection(name, KIND, work.store)?;
        let ReadPlace::Behind(behind) = place else { return Ok(None) };
        let (Some(stream), Some(from)) = (there, behind.next()) else { return Ok(None) };
        let shown = self.shown_from(&stream, from, left, work)?;
        Ok(Some(shown).filter(|shown| !shown.is_empty()))
    }

    fn read_as(
        &mut self,
        name: &QueueName,
        place: ReadPlace,
        reader: &StreamReader,
        left: &mut Left,
        work: &mut Work<'_>,
    ) -> Result<Option<StreamEntries>, Refusal> {
        let found = self.group_of(name, &reader.group, work)?;
        match place {
            ReadPlace::New => {
                let entries = self.read_new(name, found, reader, left, work)?;
                Ok(Some(entries).filter(|entries| !entries.is_empty()))
            }
            ReadPlace::Behind(behind) => {
                self.read_again(name, found, reader, behind, left, work).map(Some)
            }
        }
    }

    /// Entries from an id on, as many as the reply may show.
    fn shown_from(
        &self,
        stream: &Collection,
        from: StreamId,
        left: &mut Left,
        work: &mut Work<'_>,
    ) -> Result<StreamEntries, Refusal> {
        let mut shown = ShownEntries::new(left.bytes);
        let max = left.max.min(left.entries);
        let mut entries = self.collections.stream_entries(stream, from).take(max);
        let all_fit = entries.all(|(id, value)| shown.takes(id, value));
        work.store.took_steps(shown.len());
        if !all_fit && shown.len() == 0 {
            return Err(work.too_much.clone());
        }
        (left.bytes, left.entries) = (shown.left(), left.entries - shown.len());
        Ok(shown.into_entries())
    }

    /// Gives entries to a consumer that no other of its group has read.
    fn read_new(
        &mut self,
        name: &QueueName,
        Found { stream, mut group }: Found,
        reader: &StreamReader,
        left: &mut Left,
        work: &mut Work<'_>,
    ) -> Result<StreamEntries, Refusal> {
        let entries = match group.last.next() {
            Some(from) => self.shown_from(&stream, from, left, work)?,
            None => StreamEntries::default(),
        };
        let now = work.store.latest;
        if entries.is_empty() {
            return Ok(entries);
        }
        let past = Past::of(&self.collections, &stream);
        for id in entries.ids() {
            let counts = group.read.filter(|_| !past.lacks_some(id));
            group.read = counts.map(|read| read + 1).or_else(|| past.read_up_to(id));
            group.last = id;
        }
        let mut change = self.begin_change(stream);
        change.needs(Room::OnDevice);
        change.set(stream.number, group_field(&reader.group), group.to_value());
        let active = self.collections.consumer(&group, &reader.consumer);
        let active = active.and_then(|consumer| consumer.active);
        let active = if reader.acknowledges { Some(now) } else { active };
        let consumer = Consumer { seen: now, active };
        change.set(group.number, consumer_field(&reader.consumer), consumer.to_value());
        if reader.acknowledges {
            let pending = Pending { delivered: now, count: 1, consumer: &reader.consumer };
            let value = pending.to_value();
            entries.ids().for_each(|id| {
                change.set(group.number, pending_field(id), value.clone());
            });
        }
        self.make(name, change, work)?;
        Ok(entries)
    }

    /// Gives a consumer once more the entries that are pending with it, behind an id. Those that
    /// are no more in the stream have no fields.
    fn read_again(
        &mut self,
        name: &QueueName,
        Found { stream, group }: Found,
        reader: &StreamReader,
        behind: StreamId,
        left: &mut Left,
        work: &mut Work<'_>,
    ) -> Result<StreamEntries, Refusal> {
        let now = work.store.latest;
        let Some(from) = behind.next() else { return Ok(StreamEntries::default()) };
        let mut shown = ShownEntries::new(left.bytes);
        let mut change = self.begin_change(stream);
        change.needs(Room::OnDevice);
        let ids = self.collections.pending_with(&group, &reader.consumer, from);
        let mut all_fit = true;
        for id in ids.take(left.max.min(left.entries)) {
            let entry = self.collections.get(stream.number, &entry_field(id));
            all_fit = match &entry {
                Some(entry) => shown.takes(id, value_of(entry)),
                None => shown.takes_id(id),
            };
            if !all_fit {
                break;
            }
            if let Some(pending) = self.collections.pending(&group, id).filter(|_| entry.is_some())
            {
                let count = pending.count.saturating_add(1);
                let value = Pending { delivered: now, count, ..pending }.to_value();
                change.set(group.number, pending_field(id), value);
            }
        }
        if !all_fit && shown.len() == 0 {
            return Err(work.too_much.clone());
        }
        work.store.took_steps(2 * shown.len());
        (left.bytes, left.entries) = (shown.left(), left.entries - shown.len());
        self.make(name, change, work)?;
        Ok(shown.into_entries())
    }

    /// The same command with places that stay what they are while it waits.
    pub(crate) fn waiting_read(&mut self, read: &StreamRead, work: &mut Work<'_>) -> StreamRead {
        let mut read = read.clone();
        for (name, place) in read.places.iter_mut().filter(|_| read.reader.is_none()) {
            if *place == ReadPlace::New {
                let there = self.collection(name, KIND, work.store).ok().flatten();
                let last = there.map(|there| self.collections.state(&there).last);
                *place = ReadPlace::Behind(last.unwrap_or_default());
            }
        }
        read
    }

    /// True if a command that waits is answered by what a stream of it is now.
    pub(crate) fn has_news(&self, name: &QueueName, what: &AwaitedEntries, now: Nanos) -> bool {
        let there = self.values.get(name, now).and_then(|value| value.collection());
        let there = there.filter(|there| there.kind == KIND);
        let last = there.and_then(|stream| self.collections.last_entry(&stream));
        match &what.read.reader {
            None => what.behind.get(name).is_some_and(|behind| last.is_some_and(|it| it > *behind)),
            Some(reader) => {
                let group = there.and_then(|it| self.collections.group(&it, &reader.group));
                // Without a group the refusal is the answer.
                group.is_none_or(|group| last.is_some_and(|last| last > group.last))
            }
        }
    }

    /// Bytes of the records of what a command that waits may read now.
    pub(crate) fn most_read_bytes(&self, read: &StreamRead, now: Nanos) -> usize {
        let Some(reader) = &read.reader else { return 0 };
        let mut bytes = 0;
        for (name, _) in &read.places {
            let there = self.values.get(name, now).and_then(|value| value.collection());
            let group = there.and_then(|it| self.collections.group(&it, &reader.group));
            let (Some(stream), Some(group)) = (there, group) else { continue };
            let count = self.collections.behind(&stream, &group);
            let count = count.min(read.max.unwrap_or(u64::MAX)).min(delivered_max(read) as u64);
            bytes += count as usize * delivered_bytes(reader) + read_bytes(reader);
        }
        bytes
    }
}

impl super::Collections {
    /// How many entries a group has still to read.
    fn behind(&self, stream: &Collection, group: &Group) -> u64 {
        let Some(from) = group.last.next() else { return 0 };
        let end = self.rank(stream.number, &[super::GROUP]);
        end - self.rank(stream.number, &entry_field(from))
    }
}

/// How many entries one command reads: if they become pending, the log takes them in one frame.
pub(crate) fn delivered_max(read: &StreamRead) -> usize {
    let reader = read.reader.as_ref().filter(|reader| reader.acknowledges);
    reader.map_or(DELIVERED_AT_ONCE, delivered_at_once)
}

/// The same of any command that makes entries pending with a consumer.
pub(super) fn delivered_at_once(reader: &StreamReader) -> usize {
    (DELIVERED_BYTES_AT_ONCE / delivered_bytes(reader)).min(DELIVERED_AT_ONCE)
}

/// Bytes of an entry that becomes pending, in a record.
pub(crate) fn delivered_bytes(reader: &StreamReader) -> usize {
    1 + size_of::<StreamId>()
        + PENDING_BYTES_BESIDE
        + reader.consumer.len()
        + FieldsDraft::ENTRY_BYTES_MAX
}

/// Bytes of the records of a group that reads, and of its consumer.
pub(crate) fn read_bytes(reader: &StreamReader) -> usize {
    reader.group.len() + reader.consumer.len() + READ_BYTES_BESIDE
}

const DELIVERED_AT_ONCE: usize = 10_000;
const DELIVERED_BYTES_AT_ONCE: usize = 2 * 1024 * 1024;

/// Three records with a group's and a consumer's value.
const READ_BYTES_BESIDE: usize = 3 * crate::admission::batch_load::RECORD_BYTES_MAX;

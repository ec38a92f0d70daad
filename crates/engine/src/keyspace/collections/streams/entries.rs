//! The entries of a stream: added, removed, shown.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{
    NewStreamId, QueueName, Refusal, Reply, StreamCommand, StreamEntries, StreamId, StreamKept,
    StreamRange, StreamRefusal, StreamReply, StreamTrim, limits,
};

use super::change::{Room, StreamChange};
use super::layout::{GROUP, State, entry_field, entry_texts, entry_value, state_field};
use super::{KIND, told};
use crate::keyspace::collections::bounds::look_at;
use crate::keyspace::collections::{Collection, Collections, Work};
use crate::keyspace::{Keyspace, NamePlace};

/// Entries that a reply shows, as far as it may.
pub(super) struct ShownEntries {
    entries: StreamEntries,
    bytes_max: usize,
}

impl ShownEntries {
    /// Of a reply that may show no more than is left.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: StreamEntries::default(), bytes_max }
    }

    /// One more; false if the reply would show too much: then it is not there.
    pub(super) fn takes(&mut self, id: StreamId, value: &[u8]) -> bool {
        let texts = entry_texts(value).count() + 2;
        let bytes = value.len() + texts * limits::BESIDE_ELEMENT_BYTES;
        let fits = bytes <= self.bytes_max;
        if fits {
            self.bytes_max -= bytes;
            self.entries.push(id, entry_texts(value));
        }
        fits
    }

    /// The id of one that has gone, or whose fields nobody asks for.
    pub(super) fn takes_id(&mut self, id: StreamId) -> bool {
        let fits = 2 * limits::BESIDE_ELEMENT_BYTES <= self.bytes_max;
        if fits {
            self.bytes_max -= 2 * limits::BESIDE_ELEMENT_BYTES;
            self.entries.push_id(id);
        }
        fits
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes more the reply may show.
    pub(super) const fn left(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn into_entries(self) -> StreamEntries {
        self.entries
    }
}

impl Keyspace {
    pub(super) fn append(
        &mut self,
        (place, there): (NamePlace, Option<Collection>),
        command: &StreamCommand,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let StreamCommand::Append { name, id, fields, trim, lead, .. } = command else {
            return Err(Refusal::WrongKind);
        };
        let bytes = command.body_bytes();
        if bytes > limits::VALUE_BYTES_MAX || fields.len() > limits::COMMAND_ENTRIES_MAX {
            return Err(Refusal::TooManyValues);
        }
        let mut change = StreamChange::of_any(there, self.collections.last);
        let mut state = there.map(|there| self.collections.state(&there)).unwrap_or_default();
        let now = lead.wall_time(work.store.latest).as_millis();
        let id = new_id(*id, state.last, now)?;
        (state.last, state.added) = (id, state.added.saturating_add(1));
        let number = change.stream().number;
        change.is_at(place);
        change.needs(Room::InMemory);
        change.is_news();
        change.set(number, state_field(), state.to_value());
        change.set(number, entry_field(id), entry_value(fields));
        if let Some(trim) = trim {
            self.trim_beside(there, id, trim, &mut change, work)?;
        }
        self.make(name, change, work)?;
        Ok(told(StreamReply::Id(id)))
    }

    /// Entries leave behind the one of this id, which is added; it may leave as well.
    fn trim_beside(
        &self,
        there: Option<Collection>,
        added: StreamId,
        trim: &StreamTrim,
        change: &mut StreamChange,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let number = change.stream().number;
        let length = there.map_or(0, |there| self.collections.length(&there));
        let count = there
            .map_or(0, |there| leaving(&self.collections, &there, trim, length + 1).min(length));
        // If the client names a most, fewer are as good.
        let count = if trim.max.is_some() { count.min(TRIMMED_AT_ONCE) } else { count };
        if count > TRIMMED_AT_ONCE {
            return Err(Refusal::BatchTooLarge);
        }
        work.store.took_steps(count as usize);
        if let Some(there) = there {
            let all = self.collections.stream_entries(&there, StreamId::ZERO);
            all.take(count as usize).for_each(|(id, _)| change.remove(number, entry_field(id)));
        }
        let takes_more = count == length && trim.max.is_none_or(|max| max > count);
        if takes_more && leaves(trim.keep, added) {
            change.remove(number, entry_field(added));
        }
        Ok(())
    }

    pub(super) fn trim(
        &mut self,
        name: &QueueName,
        trim: StreamTrim,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::Count(0));
        };
        let all = leaving(&self.collections, &there, &trim, self.collections.length(&there));
        let count = all.min(TRIMMED_AT_ONCE);
        let is_part = count < all && trim.max.is_none();
        if is_part && work.log.is_whole() {
            return Err(Refusal::BatchTooLarge);
        }
        work.store.took_steps(count as usize);
        let mut change = self.begin_change(there);
        let entries = self.collections.stream_entries(&there, StreamId::ZERO);
        entries
            .take(count as usize)
            .for_each(|(id, _)| change.remove(there.number, entry_field(id)));
        self.make(name, change, work)?;
        Ok(if is_part { Reply::CountSoFar(count) } else { Reply::Count(count) })
    }

    pub(super) fn remove_ids(
        &mut self,
        name: &QueueName,
        ids: &[StreamId],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::Count(0));
        };
        let ids = known(ids, work, |id| self.collections.holds_entry(&there, id))?;
        let mut change = self.begin_change(there);
        let state = self.collections.state(&there);
        let removed = ids.last().copied().map_or(state.removed, |last| state.removed.max(last));
        if removed != state.removed {
            change.set(there.number, state_field(), State { removed, ..state }.to_value());
        }
        ids.iter().for_each(|id| change.remove(there.number, entry_field(*id)));
        self.make(name, change, work)?;
        Ok(Reply::Count(ids.len() as u64))
    }

    pub(super) fn range(
        &mut self,
        name: &QueueName,
        range: StreamRange,
        reverse: bool,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let mut shown = ShownEntries::new(work.shown_max);
        if let Some(there) = self.collection(name, KIND, work.store)? {
            let places = self.collections.places_of(&there, &range, reverse);
            let count = places.end - places.start;
            look_at(count, work)?;
            let all = self.collections.entries_at(&there, places.start).take(count as usize);
            let fits = if reverse {
                let all: Vec<_> = all.collect();
                all.into_iter().rev().all(|(id, value)| shown.takes(id, value))
            } else {
                all.into_iter().all(|(id, value)| shown.takes(id, value))
            };
            if !fits {
                return Err(work.too_much.clone());
            }
        }
        Ok(told(StreamReply::Entries(shown.into_entries())))
    }

    pub(super) fn set_last(
        &mut self,
        name: &QueueName,
        last: StreamId,
        added: Option<u64>,
        removed: Option<StreamId>,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::NotFound);
        };
        let state = self.collections.state(&there);
        if last < state.removed {
            return Err(StreamRefusal::BeforeRemoved.into());
        }
        if self.collections.last_entry(&there).is_some_and(|top| last < top) {
            return Err(StreamRefusal::BeforeLastEntry.into());
        }
        if added.is_some_and(|added| added < self.collections.length(&there)) {
            return Err(StreamRefusal::FewerThanThere.into());
        }
        let (added, removed) = (added.unwrap_or(state.added), removed.unwrap_or(state.removed));
        let mut change = self.begin_change(there);
        change.set(there.number, state_field(), State { last, removed, added }.to_value());
        self.make(name, change, work)?;
        Ok(Reply::Done)
    }
}

impl Collections {
    /// The places of a range's entries among the fields of the stream.
    fn places_of(
        &self,
        stream: &Collection,
        range: &StreamRange,
        reverse: bool,
    ) -> core::ops::Range<u64> {
        let start = self.rank(stream.number, &entry_field(range.first));
        let end = match range.last.next() {
            Some(behind) => self.rank(stream.number, &entry_field(behind)),
            None => self.rank(stream.number, &[GROUP]),
        };
        let (end, max) = (end.max(start), range.max.unwrap_or(u64::MAX));
        if reverse {
            end.saturating_sub(max).max(start)..end
        } else {
            start..start.saturating_add(max).min(end)
        }
    }
}

/// How many of so many entries leave, as far as they are there.
pub(super) fn leaving(
    collections: &Collections,
    stream: &Collection,
    trim: &StreamTrim,
    length: u64,
) -> u64 {
    let count = match trim.keep {
        StreamKept::Last(kept) => length.saturating_sub(kept),
        StreamKept::From(id) => {
            let first = collections.rank(stream.number, &entry_field(StreamId::ZERO));
            collections.rank(stream.number, &entry_field(id)) - first
        }
    };
    count.min(trim.max.unwrap_or(u64::MAX))
}

/// True if the last entry of a stream leaves where all before it do.
fn leaves(kept: StreamKept, last: StreamId) -> bool {
    match kept {
        StreamKept::Last(kept) => kept == 0,
        StreamKept::From(id) => last < id,
    }
}

/// The ids of which this is true, each once, ascending.
pub(super) fn known(
    ids: &[StreamId],
    work: &mut Work<'_>,
    is_known: impl Fn(StreamId) -> bool,
) -> Result<Vec<StreamId>, Refusal> {
    if ids.len() > limits::COMMAND_ENTRIES_MAX {
        return Err(Refusal::BatchTooLarge);
    }
    work.store.took_steps(ids.len());
    let ids: BTreeSet<_> = ids.iter().copied().filter(|id| is_known(*id)).collect();
    Ok(ids.into_iter().collect())
}

/// The id of an entry behind the last one.
fn new_id(wanted: NewStreamId, last: StreamId, now: u64) -> Result<StreamId, Refusal> {
    if last == StreamId::MAX {
        return Err(StreamRefusal::IdsExhausted.into());
    }
    let id = match wanted {
        NewStreamId::Given(id) => Some(id),
        NewStreamId::InMillisecond(millis) if millis == last.millis => {
            last.next().filter(|next| next.millis == millis)
        }
        NewStreamId::InMillisecond(millis) => Some(StreamId::new(millis, 0)),
        NewStreamId::Next if now > last.millis => Some(StreamId::new(now, 0)),
        NewStreamId::Next => last.next(),
    };
    id.filter(|id| *id > last).ok_or(StreamRefusal::IdTooSmall.into())
}

/// Entries that leave in one step.
const TRIMMED_AT_ONCE: u64 = 20_000;

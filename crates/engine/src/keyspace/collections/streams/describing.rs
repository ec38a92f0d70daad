//! Descriptions of a stream, of its groups and of their consumers.

use alloc::vec::Vec;
use core::cmp::Ordering;

use model::{
    ConsumerDescription, GroupDescription, GroupName, Nanos, PendingEntry, QueueName, Refusal,
    Reply, StreamDescription, StreamId, StreamReply, limits,
};

use super::entries::ShownEntries;
use super::layout::State;
use super::pending::shown_pending;
use super::{Consumer, Found, Group, KIND, told};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::bounds::look_at;
use crate::keyspace::collections::{Collection, Collections, Work};

/// The past of a stream with what is there: it tells how many entries a group has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    state: State,
    /// The first entry.
    first: Option<StreamId>,
    length: u64,
}

impl Past {
    pub(super) fn of(collections: &Collections, stream: &Collection) -> Self {
        let (first, length) = (collections.first_entry(stream), collections.length(stream));
        Self { state: collections.state(stream), first, length }
    }

    /// How many entries a group has read when it has read up to this one, if that is known.
    pub(super) fn read_up_to(&self, id: StreamId) -> Option<u64> {
        let State { last, added, .. } = self.state;
        if added == 0 {
            return Some(0);
        }
        if self.length == 0 && id <= last || id == last {
            return Some(added);
        }
        let first = self.first.filter(|_| id < last && !self.is_broken())?;
        let before = added.saturating_sub(self.length);
        match id.cmp(&first) {
            Ordering::Less => Some(before),
            Ordering::Equal => Some(before + 1),
            Ordering::Greater => None,
        }
    }

    /// How many entries a group has still to read, if that is known.
    fn lag(&self, group: &Group) -> Option<u64> {
        let added = self.state.added;
        if added == 0 {
            return Some(0);
        }
        let counted = group.read.filter(|_| !self.lacks_some(group.last));
        let read = counted.or_else(|| self.read_up_to(group.last))?;
        Some(added.saturating_sub(read))
    }

    /// True if entries may have been taken out behind this one, or that one itself.
    pub(super) fn lacks_some(&self, from: StreamId) -> bool {
        self.is_broken() && from <= self.state.removed
    }

    /// True if entries were taken out behind the first that is there.
    fn is_broken(&self) -> bool {
        let removed = self.state.removed;
        removed != StreamId::ZERO && self.first.is_some_and(|first| first <= removed)
    }
}

/// How much a description may show yet.
struct Room {
    bytes: usize,
    /// Groups, consumers and pending entries that it looks at.
    looks: usize,
    too_much: Refusal,
}

impl Room {
    fn of(work: &Work<'_>) -> Self {
        let (bytes, looks) = (work.shown_max, limits::LIST_SCAN_MAX);
        Self { bytes, looks, too_much: work.too_much.clone() }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.looks = self.looks.checked_sub(1).ok_or(Refusal::ListTooLong)?;
        let bytes = bytes + 8 * limits::BESIDE_ELEMENT_BYTES;
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| self.too_much.clone())?;
        Ok(())
    }
}

impl Keyspace {
    pub(super) fn describe(
        &mut self,
        name: &QueueName,
        whole: Option<u64>,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(stream) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::NotFound);
        };
        let collections = &self.collections;
        let past = Past::of(collections, &stream);
        let mut described = StreamDescription {
            length: past.length,
            last: past.state.last,
            removed: past.state.removed,
            added: past.state.added,
            first: past.first.unwrap_or_default(),
            group_count: collections.group_count(&stream),
            ..StreamDescription::default()
        };
        let mut room = Room::of(work);
        let mut shown = ShownEntries::new(room.bytes);
        let Some(max) = whole else {
            let ends = [past.first, collections.last_entry(&stream)];
            let fits = ends.into_iter().flatten().all(|id| {
                let entry = collections.stream_entries(&stream, id).next();
                entry.is_none_or(|(id, value)| shown.takes(id, value))
            });
            described.entries = shown.into_entries();
            let reply = told(StreamReply::Stream(described));
            return if fits { Ok(reply) } else { Err(room.too_much) };
        };
        let max = if max == 0 { u64::MAX } else { max };
        look_at(max.min(past.length), work)?;
        let mut all = collections.stream_entries(&stream, StreamId::ZERO).take(usize_of(max));
        if !all.all(|(id, value)| shown.takes(id, value)) {
            return Err(room.too_much);
        }
        room.bytes = shown.left();
        described.entries = shown.into_entries();
        described.groups = Some(self.groups_of(&stream, &past, Some(max), &mut room, work)?);
        Ok(told(StreamReply::Stream(described)))
    }

    pub(super) fn describe_groups(
        &mut self,
        name: &QueueName,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(stream) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::NotFound);
        };
        let past = Past::of(&self.collections, &stream);
        let groups = self.groups_of(&stream, &past, None, &mut Room::of(work), work)?;
        Ok(told(StreamReply::Groups(groups)))
    }

    pub(super) fn describe_consumers(
        &mut self,
        of: &GroupName,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        if self.collection(&of.stream, KIND, work.store)?.is_none() {
            return Ok(Reply::NotFound);
        }
        let Found { group, .. } = self.group(of, work)?;
        let consumers = self.consumers_of(&group, 0, &mut Room::of(work), work)?;
        Ok(told(StreamReply::Consumers(consumers)))
    }

    /// The groups of a stream, with so many pending entries of each and of each consumer.
    fn groups_of(
        &self,
        stream: &Collection,
        past: &Past,
        pending_max: Option<u64>,
        room: &mut Room,
        work: &mut Work<'_>,
    ) -> Result<Vec<GroupDescription>, Refusal> {
        let collections = &self.collections;
        let (mut described, now) = (Vec::new(), work.store.latest);
        look_at(collections.group_count(stream), work)?;
        for (name, group) in collections.groups(stream) {
            room.take(name.len())?;
            let all = collections.pending_from(&group, StreamId::ZERO);
            let all = all.take(usize_of(pending_max.unwrap_or(0)));
            let pending = all.map(|(id, pending)| {
                let entry = shown_pending(id, &pending, now);
                room.take(entry.consumer.len()).map(|()| entry)
            });
            let pending = pending.collect::<Result<Vec<PendingEntry>, _>>()?;
            work.store.took_steps(pending.len());
            let consumers = match pending_max {
                Some(max) => self.consumers_of(&group, max, room, work)?,
                None => Vec::new(),
            };
            described.push(GroupDescription {
                name: name.into(),
                consumer_count: collections.consumer_count(&group),
                pending_count: collections.pending_count(&group),
                last: group.last,
                read: group.read,
                lag: past.lag(&group),
                pending,
                consumers,
            });
        }
        Ok(described)
    }

    fn consumers_of(
        &self,
        group: &Group,
        pending_max: u64,
        room: &mut Room,
        work: &mut Work<'_>,
    ) -> Result<Vec<ConsumerDescription>, Refusal> {
        let collections = &self.collections;
        let (mut described, now) = (Vec::new(), work.store.latest);
        look_at(collections.consumer_count(group), work)?;
        work.store.took_steps(STEPS_PER_CONSUMER * collections.consumer_count(group) as usize);
        for (name, Consumer { seen, active }) in collections.consumers(group) {
            room.take(name.len())?;
            let ids = collections.pending_with(group, &name, StreamId::ZERO);
            let ids = ids.take(usize_of(pending_max));
            let mut pending = Vec::new();
            for id in ids {
                room.take(name.len())?;
                let entry = collections.pending(group, id);
                pending.extend(entry.map(|entry| shown_pending(id, &entry, now)));
            }
            work.store.took_steps(2 * pending.len());
            described.push(ConsumerDescription {
                pending_count: collections.pending_count_with(group, &name),
                name: name.into(),
                seen,
                idle: now.since(seen),
                active,
                inactive: active.map(|at: Nanos| now.since(at)),
                pending,
            });
        }
        Ok(described)
    }
}

/// Pending entries of each are counted.
const STEPS_PER_CONSUMER: usize = 8;

fn usize_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

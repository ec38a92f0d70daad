//! Streams: entries in the order of their ids, and groups of consumers that share them.
//!
//! A stream is a collection. Its past, its entries and its groups are fields of its number; the
//! consumers and the pending entries of a group are fields of the group's: see `streams/layout.rs`.
//! A command says all its changes, and then makes them, as one frame: see `streams/change.rs`.

mod change;
mod claiming;
mod describing;
mod entries;
mod groups;
mod layout;
mod pending;
mod reading;
mod recovery;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionKind, GroupName, QueueName, Refusal, Reply, StreamCommand, StreamId, StreamRefusal,
    StreamReply, StreamTrim, limits,
};

use super::{Collection, Collections, Work, value_of};
use crate::collections::packed_tree::KeyParts;
use crate::keyspace::Keyspace;

pub(crate) use claiming::most_claimed;
use layout::{
    CONSUMER, Consumer, ENTRY, GROUP, Group, PENDING, Pending, State, consumer_field,
    consumer_place, entry_field, group_field, id_of, pending_field, untagged,
};
pub(crate) use reading::{delivered_bytes, delivered_max, read_bytes};
pub(super) use recovery::{Recovered, recovered};

const KIND: CollectionKind = CollectionKind::Stream;

/// A group, and the stream that it is of.
#[derive(Clone, Copy, Debug)]
struct Found {
    stream: Collection,
    group: Group,
}

impl Keyspace {
    /// Does a command on streams. One that waits is answered `TimedOut` where there is nothing.
    pub(crate) fn do_stream(
        &mut self,
        command: &StreamCommand,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        match command {
            StreamCommand::Append { name, only_existing, .. } => {
                let found = self.find_collection(name, KIND, work.store)?;
                if found.1.is_none() && *only_existing {
                    return Ok(Reply::NotFound);
                }
                self.append(found, command, work)
            }
            StreamCommand::Trim { name, trim } => self.trim(name, *trim, work),
            StreamCommand::Remove { name, ids } => self.remove_ids(name, ids, work),
            StreamCommand::Length { name } => {
                let there = self.collection(name, KIND, work.store)?;
                Ok(Reply::Count(there.map_or(0, |there| self.collections.length(&there))))
            }
            StreamCommand::Range { name, range, reverse } => {
                self.range(name, *range, *reverse, work)
            }
            StreamCommand::Read(read) => {
                let found = self.read(read, work)?;
                Ok(found.map_or(Reply::TimedOut { link: None }, told))
            }
            StreamCommand::SetLast { name, last, added, removed } => {
                self.set_last(name, *last, *added, *removed, work)
            }
            StreamCommand::CreateGroup { .. }
            | StreamCommand::SetGroup { .. }
            | StreamCommand::RemoveGroup { .. }
            | StreamCommand::CreateConsumer { .. }
            | StreamCommand::RemoveConsumer { .. } => self.change_groups(command, work),
            StreamCommand::Acknowledge { of, ids } => self.acknowledge(of, ids, work),
            StreamCommand::CountPending { of } => self.count_pending(of, work),
            StreamCommand::ShowPending { of, range, consumer, min_idle } => {
                self.show_pending(of, *range, consumer.as_deref(), *min_idle, work)
            }
            StreamCommand::Claim { claim, ids, claimed } => self.claim(claim, ids, claimed, work),
            StreamCommand::ClaimNext { claim, from, max } => {
                self.claim_next(claim, *from, *max, work)
            }
            StreamCommand::Describe { name, whole } => self.describe(name, *whole, work),
            StreamCommand::DescribeGroups { name } => self.describe_groups(name, work),
            StreamCommand::DescribeConsumers { of } => self.describe_consumers(of, work),
        }
    }

    /// A group that has to be there.
    fn group(&mut self, of: &GroupName, work: &mut Work<'_>) -> Result<Found, Refusal> {
        self.group_of(&of.stream, &of.group, work)
    }

    fn group_of(
        &mut self,
        stream: &QueueName,
        group: &[u8],
        work: &mut Work<'_>,
    ) -> Result<Found, Refusal> {
        let there = self.collection(stream, KIND, work.store)?;
        let found = there.and_then(|stream| {
            let group = self.collections.group(&stream, group)?;
            Some(Found { stream, group })
        });
        let no_group = || StreamRefusal::NoSuchGroup(stream.clone()).into();
        found.ok_or_else(no_group)
    }
}

impl Collections {
    /// The past of a stream. If it has lost its own, its entries tell of it.
    fn state(&self, stream: &Collection) -> State {
        let stated = self.get(stream.number, &[layout::STATE]);
        let stated = stated.and_then(|cell| State::of(value_of(&cell)));
        stated.unwrap_or_else(|| {
            let last = self.last_entry(stream).unwrap_or_default();
            State { last, removed: StreamId::ZERO, added: self.length(stream) }
        })
    }

    /// How many entries a stream has.
    fn length(&self, stream: &Collection) -> u64 {
        self.rank(stream.number, &[GROUP]) - self.rank(stream.number, &[ENTRY])
    }

    fn holds_entry(&self, stream: &Collection, id: StreamId) -> bool {
        self.get(stream.number, &entry_field(id)).is_some()
    }

    /// The ids and values of entries, from an id on.
    fn stream_entries(
        &self,
        stream: &Collection,
        from: StreamId,
    ) -> impl Iterator<Item = (StreamId, &[u8])> {
        self.entries_at(stream, self.rank(stream.number, &entry_field(from)))
    }

    /// The same from a place on among the fields of the stream.
    fn entries_at(
        &self,
        stream: &Collection,
        place: u64,
    ) -> impl Iterator<Item = (StreamId, &[u8])> {
        self.entries(stream.number, place).map_while(|(field, cell)| {
            let id = id_of(rest_of(field, ENTRY)?)?;
            Some((id, value_of(&cell)))
        })
    }

    fn first_entry(&self, stream: &Collection) -> Option<StreamId> {
        self.stream_entries(stream, StreamId::ZERO).next().map(|(id, _)| id)
    }

    fn last_entry(&self, stream: &Collection) -> Option<StreamId> {
        let place = self.rank(stream.number, &[GROUP]).checked_sub(1)?;
        self.entries_at(stream, place).next().map(|(id, _)| id)
    }

    fn group(&self, stream: &Collection, name: &[u8]) -> Option<Group> {
        let cell = self.get(stream.number, &group_field(name))?;
        Group::of(value_of(&cell))
    }

    /// The groups of a stream, by name.
    fn groups(&self, stream: &Collection) -> impl Iterator<Item = (Vec<u8>, Group)> {
        let place = self.rank(stream.number, &[GROUP]);
        self.entries(stream.number, place).map_while(|(field, cell)| {
            let name = rest_of(field, GROUP)?.to_vec();
            Some((name, Group::of(value_of(&cell))?))
        })
    }

    /// The numbers of the groups of a stream.
    pub(super) fn group_numbers(&self, stream: &Collection) -> impl Iterator<Item = u64> {
        self.groups(stream).map(|(_, group)| group.number)
    }

    pub(crate) fn group_count(&self, stream: &Collection) -> u64 {
        stream.count - self.rank(stream.number, &[GROUP])
    }

    fn consumer(&self, group: &Group, name: &[u8]) -> Option<Consumer> {
        let cell = self.get(group.number, &consumer_field(name))?;
        Consumer::of(value_of(&cell))
    }

    /// The consumers of a group, by name.
    fn consumers(&self, group: &Group) -> impl Iterator<Item = (Vec<u8>, Consumer)> {
        self.entries(group.number, 0).map_while(|(field, cell)| {
            let name = rest_of(field, CONSUMER)?.to_vec();
            Some((name, Consumer::of(value_of(&cell))?))
        })
    }

    fn consumer_count(&self, group: &Group) -> u64 {
        self.rank(group.number, &[PENDING])
    }

    fn pending(&self, group: &Group, id: StreamId) -> Option<Pending<'_>> {
        Pending::of(value_of(&self.get(group.number, &pending_field(id))?))
    }

    /// The pending entries of a group, from an id on.
    fn pending_from(
        &self,
        group: &Group,
        from: StreamId,
    ) -> impl Iterator<Item = (StreamId, Pending<'_>)> {
        let place = self.rank(group.number, &pending_field(from));
        self.entries(group.number, place).map_while(|(field, cell)| {
            let id = id_of(rest_of(field, PENDING)?)?;
            Some((id, Pending::of(value_of(&cell))?))
        })
    }

    fn pending_count(&self, group: &Group) -> u64 {
        self.rank(group.number, &[PENDING + 1]) - self.rank(group.number, &[PENDING])
    }

    /// The ids of the entries pending with a consumer, from one on.
    fn pending_with(
        &self,
        group: &Group,
        consumer: &[u8],
        from: StreamId,
    ) -> impl Iterator<Item = StreamId> {
        let begin = consumer_place(group.number, consumer);
        let place = self.places.rank(&[&begin[..], &from.to_bytes()].concat());
        self.places.iter_at(place).map_while(move |(key, _)| {
            let key = key.to_vec();
            let id = key.strip_prefix(&begin[..])?.first_chunk()?;
            Some(StreamId::of_bytes(*id))
        })
    }

    fn pending_count_with(&self, group: &Group, consumer: &[u8]) -> u64 {
        let begin = consumer_place(group.number, consumer);
        let end = [&begin[..], &[u8::MAX; 17]].concat();
        (self.places.rank(&end) - self.places.rank(&begin)) as u64
    }

    /// How many entries of a stream may be pending in a group.
    pub(crate) fn pending_of(&self, stream: &Collection, group: &[u8]) -> u64 {
        self.group(stream, group).map_or(0, |group| self.pending_count(&group))
    }

    /// How many consumers a group of a stream has.
    pub(crate) fn consumers_of_group(&self, stream: &Collection, group: &[u8]) -> u64 {
        self.group(stream, group).map_or(0, |group| self.consumer_count(&group))
    }

    /// How many entries would leave.
    pub(crate) fn leaving(&self, stream: &Collection, trim: &StreamTrim) -> u64 {
        entries::leaving(self, stream, trim, self.length(stream))
    }
}

/// True if this is the field of something pending, where it is one of a group.
pub(super) fn is_pending(field: &[u8]) -> bool {
    field.first() == Some(&PENDING)
}

/// The key of a pending entry in the second tree: by its consumer.
pub(super) fn place_of(number: u64, field: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let id = field.strip_prefix(&[PENDING])?;
    let consumer = Pending::of(value)?.consumer;
    Some([&consumer_place(number, consumer)[..], id].concat())
}

/// The rest of a field of this kind.
fn rest_of(field: KeyParts<'_>, tag: u8) -> Option<KeyParts<'_>> {
    untagged(field).filter(|(its, _)| *its == tag).map(|(_, rest)| rest)
}

fn told(reply: StreamReply) -> Reply {
    Reply::Stream(Box::new(reply))
}

/// Checks the name of a group or of a consumer.
fn check_name(name: &Arc<[u8]>) -> Result<(), Refusal> {
    let is_short = name.len() <= limits::STREAM_NAME_BYTES_MAX;
    if is_short { Ok(()) } else { Err(StreamRefusal::NameTooLong.into()) }
}

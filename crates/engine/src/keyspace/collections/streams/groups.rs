//! Groups of a stream, and their consumers.

use alloc::sync::Arc;

use model::{
    GroupName, GroupStart, QueueName, Refusal, Reply, StreamCommand, StreamId, StreamRefusal,
    limits,
};

use super::change::{Room, StreamChange};
use super::layout::{State, consumer_field, group_field, pending_field, state_field};
use super::{Consumer, Found, Group, KIND, check_name};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{Collection, Work};

impl Keyspace {
    pub(super) fn change_groups(
        &mut self,
        command: &StreamCommand,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        match command {
            StreamCommand::CreateGroup { of, start, makes_stream } => {
                self.create_group(of, *start, *makes_stream, work)
            }
            StreamCommand::SetGroup { of, start } => {
                self.has_stream(&of.stream, work)?;
                let Found { stream, group } = self.group(of, work)?;
                let last = start.last.unwrap_or_else(|| self.collections.state(&stream).last);
                let mut change = self.begin_change(stream);
                change.is_news();
                let group = Group { last, read: start.read, ..group };
                change.set(stream.number, group_field(&of.group), group.to_value());
                self.make(&of.stream, change, work)?;
                Ok(Reply::Done)
            }
            StreamCommand::RemoveGroup { of } => {
                let stream = self.has_stream(&of.stream, work)?;
                let Some(group) = self.collections.group(&stream, &of.group) else {
                    return Ok(Reply::Count(0));
                };
                let mut change = self.begin_change(stream);
                change.remove(stream.number, group_field(&of.group));
                change.drop_group(group.number);
                change.is_news();
                self.make(&of.stream, change, work)?;
                Ok(Reply::Count(1))
            }
            StreamCommand::CreateConsumer { of, consumer } => {
                self.has_stream(&of.stream, work)?;
                let Found { stream, group } = self.group(of, work)?;
                if self.collections.consumer(&group, consumer).is_some() {
                    return Ok(Reply::Count(0));
                }
                check_name(consumer)?;
                let mut change = self.begin_change(stream);
                change.needs(Room::InMemory);
                let new = Consumer { seen: work.store.latest, active: None };
                change.set(group.number, consumer_field(consumer), new.to_value());
                self.make(&of.stream, change, work)?;
                Ok(Reply::Count(1))
            }
            StreamCommand::RemoveConsumer { of, consumer } => {
                self.has_stream(&of.stream, work)?;
                self.remove_consumer(of, consumer, work)
            }
            _ => Err(Refusal::WrongKind),
        }
    }

    fn create_group(
        &mut self,
        of: &GroupName,
        start: GroupStart,
        makes_stream: bool,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = if makes_stream {
            self.collection(&of.stream, KIND, work.store)?
        } else {
            Some(self.has_stream(&of.stream, work)?)
        };
        check_name(&of.group)?;
        if let Some(stream) = there {
            if self.collections.group(&stream, &of.group).is_some() {
                return Err(StreamRefusal::GroupExists.into());
            }
            if self.collections.group_count(&stream) >= limits::STREAM_GROUPS_MAX as u64 {
                return Err(StreamRefusal::TooManyGroups.into());
            }
        }
        let last = there.map_or(StreamId::ZERO, |stream| self.collections.state(&stream).last);
        let last = start.last.unwrap_or(last);
        let mut change = StreamChange::of_any(there, self.collections.last);
        change.needs(Room::InMemory);
        let number = change.stream().number;
        if there.is_none() {
            change.set(number, state_field(), State::default().to_value());
        }
        let group = Group { number: change.new_number(), last, read: start.read };
        change.set(number, group_field(&of.group), group.to_value());
        self.make(&of.stream, change, work)?;
        Ok(Reply::Done)
    }

    /// Outside of a batch a part at a time; the consumer goes with the last.
    fn remove_consumer(
        &mut self,
        of: &GroupName,
        name: &Arc<[u8]>,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Found { stream, group } = self.group(of, work)?;
        if self.collections.consumer(&group, name).is_none() {
            return Ok(Reply::Count(0));
        }
        let all = self.collections.pending_count_with(&group, name);
        let count = all.min(REMOVED_AT_ONCE);
        if count < all && work.log.is_whole() {
            return Err(Refusal::BatchTooLarge);
        }
        work.store.took_steps(count as usize);
        let mut change = self.begin_change(stream);
        let pending = self.collections.pending_with(&group, name, StreamId::ZERO);
        pending.take(count as usize).for_each(|id| change.remove(group.number, pending_field(id)));
        if count == all {
            change.remove(group.number, consumer_field(name));
        }
        self.make(&of.stream, change, work)?;
        Ok(if count < all { Reply::CountSoFar(count) } else { Reply::Count(count) })
    }

    fn has_stream(&mut self, name: &QueueName, work: &mut Work<'_>) -> Result<Collection, Refusal> {
        let there = self.collection(name, KIND, work.store)?;
        there.ok_or(StreamRefusal::NoSuchStream.into())
    }
}

/// Pending entries that are freed in one step.
const REMOVED_AT_ONCE: u64 = 20_000;

//! The pending entries of a group: acknowledged, counted, shown.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    GroupName, Nanos, PendingCounts, PendingEntry, Refusal, Reply, StreamId, StreamRange,
    StreamReply, limits,
};

use super::entries::known;
use super::layout::{Pending, pending_field};
use super::{Found, KIND, told};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::Work;
use crate::keyspace::collections::bounds::look_at;

impl Keyspace {
    pub(super) fn acknowledge(
        &mut self,
        of: &GroupName,
        ids: &[StreamId],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(stream) = self.collection(&of.stream, KIND, work.store)? else {
            return Ok(Reply::Count(0));
        };
        let Some(group) = self.collections.group(&stream, &of.group) else {
            return Ok(Reply::Count(0));
        };
        let ids = known(ids, work, |id| self.collections.pending(&group, id).is_some())?;
        let mut change = self.begin_change(stream);
        ids.iter().for_each(|id| change.remove(group.number, pending_field(*id)));
        self.make(&of.stream, change, work)?;
        Ok(Reply::Count(ids.len() as u64))
    }

    pub(super) fn count_pending(
        &mut self,
        of: &GroupName,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Found { group, .. } = self.group(of, work)?;
        let collections = &self.collections;
        let count = collections.pending_count(&group);
        let first = collections.pending_from(&group, StreamId::ZERO).next();
        let last = collections.last_pending(&group);
        let ends = first.map(|(id, _)| id).zip(last);
        let mut counts = PendingCounts { count, ends, consumers: Vec::new() };
        let mut bytes = 0;
        for (name, pending) in collections.pending_consumers(&group) {
            bytes += name.len() + 2 * limits::BESIDE_ELEMENT_BYTES;
            counts.consumers.push((name.into(), pending));
            if bytes > work.shown_max {
                return Err(work.too_much.clone());
            }
        }
        look_at(STEPS_PER_CONSUMER * counts.consumers.len() as u64, work)?;
        Ok(told(StreamReply::PendingCounts(counts)))
    }

    pub(super) fn show_pending(
        &mut self,
        of: &GroupName,
        range: StreamRange,
        consumer: Option<&[u8]>,
        min_idle: Nanos,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Found { group, .. } = self.group(of, work)?;
        let collections = &self.collections;
        let all: Box<dyn Iterator<Item = (StreamId, Pending<'_>)>> = match consumer {
            None => Box::new(collections.pending_from(&group, range.first)),
            Some(consumer) => {
                let ids = collections.pending_with(&group, consumer, range.first);
                Box::new(ids.filter_map(|id| Some((id, collections.pending(&group, id)?))))
            }
        };
        let (now, max) = (work.store.latest, range.max.unwrap_or(u64::MAX));
        let (mut shown, mut bytes, mut looked) = (Vec::new(), 0, 0);
        for (id, pending) in all.take_while(|(id, _)| *id <= range.last) {
            if shown.len() as u64 >= max {
                break;
            }
            looked += 1;
            let entry = shown_pending(id, &pending, now);
            if entry.idle >= min_idle {
                bytes += pending.consumer.len() + 4 * limits::BESIDE_ELEMENT_BYTES;
                shown.push(entry);
            }
            if bytes > work.shown_max {
                return Err(work.too_much.clone());
            }
            if looked > limits::LIST_SCAN_MAX {
                return Err(Refusal::ListTooLong);
            }
        }
        work.store.took_steps(looked);
        Ok(told(StreamReply::Pending(shown)))
    }
}

impl super::Collections {
    /// The consumers with something pending, by name, and how much: by one step from each to the
    /// next.
    fn pending_consumers(&self, group: &super::Group) -> impl Iterator<Item = (Vec<u8>, u64)> {
        let number = group.number.to_be_bytes();
        let mut place = self.places.rank(&number);
        let mut next = move || {
            let (key, _) = self.places.iter_at(place).next()?;
            let (its, key) = key.split()?;
            let (bytes, rest) = key.split().filter(|_| its == number)?;
            let mut name = rest.to_vec();
            name.truncate(u16::from_be_bytes(bytes).into());
            let count = self.pending_count_with(group, &name);
            place += count as usize;
            Some((name, count))
        };
        let mut all: Vec<_> = core::iter::from_fn(&mut next).collect();
        // Names of one length stand together there.
        all.sort_unstable();
        all.into_iter()
    }

    fn last_pending(&self, group: &super::Group) -> Option<StreamId> {
        let place = self.rank(group.number, &[super::PENDING + 1]).checked_sub(1)?;
        let (field, _) = self.entries(group.number, place).next()?;
        super::id_of(super::rest_of(field, super::PENDING)?)
    }
}

/// A pending entry for a reply.
pub(super) fn shown_pending(id: StreamId, pending: &Pending<'_>, now: Nanos) -> PendingEntry {
    let Pending { delivered, count, consumer } = *pending;
    PendingEntry { id, consumer: consumer.into(), delivered, idle: now.since(delivered), count }
}

/// A consumer with something pending is found by three searches.
const STEPS_PER_CONSUMER: u64 = 16;

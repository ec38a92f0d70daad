//! The most that a batch's commands on streams may come to.

use model::{GroupName, QueueName, StreamClaim, StreamCommand, StreamId, StreamRead, limits};
use records::FieldsDraft;

use super::batch_load::{Load, RECORD_BYTES_MAX};
use super::entries_load::EntriesMax;
use crate::demand::{Changes, Looks, Stores};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{delivered_bytes, delivered_max, most_claimed, read_bytes};

impl Keyspace {
    /// Adds what a command on streams comes to, if it is one.
    pub(super) fn add_stream_load<'c>(
        &self,
        (stores, changes, looks): (Stores<'c>, Changes<'c>, Looks<'c>),
        load: &mut Load<'c>,
    ) {
        if let Looks::AtStream(command) = looks {
            load.scan(self.looked_at_stream(command, load));
        }
        if let Stores::Stream(command) = stores {
            self.add_stored_in_stream(command, load);
        }
        if let Changes::TakenOfStream(command) = changes {
            self.add_taken_of_stream(command, load);
        }
    }

    fn looked_at_stream(&self, command: &StreamCommand, load: &Load<'_>) -> u64 {
        let most = |name| self.most_in_stream(name, load);
        match command {
            StreamCommand::Range { name, range, .. } => {
                most(name).min(range.max.unwrap_or(u64::MAX))
            }
            StreamCommand::Read(read) => {
                let max = read.max.unwrap_or(u64::MAX);
                let all = read.places.iter().map(|(name, _)| most(name).min(max));
                let entries = all.fold(0, u64::saturating_add).min(delivered_max(read) as u64);
                entries.saturating_add(read.places.len() as u64)
            }
            StreamCommand::Describe { whole: Some(_), name } => {
                most(name).saturating_add(limits::LIST_SCAN_MAX as u64)
            }
            StreamCommand::ShowPending { of, .. } => self.most_pending(of, load),
            StreamCommand::CountPending { of } | StreamCommand::DescribeConsumers { of } => {
                self.most_consumers(of, load).saturating_mul(STEPS_PER_CONSUMER)
            }
            StreamCommand::DescribeGroups { name } => {
                STEPS_PER_CONSUMER * self.most_groups(name, load)
            }
            _ => 1,
        }
    }

    /// How many fields a stream may have by now.
    fn most_in_stream(&self, name: &QueueName, load: &Load<'_>) -> u64 {
        self.most_entries(name, load).count()
    }

    /// How many entries may be pending in a group by now: those that are, and all that the batch
    /// has put there. After a rename it may be any other group.
    fn most_pending(&self, of: &GroupName, load: &Load<'_>) -> u64 {
        let there = self.values().stored(&of.stream).and_then(|value| value.collection());
        let more = self.most_entries(&of.stream, load).count();
        if load.renamed.contains(&of.stream) {
            return self.collections().entry_count().saturating_add(more);
        }
        let pending = there.map_or(0, |there| self.collections().pending_of(&there, &of.group));
        pending.saturating_add(more)
    }

    /// The same of the consumers of a group.
    fn most_consumers(&self, of: &GroupName, load: &Load<'_>) -> u64 {
        let there = self.values().stored(&of.stream).and_then(|value| value.collection());
        let more = self.most_entries(&of.stream, load).count();
        let more = more.saturating_sub(there.map_or(0, |there| there.count));
        if load.renamed.contains(&of.stream) {
            return self.collections().entry_count().saturating_add(more);
        }
        let now = there.map_or(0, |there| self.collections().consumers_of_group(&there, &of.group));
        now.saturating_add(more)
    }

    /// The same of the groups of a stream.
    fn most_groups(&self, name: &QueueName, load: &Load<'_>) -> u64 {
        let there = self.values().stored(name).and_then(|value| value.collection());
        let more = self.most_entries(name, load).count();
        let more = more.saturating_sub(there.map_or(0, |there| there.count));
        let is_other = load.renamed.contains(name);
        let there = there.filter(|_| !is_other);
        let now = there.map_or(0, |there| self.collections().group_count(&there));
        let most = if is_other { GROUPS_MAX } else { now.saturating_add(more) };
        most.min(GROUPS_MAX)
    }

    fn add_stored_in_stream<'c>(&self, command: &'c StreamCommand, load: &mut Load<'c>) {
        match command {
            StreamCommand::Append { name, fields, trim, .. } => {
                let bytes = command.body_bytes() + 2 * fields.len() * FieldsDraft::ENTRY_BYTES_MAX;
                if let Some(trim) = trim {
                    let there = self.values().stored(name).and_then(|value| value.collection());
                    let is_known = there.filter(|_| !load.renamed.contains(name));
                    let now = is_known.map_or(0, |there| self.collections().leaving(&there, trim));
                    let more = self.most_in_stream(name, load);
                    let more = more.saturating_sub(there.map_or(0, |there| there.count));
                    let is_other = load.renamed.contains(name);
                    let other = if is_other { self.collections().entry_count() } else { 0 };
                    let most = now.saturating_add(more).saturating_add(other);
                    self.add_gone(name, most.min(TRIMMED_MAX) + 1, load);
                }
                self.add_new(name, EntriesMax::of(2, bytes as u64 + STATE_BYTES), load);
            }
            StreamCommand::CreateGroup { of, .. } | StreamCommand::CreateConsumer { of, .. } => {
                let bytes = 2 * limits::STREAM_NAME_BYTES_MAX as u64 + STATE_BYTES;
                self.add_new(&of.stream, EntriesMax::of(2, bytes), load);
            }
            // They store nothing.
            _ => {}
        }
    }

    /// So many ids go.
    fn add_gone(&self, name: &QueueName, count: u64, load: &mut Load<'_>) {
        load.scan(count);
        load.settle_bytes(name, bytes_of(count, ID_BYTES_MAX));
    }

    fn add_taken_of_stream<'c>(&self, command: &'c StreamCommand, load: &mut Load<'c>) {
        match command {
            StreamCommand::Trim { name, trim } => {
                let most = self.most_in_stream(name, load).min(trim.max.unwrap_or(u64::MAX));
                self.add_gone(name, most.min(TRIMMED_MAX), load);
            }
            StreamCommand::Remove { name, ids } => {
                self.add_gone(name, ids.len() as u64, load);
                load.settle_bytes(name, STATE_BYTES as usize);
            }
            StreamCommand::Acknowledge { of, ids } => {
                self.add_gone(&of.stream, ids.len() as u64, load);
            }
            StreamCommand::RemoveConsumer { of, .. } => {
                let most = self.most_pending(of, load).min(TRIMMED_MAX);
                self.add_gone(&of.stream, most, load);
                load.settle_bytes(&of.stream, limits::STREAM_NAME_BYTES_MAX);
            }
            StreamCommand::SetLast { name, .. } => load.settle_bytes(name, STATE_BYTES as usize),
            StreamCommand::SetGroup { of, .. } | StreamCommand::RemoveGroup { of } => {
                load.settle_bytes(&of.stream, limits::STREAM_NAME_BYTES_MAX + STATE_BYTES as usize);
            }
            StreamCommand::Read(read) => self.add_read(read, load),
            StreamCommand::Claim { claim, ids, .. } => {
                self.add_claimed(claim, ids.len() as u64, load);
            }
            StreamCommand::ClaimNext { claim, max, .. } => {
                let pending = self.most_pending(&claim.of, load);
                load.scan(pending.min(max.saturating_mul(10)).min(10 * most_claimed(claim)));
                let most = (*max).min(most_claimed(claim)).min(pending);
                self.add_claimed(claim, most, load);
            }
            // They take nothing.
            _ => {}
        }
    }

    /// A consumer of a group reads.
    fn add_read<'c>(&self, read: &'c StreamRead, load: &mut Load<'c>) {
        let Some(reader) = &read.reader else { return };
        let (max, mut most) = (read.max.unwrap_or(u64::MAX), 0_u64);
        for (name, _) in &read.places {
            let of = GroupName { stream: name.clone(), group: reader.group.clone() };
            // New ones, or those that are pending.
            let all = self.most_in_stream(name, load).max(self.most_pending(&of, load));
            most = most.saturating_add(all.min(max));
            load.store(name, read_bytes(reader));
            // Two more records.
            load.store(name, 0);
            load.store(name, 0);
        }
        let most = most.min(delivered_max(read) as u64);
        load.scan(most);
        for (name, _) in &read.places {
            // Each may become pending with this consumer, in any of the streams.
            self.add_pending(name, most, load);
        }
        if let Some((name, _)) = read.places.first() {
            load.store(name, bytes_of(most, delivered_bytes(reader)));
        }
    }

    fn add_claimed<'c>(&self, claim: &'c StreamClaim, most: u64, load: &mut Load<'c>) {
        let name = &claim.of.stream;
        let each = ID_BYTES_MAX + 16 + claim.consumer.len();
        load.scan(most);
        load.store(name, claim.of.group.len() + claim.consumer.len() + STATE_BYTES as usize);
        load.store(name, bytes_of(most, each));
        // Those that are gone.
        load.store(name, 0);
        self.add_pending(name, most, load);
    }

    /// So many entries more may be pending in a group of a stream.
    fn add_pending<'c>(&self, name: &'c QueueName, count: u64, load: &mut Load<'c>) {
        let most = self.most_entries(name, load).and(EntriesMax::of(count, 0));
        load.collections.insert(name, most);
    }
}

fn bytes_of(count: u64, each: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each)
}

/// Bytes of an id that goes, in a record.
const ID_BYTES_MAX: usize = 1 + size_of::<StreamId>() + FieldsDraft::ENTRY_BYTES_MAX;

/// Bytes of the past of a stream, or of a group's or a consumer's values, with two records.
const STATE_BYTES: u64 = 2 * RECORD_BYTES_MAX as u64;

/// A consumer or a group is looked at by some searches.
const STEPS_PER_CONSUMER: u64 = 16;

const GROUPS_MAX: u64 = limits::STREAM_GROUPS_MAX as u64;

/// No step takes more out, or it is refused.
const TRIMMED_MAX: u64 = 20_000;

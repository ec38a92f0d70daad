//! The most that a batch may come to, counted before any command of it is performed. A batch takes
//! effect as one frame: it must be certain that the frame holds it and that the log has room.
//!
//! Everything is counted as large as it can become. Each command of a batch may meet all elements
//! that earlier commands of the batch have added to its list.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use model::{Command, NewMessage, QueueName, Refusal, limits};
use records::{CHANGED_BYTES_MAX, SendIdView};

use super::entries_load::EntriesMax;
use crate::delivery::move_messages::RELOCATION_BYTES_MAX;
use crate::demand::{Address, Batching, Changes, Comparison, Demand, ElementRule, Looks, Stores};
use crate::directory::Directory;
use crate::keyspace::{DEADLINE_BYTES_MAX, Keyspace};
use crate::log::claim::Claim;
use crate::log::{DELETED_BYTES_MAX, FrameWriter};
use crate::store::MessageStore;

/// The most that commands of a batch may come to.
#[derive(Debug, Default)]
pub(crate) struct Load<'c> {
    /// Bytes of records that store something anew.
    pub(crate) stored_bytes: usize,
    /// Bytes of records about messages that are there.
    pub(crate) settled_bytes: usize,
    /// Bytes of room that it uses up without a record of its own.
    pub(crate) reserved: u64,
    pub(crate) records: usize,
    /// Elements that are looked at, and copies of published messages.
    pub(crate) scanned: u64,
    /// How many elements each list may have by now that a command has named.
    lists: BTreeMap<&'c QueueName, u64>,
    /// Bytes that each value may have by now that a command has named.
    values: BTreeMap<&'c QueueName, usize>,
    /// Entries that each collection may have by now that a command has changed.
    pub(super) collections: BTreeMap<&'c QueueName, EntriesMax>,
    /// Names that another key may have got by a rename.
    pub(super) renamed: BTreeSet<&'c QueueName>,
    /// Elements that all lists together may have got, and values.
    added: u64,
    /// Elements that may be leased.
    pub(crate) leased: u64,
    /// Lists that may have got a deadline.
    limited: BTreeSet<&'c QueueName>,
}

impl<'c> Load<'c> {
    pub(super) fn store(&mut self, name: &QueueName, bytes: usize) {
        let bytes = (RECORD_BYTES_MAX + name.as_str().len()).saturating_add(bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(bytes);
        self.records += 1;
    }

    /// A record about a key that takes no room of its own.
    pub(super) fn settle(&mut self, name: &QueueName) {
        self.settle_bytes(name, 0);
    }

    /// The same with so many bytes beside the name.
    pub(super) fn settle_bytes(&mut self, name: &QueueName, bytes: usize) {
        let bytes = (RECORD_BYTES_MAX + name.as_str().len()).saturating_add(bytes);
        self.settled_bytes = self.settled_bytes.saturating_add(bytes);
        self.records += 1;
    }

    /// So many elements more in a list that may have some.
    fn add(&mut self, name: &'c QueueName, there: u64, count: u64) {
        self.lists.insert(name, there.saturating_add(count));
        self.added = self.added.saturating_add(count);
    }

    /// A value of so many bytes, which may be stored or not, in place of a list of `there`
    /// elements.
    fn set(&mut self, name: &'c QueueName, there: u64, bytes: usize) {
        self.delete(there);
        self.store(name, bytes);
        self.added = self.added.saturating_add(1);
        let most = self.values.entry(name).or_insert(0);
        *most = bytes.max(*most);
    }

    /// Adds the record of a message's deduplication id.
    fn name(&mut self, to: &QueueName, message: &NewMessage) {
        let Some(id) = &message.send_id else { return };
        let bytes = SendIdView::FIXED_BYTES_MAX + to.as_str().len() + id.len();
        self.stored_bytes = self.stored_bytes.saturating_add(bytes);
        self.records += 1;
    }

    pub(super) fn delete(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.records = self.records.saturating_add(count);
        let bytes = count.saturating_mul(DELETED_BYTES_MAX);
        self.settled_bytes = self.settled_bytes.saturating_add(bytes);
    }

    /// In one step; else not all of it would be done in the batch.
    fn delete_whole(&mut self, count: u64) -> Result<(), Refusal> {
        self.delete(count);
        let is_whole = count <= limits::FRAME_RECORDS_MAX as u64;
        if is_whole { Ok(()) } else { Err(Refusal::BatchTooLarge) }
    }

    fn change(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.records = self.records.saturating_add(count);
        let bytes = count.saturating_mul(CHANGED_BYTES_MAX);
        self.settled_bytes = self.settled_bytes.saturating_add(bytes);
    }

    pub(super) fn scan(&mut self, count: u64) {
        self.scanned = self.scanned.saturating_add(count);
    }
}

impl Keyspace {
    /// The most that these commands of a batch may come to; an error where one is not allowed.
    pub(crate) fn load_of<'c>(
        &self,
        commands: &'c [Command],
        directory: &Directory,
        store: &MessageStore,
    ) -> Result<Load<'c>, Refusal> {
        if commands.len() > limits::BATCH_COMMANDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        let mut load = Load::default();
        for command in commands {
            self.add_load(command, &mut load, directory, store)?;
            // Counting takes time as well.
            if load.records > limits::TRANSACTION_RECORDS_MAX || load.scanned > SCANNED_MAX {
                return Err(Refusal::BatchTooLarge);
            }
        }
        self.add_lifetimes(&mut load);
        Ok(load)
    }

    fn add_load<'c>(
        &self,
        command: &'c Command,
        load: &mut Load<'c>,
        directory: &Directory,
        store: &MessageStore,
    ) -> Result<(), Refusal> {
        let Demand { stores, changes, looks, batching, .. } = Demand::of(command);
        if batching != Batching::Batchable {
            return Err(Refusal::NotInBatch);
        }
        // In this order: it looks at the elements that are there before it adds any.
        store.add_looked_at(looks, load);
        self.add_changed(changes, load, directory, store)?;
        self.add_entries_load((stores, changes, looks), load, store);
        self.add_stream_load((stores, changes, looks), load);
        if let Stores::Edited { name, edit } = stores {
            let before = self.most_bytes_of(name, load);
            load.set(name, 0, edit.bytes_after(before).min(limits::EDITED_BYTES_MAX));
        }
        directory.add_stored_load(stores, load, store);
        Ok(())
    }

    /// How many bytes a value may have by now; zero if it is not there.
    fn most_bytes_of(&self, name: &QueueName, load: &Load<'_>) -> usize {
        let there = self.values().stored(name).map_or(0, |value| value.bytes().len());
        load.values.get(name).map_or(there, |most| there.max(*most))
    }

    /// The most that it comes to if all these values are set.
    pub(crate) fn load_of_values<'c>(
        &self,
        values: &'c BTreeMap<QueueName, Arc<[u8]>>,
        store: &MessageStore,
    ) -> Result<Load<'c>, Refusal> {
        if values.len() > limits::BATCH_COMMANDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        let mut load = Load::default();
        debug_assert!(values.keys().is_sorted(), "each name comes once");
        let mut gone = 0_u64;
        for (name, value) in values {
            gone = gone.saturating_add(store.named(name, &mut load));
            load.set(name, 0, value.len());
        }
        load.delete_whole(gone)?;
        self.add_lifetimes(&mut load);
        Ok(load)
    }

    fn add_changed<'c>(
        &self,
        changes: Changes<'c>,
        load: &mut Load<'c>,
        directory: &Directory,
        store: &MessageStore,
    ) -> Result<(), Refusal> {
        match changes {
            // Taken entries are counted with all of their commands.
            Changes::Nothing | Changes::Taken(_) | Changes::TakenOfStream(_) => {}
            Changes::Popped { queues, max } => directory.add_popped(queues, max, load, store),
            Changes::Moved { from, to, .. } => {
                store.named(from, load);
                load.add(to, store.most_of(to, load), 1);
                load.store(to, CHANGED_BYTES_MAX);
            }
            Changes::Removed { queue, max } => {
                let there = store.named(queue, load);
                load.delete(there.min(max));
            }
            Changes::Outside { queue, kept } => {
                let parting = kept.parting(store.named(queue, load));
                load.delete(parting.near + parting.far);
            }
            Changes::Renamed { from, to } => self.add_renamed(from, to, load, store),
            Changes::Keys(names) => {
                let all = names.iter().map(|name| store.named(name, load));
                let all = all.fold(0, u64::saturating_add);
                names.iter().for_each(|name| load.settle(name));
                load.delete_whole(all.saturating_add(names.len() as u64))?;
            }
            Changes::AllKeys(database) => {
                let values = self.values().len_of(database);
                let value_bytes = values.saturating_mul(limits::QUEUE_NAME_BYTES_MAX);
                load.settled_bytes = load.settled_bytes.saturating_add(value_bytes);
                let ready = if self.has_lists(database) { store.counts().ready() } else { 0 };
                let lists = ready.saturating_add(load.added);
                load.scan(store.queues.count() as u64 / QUEUES_PER_SCAN);
                load.delete_whole(lists.saturating_add(values as u64))?;
            }
            Changes::Stated(name) => load.settle(name),
            Changes::Limited { name, deadline } => {
                let there = store.named(name, load).min(limits::FRAME_RECORDS_MAX as u64);
                if store.moment_of(deadline) <= store.latest {
                    load.delete(there);
                    load.settle(name);
                } else {
                    load.store(name, 0);
                }
                load.limited.insert(name);
            }
        }
        Ok(())
    }

    /// The rename may take effect or not. So `from` keeps its count, and `to` has the larger of the
    /// two.
    fn add_renamed<'c>(
        &self,
        from: &'c QueueName,
        to: &'c QueueName,
        load: &mut Load<'c>,
        store: &MessageStore,
    ) {
        let (moved, gone) = (store.named(from, load), store.named(to, load));
        load.change(moved);
        load.delete(gone);
        load.reserved = load.reserved.saturating_add(moved.saturating_mul(RELOCATION_BYTES_MAX));
        let bytes = self.most_bytes_of(from, load).max(self.most_bytes_of(to, load));
        load.store(to, bytes);
        load.values.insert(to, bytes);
        self.rename_entries(from, to, load);
        // The old value's end, and the deadlines of both lists.
        for name in [from, from, to] {
            load.settle(name);
        }
        load.lists.insert(to, moved.max(gone));
        load.added = load.added.saturating_add(1);
        if self.limits(from) || load.limited.contains(from) {
            load.limited.insert(to);
        }
    }

    /// Adds the records of lists that may begin or end.
    fn add_lifetimes(&self, load: &mut Load<'_>) {
        let may_be_stated =
            |name: &&&QueueName| self.may_be_stated(name) || load.limited.contains(**name);
        let count = load.lists.keys().filter(may_be_stated).count();
        load.records = load.records.saturating_add(count);
        let bytes = count.saturating_mul(DEADLINE_BYTES_MAX);
        load.settled_bytes = load.settled_bytes.saturating_add(bytes);
    }
}

/// Queues that are passed over in the time of one element that is looked at.
const QUEUES_PER_SCAN: u64 = 16;

impl Directory {
    fn add_stored_load<'c>(&self, stores: Stores<'c>, load: &mut Load<'c>, store: &MessageStore) {
        match stores {
            Stores::Message { to: Address::Queue(name), message, .. } => {
                load.add(name, store.most_of(name, load), 1);
                load.store(name, message.body.len());
                load.name(name, message);
            }
            Stores::Message { to: Address::Topic(name), message, .. } => {
                self.add_published(name, message, load);
            }
            Stores::Elements { queue, elements, rule, .. } => {
                match rule {
                    ElementRule::Instead => {
                        store.named(queue, load);
                        load.delete(1);
                    }
                    ElementRule::Beside => {
                        // Those on the shorter side move.
                        let moving = store.most_of(queue, load) / 2 + 1;
                        load.change(moving.min(limits::FRAME_RECORDS_MAX as u64));
                        load.add(queue, store.most_of(queue, load), 1);
                    }
                    ElementRule::Always | ElementRule::OnlyExisting => {
                        load.add(queue, store.most_of(queue, load), elements.len() as u64);
                    }
                }
                elements.iter().for_each(|element| load.store(queue, element.len()));
            }
            Stores::Value { name, value } => {
                let there = store.named(name, load);
                load.set(name, there, value.len());
            }
            Stores::Values(values) => {
                for (name, value) in values {
                    let there = store.named(name, load);
                    load.set(name, there, value.len());
                }
            }
            // No batch has these.
            Stores::Message { to: Address::Producer(_), .. }
            | Stores::Transaction(_)
            | Stores::Batch(_)
            // Counted beside the values that are there.
            | Stores::Edited { .. }
            | Stores::Entries(_)
            | Stores::Stream(_)
            | Stores::Nothing => {}
        }
    }

    /// Elements popped from one of these lists are deleted, or leased.
    fn add_popped<'c>(
        &self,
        queues: &'c [QueueName],
        max: u64,
        load: &mut Load<'c>,
        store: &MessageStore,
    ) {
        let (mut most, mut leased) = (0, 0);
        for name in queues {
            let count = store.named(name, load).min(max);
            most = most.max(count);
            if self.leases_popped(name, store) {
                leased = leased.max(count);
            }
        }
        load.delete(most);
        load.leased = load.leased.saturating_add(leased);
    }

    fn leases_popped(&self, name: &QueueName, store: &MessageStore) -> bool {
        let slot = store.queues.find(name.as_str());
        let policy = slot.map(|slot| store.queues.at(slot).policy);
        policy.unwrap_or_else(|| self.policy_for(name)).pop_lease.is_some()
    }

    fn add_published(&self, name: &QueueName, message: &NewMessage, load: &mut Load<'_>) {
        let topic = self.topics().find(name.as_str()).map(|slot| self.topics().at(slot));
        let words = self.matching_words(name);
        let takers = topic.map_or(0, |topic| topic.subscriptions().len());
        let takers = takers + words.subscriptions.len();
        let envelopes = takers.saturating_mul(RECORD_BYTES_MAX);
        load.scan(takers.saturating_add(self.subscriptions().patterns_count()) as u64);
        load.store(name, message.body.len().saturating_add(envelopes));
        load.name(name, message);
    }
}

impl Load<'_> {
    /// The totals, without names.
    pub(crate) const fn total(&self) -> Claim {
        let Self { stored_bytes, settled_bytes, reserved, records, scanned, leased, .. } = *self;
        Claim { stored_bytes, settled_bytes, reserved, records, scanned, leased }
    }
}

impl FrameWriter {
    /// Checks that one frame and the room that is left take all the bytes that a batch may come to.
    pub(crate) fn takes_batch(&self, load: &Load<'_>) -> Result<(), Refusal> {
        self.takes(load.total())
    }

    /// The open frame holds what a command may come to, beside what was claimed before: it is
    /// claimed, or refused.
    pub(crate) fn claim(&mut self, load: &Load<'_>) -> Result<(), Refusal> {
        let all = self.claimed().and(load.total());
        self.takes(all)?;
        self.add_claim(load.total());
        Ok(())
    }

    fn takes(&self, load: Claim) -> Result<(), Refusal> {
        let bytes = load.stored_bytes.saturating_add(load.settled_bytes);
        if load.records > limits::TRANSACTION_RECORDS_MAX
            || bytes > self.frame_bytes_max()
            || load.scanned > SCANNED_MAX
            // Leased messages are deleted by the session's next command, as one frame of its own.
            || load.leased > limits::FRAME_RECORDS_MAX as u64
        {
            return Err(Refusal::BatchTooLarge);
        }
        // Both are one frame. A batch that only settles finds the room that is kept for it.
        let fits = (bytes as u64).saturating_add(load.reserved) <= self.room_left();
        let only_settles = load.stored_bytes == 0 && load.reserved == 0;
        let settles = only_settles && self.surely_takes(load.settled_bytes);
        if fits || settles { Ok(()) } else { Err(Refusal::StoreFull) }
    }
}

impl MessageStore {
    fn add_looked_at<'c>(&self, looks: Looks<'c>, load: &mut Load<'c>) {
        match looks {
            Looks::ForEqual(Comparison { list, scan_max, .. }) => {
                load.scan(self.most_of(list, load).min(scan_max.unwrap_or(u64::MAX)));
            }
            Looks::AtPlaces { queue, span } => {
                let wanted = span.within(self.most_of(queue, load));
                load.scan(wanted.end - wanted.start);
            }
            Looks::AtNames(count) => load.scan(count),
            Looks::AtNothing | Looks::AtEntries(_) | Looks::AtStream(_) | Looks::ForMatch(_) => {}
        }
    }

    /// How many elements a list may have by now that the batch has something to do with.
    pub(super) fn named<'c>(&self, name: &'c QueueName, load: &mut Load<'c>) -> u64 {
        *load.lists.entry(name).or_insert_with(|| self.ready_of(name))
    }

    /// How many elements a list may have by now.
    fn most_of(&self, name: &QueueName, load: &Load<'_>) -> u64 {
        load.lists.get(name).copied().unwrap_or_else(|| self.ready_of(name))
    }

    /// How many elements a list has.
    pub(crate) fn ready_of(&self, name: &QueueName) -> u64 {
        let slot = self.queues.find(name.as_str());
        slot.map_or(0, |slot| self.queues.at(slot).counts().ready())
    }
}

/// A record of something new, without names and body.
pub(crate) const RECORD_BYTES_MAX: usize = 128;

/// Elements that a batch may look at: some 40 ms.
const SCANNED_MAX: u64 = 4 * limits::LIST_SCAN_MAX as u64;

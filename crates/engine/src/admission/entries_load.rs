//! The most that a batch's commands on collections may come to.

use model::{
    CollectionCommand, CollectionKind, Combination, CombinationTarget, QueueName, ScoredPart,
    ScoredRange, SetOperation, limits,
};
use records::FieldsDraft;

use super::batch_load::Load;
use crate::demand::{Changes, Looks, Stores};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{Collection, combination_steps};
use crate::store::MessageStore;

/// How many entries a collection may have by now, and bytes of these.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntriesMax {
    count: u64,
    bytes: u64,
}

impl EntriesMax {
    pub(super) const fn of(count: u64, bytes: u64) -> Self {
        Self { count, bytes }
    }

    pub(super) const fn count(self) -> u64 {
        self.count
    }

    pub(super) const fn and(self, other: Self) -> Self {
        let count = self.count.saturating_add(other.count);
        Self { count, bytes: self.bytes.saturating_add(other.bytes) }
    }

    const fn less(self, other: Self) -> Self {
        let count = self.count.saturating_sub(other.count);
        Self { count, bytes: self.bytes.saturating_sub(other.bytes) }
    }

    /// No more than so many of them.
    fn at_most(self, count: u64) -> Self {
        let longest = limits::FIELD_BYTES_MAX as u64;
        let count = self.count.min(count);
        Self { count, bytes: self.bytes.min(count.saturating_mul(longest)) }
    }

    /// Bytes of a record of them.
    fn record_bytes(self) -> usize {
        let bytes = self.count.saturating_mul(ENTRY_BYTES_BESIDE).saturating_add(self.bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Keyspace {
    /// Adds what a command on collections comes to, if it is one.
    pub(super) fn add_entries_load<'c>(
        &self,
        (stores, changes, looks): (Stores<'c>, Changes<'c>, Looks<'c>),
        load: &mut Load<'c>,
        store: &MessageStore,
    ) {
        if let Looks::AtEntries(command) = looks {
            load.scan(self.looked_at(command, load));
        }
        if let Stores::Entries(command) = stores {
            self.add_stored_entries(command, load, store);
        }
        if let Changes::Taken(command) = changes {
            self.add_taken_entries(command, load);
        }
    }

    /// The rename may take effect or not.
    pub(super) fn rename_entries<'c>(
        &self,
        from: &QueueName,
        to: &'c QueueName,
        load: &mut Load<'c>,
    ) {
        let (one, other) = (self.most_entries(from, load), self.most_entries(to, load));
        load.renamed.insert(to);
        let count = one.count.max(other.count);
        load.collections.insert(to, EntriesMax { count, bytes: one.bytes.max(other.bytes) });
    }

    fn looked_at(&self, command: &CollectionCommand, load: &Load<'_>) -> u64 {
        match command {
            CollectionCommand::ShowFields { name, .. } => self.most_entries(name, load).count,
            CollectionCommand::ShowRange { name, part } => {
                self.most_entries(name, load).count.min(most_of_part(part))
            }
            CollectionCommand::PickFields { name, max, distinct: true, .. } => {
                self.most_entries(name, load).count.min(*max)
            }
            CollectionCommand::PickFields { max, .. } => *max,
            CollectionCommand::Combine(combination) => self.steps_of(combination, load),
            _ => 0,
        }
    }

    /// How much a collection may have by now.
    pub(super) fn most_entries(&self, name: &QueueName, load: &Load<'_>) -> EntriesMax {
        load.collections.get(name).copied().unwrap_or_else(|| self.entries_of(name))
    }

    fn entries_of(&self, name: &QueueName) -> EntriesMax {
        let collection = self.values().stored(name).and_then(|value| value.collection());
        collection.map(|it| EntriesMax { count: it.count, bytes: it.bytes }).unwrap_or_default()
    }

    /// More entries may be in a collection, each of which is stated.
    pub(super) fn add_new<'c>(&self, name: &'c QueueName, more: EntriesMax, load: &mut Load<'c>) {
        let most = self.most_entries(name, load).and(more);
        load.collections.insert(name, most);
        load.store(name, 0);
        load.store(name, more.record_bytes());
    }

    fn add_stored_entries<'c>(
        &self,
        command: &'c CollectionCommand,
        load: &mut Load<'c>,
        store: &MessageStore,
    ) {
        let bytes = command.body_bytes() as u64;
        match command {
            CollectionCommand::SetFields { name, fields, .. } => {
                self.add_new(name, EntriesMax { count: fields.len() as u64, bytes }, load);
            }
            CollectionCommand::EditField { name, edit, .. } => {
                let bytes = bytes.saturating_add(edit.bytes_max() as u64);
                self.add_new(name, EntriesMax { count: 1, bytes }, load);
            }
            CollectionCommand::AddMembers { name, members } => {
                self.add_new(name, EntriesMax { count: members.len() as u64, bytes }, load);
            }
            CollectionCommand::SetScores { name, members, .. } => {
                self.add_new(name, EntriesMax { count: members.len() as u64, bytes }, load);
            }
            CollectionCommand::MoveMember { from, to, .. } => {
                let one = EntriesMax { count: 1, bytes };
                self.add_new(to, one, load);
                load.settle_bytes(from, one.record_bytes());
            }
            CollectionCommand::StoreRange { from, to, .. } => {
                let most = self.most_entries(from, load);
                self.add_result(to, most, load, store);
            }
            CollectionCommand::Combine(combination) => {
                if let CombinationTarget::Stored(to) = &combination.target {
                    load.scan(self.steps_of(combination, load));
                    let most = self.most_combined(combination, load);
                    self.add_result(to, most, load, store);
                }
            }
            // They store nothing.
            _ => {}
        }
    }

    /// How many members a combination looks at.
    fn steps_of(&self, combination: &Combination, load: &Load<'_>) -> u64 {
        let counts = combination.names.iter().map(|(name, _)| self.most_entries(name, load).count);
        combination_steps(combination.how, counts)
    }

    fn most_combined(&self, combination: &Combination, load: &Load<'_>) -> EntriesMax {
        let mut all = combination.names.iter().map(|(name, _)| self.most_entries(name, load));
        match combination.how {
            SetOperation::Union => all.fold(EntriesMax::default(), EntriesMax::and),
            // No more than any of them has.
            SetOperation::Intersection | SetOperation::Difference => all.next().unwrap_or_default(),
        }
    }

    /// The result of a command takes the place of a key. A member of a set may get a score.
    fn add_result<'c>(
        &self,
        to: &'c QueueName,
        most: EntriesMax,
        load: &mut Load<'c>,
        store: &MessageStore,
    ) {
        let scores = most.count.saturating_mul(size_of::<f64>() as u64);
        let most = most.and(EntriesMax { count: 0, bytes: scores });
        let there = store.named(to, load);
        load.delete(there);
        load.settle(to);
        load.scan(most.count);
        self.add_new(to, most, load);
    }

    fn add_taken_entries<'c>(&self, command: &'c CollectionCommand, load: &mut Load<'c>) {
        match command {
            CollectionCommand::RemoveFields { name, fields, .. } => {
                let bytes = command.body_bytes() as u64;
                let gone = EntriesMax { count: fields.len() as u64, bytes };
                load.settle_bytes(name, gone.record_bytes());
            }
            CollectionCommand::RemoveRange { name, range } => {
                let gone = self.most_of_range(name, range, load);
                load.scan(gone.count);
                load.settle_bytes(name, gone.record_bytes());
            }
            CollectionCommand::PickFields { name, max, .. } => {
                let gone = self.most_entries(name, load).at_most(*max);
                load.scan(gone.count);
                load.settle_bytes(name, gone.record_bytes());
            }
            CollectionCommand::PopScored { names, max, .. } => {
                let all = names.iter().map(|name| self.most_entries(name, load).at_most(*max));
                let gone = all.max_by_key(|gone| gone.record_bytes()).unwrap_or_default();
                load.scan(gone.count);
                if let Some(longest) = names.iter().max_by_key(|name| name.as_str().len()) {
                    load.settle_bytes(longest, gone.record_bytes());
                }
            }
            // They take nothing.
            _ => {}
        }
    }

    /// The most that is in a range by now: the members that are in it, and all that the batch has
    /// set.
    fn most_of_range(&self, name: &QueueName, range: &ScoredRange, load: &Load<'_>) -> EntriesMax {
        let collection = self.values().stored(name).and_then(|value| value.collection());
        let is_sorted = |it: &Collection| it.kind == CollectionKind::SortedSet;
        // Places are others when members have come or gone, and so are all members by a rename.
        let is_by_rank = matches!(range, ScoredRange::Ranks { .. });
        let is_other = is_by_rank && load.collections.contains_key(name);
        if is_other || load.renamed.contains(name) {
            return self.most_entries(name, load);
        }
        let set = self.most_entries(name, load).less(self.entries_of(name));
        let Some(there) = collection.filter(is_sorted) else { return set };
        let (count, bytes) = self.collections().size_of_range(&there, range);
        EntriesMax { count, bytes }.and(set)
    }
}

/// How many members a part shows at most, by itself.
fn most_of_part(part: &ScoredPart) -> u64 {
    let span = match part.range {
        ScoredRange::Ranks { first, last } if (first < 0) == (last < 0) => {
            u64::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0)
        }
        _ => u64::MAX,
    };
    span.min(part.max.unwrap_or(u64::MAX))
}

/// Bytes of an entry in a record beside its own, and of its score.
const ENTRY_BYTES_BESIDE: u64 = (FieldsDraft::ENTRY_BYTES_MAX + size_of::<f64>()) as u64;

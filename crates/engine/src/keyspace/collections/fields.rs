//! Commands on the fields of hashes and the members of sets.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use model::{
    CollectionKind, Entries, FieldAndValue, QueueName, Refusal, Reply, ValueEdit, Values, limits,
};

use super::bounds::Shown;
use super::changing::{Pair, begin_together};
use super::{Collection, Work, cell_of, entries_in, entry_key, rank_in, score_of, value_of};
use crate::collections::packed_tree::{Cell, PackedTree};
use crate::keyspace::Keyspace;
use crate::keyspace::editing::Edited;
use crate::keyspace::lists::runs::SHOWN_BYTES_MAX;

/// Some entries of a collection in a tree.
pub(super) fn scan(
    tree: &PackedTree,
    collection: &Collection,
    from: Bound<&[u8]>,
    max: usize,
    work: &mut Work<'_>,
) -> Result<Entries, Refusal> {
    let number = collection.number;
    let from = match from {
        Bound::Unbounded => 0,
        Bound::Included(first) => rank_in(tree, number, first),
        Bound::Excluded(last) => {
            let is_there = tree.get(&entry_key(number, last)).is_some();
            rank_in(tree, number, last) + u64::from(is_there)
        }
    };
    let max = max.clamp(1, limits::BATCH_COMMANDS_MAX);
    let mut shown = Shown::of(collection, max as u64, work)?;
    let mut more = false;
    for (field, cell) in entries_in(tree, number, from) {
        // One alone may be more.
        if shown.count() == max || shown.bytes() > SHOWN_BYTES_MAX {
            more = true;
            break;
        }
        shown.add(field, &cell)?;
    }
    let mut entries = shown.into_entries();
    let last = entries.len().checked_sub(1).filter(|_| more);
    entries.next = last.and_then(|last| entries.fields.get(last)).map(Arc::from);
    Ok(entries)
}

/// The value of a member of a set.
pub(super) const NOTHING: Cell<'static> = Cell { inline: &[], body: None };

impl Keyspace {
    pub(super) fn set_fields(
        &mut self,
        name: &QueueName,
        fields: &[FieldAndValue],
        only_new: bool,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let (at, there) = self.find_collection(name, CollectionKind::Hash, work.store)?;
        let has = |field: &[u8]| {
            there.is_some_and(|there| self.collections.get(there.number, field).is_some())
        };
        if only_new && fields.iter().any(|(field, _)| has(field)) {
            return Ok(Reply::Count(0));
        }
        let (one, all);
        let pairs: &[_] = if let [field] = fields {
            one = [pair_of(field)];
            &one
        } else {
            all = fields.iter().map(pair_of).collect::<Vec<_>>();
            &all
        };
        let new = self.set_entries(name, CollectionKind::Hash, (Some(at), there), pairs, work)?;
        Ok(Reply::Count(new))
    }

    pub(super) fn edit_field(
        &mut self,
        name: &QueueName,
        field: &[u8],
        edit: &ValueEdit,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let (at, there) = self.find_collection(name, CollectionKind::Hash, work.store)?;
        let found = there.map(|there| self.collections.find(there.number, field));
        let (place, before) = found.map_or((None, None), |(place, it)| (Some(place), it));
        let edited = Edited::of(before.as_ref().map(value_of), edit, work.store)?;
        if let Some(bytes) = edited.bytes {
            let pairs = [Pair::new(field, cell_of(&bytes)).at(place)];
            self.set_entries(name, CollectionKind::Hash, (Some(at), there), &pairs, work)?;
        }
        Ok(edited.reply)
    }

    pub(super) fn add_members(
        &mut self,
        name: &QueueName,
        members: &[Arc<[u8]>],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let (at, there) = self.find_collection(name, CollectionKind::Set, work.store)?;
        work.store.took_steps(members.len());
        // Nothing for a member that is there.
        let new_pair = |member| {
            let pair = Pair::new(member, NOTHING);
            let Some(there) = there else { return Some(pair) };
            let (place, found) = self.collections.find(there.number, member);
            found.is_none().then_some(pair.at(Some(place)))
        };
        let (one, all);
        let pairs: &[_] = if let [member] = members {
            one = new_pair(member);
            one.as_slice()
        } else {
            all = members.iter().filter_map(|member| new_pair(member)).collect::<Vec<_>>();
            &all
        };
        if pairs.is_empty() {
            return Ok(Reply::Count(0));
        }
        let new = self.set_entries(name, CollectionKind::Set, (Some(at), there), pairs, work)?;
        Ok(Reply::Count(new))
    }

    pub(super) fn remove_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        fields: &[Arc<[u8]>],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, kind, work.store)? else {
            return Ok(Reply::Count(0));
        };
        if fields.len() > limits::COMMAND_ENTRIES_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        work.store.took_steps(fields.len());
        let is_there = |field: &&[u8]| self.collections.get(there.number, field).is_some();
        let known: BTreeSet<&[u8]> = fields.iter().map(|field| &**field).filter(is_there).collect();
        let known: Vec<_> = known.into_iter().map(<[u8]>::to_vec).collect();
        self.take_entries(name, there, &known, work)?;
        Ok(Reply::Count(known.len() as u64))
    }

    pub(super) fn find_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        fields: &[Arc<[u8]>],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = self.collection(name, kind, work.store)?;
        work.store.took_steps(fields.len());
        let all = fields
            .iter()
            .map(|field| there.and_then(|there| self.collections.get(there.number, field)));
        let reply = match (kind, fields) {
            (CollectionKind::Hash | CollectionKind::Stream, [_]) => {
                Reply::Value(all.flatten().next().map(shared))
            }
            (CollectionKind::Hash | CollectionKind::Stream, _) => {
                let bytes = all.clone().flatten().map(|value| value_of(&value).len());
                let beside = fields.len() * limits::BESIDE_ELEMENT_BYTES;
                if bytes.sum::<usize>() + beside > work.shown_max {
                    return Err(work.too_much.clone());
                }
                let found = all.map(|value| Ok(value.map(shared))).collect();
                Reply::Values(Box::new(Values { found, rest: Vec::new() }))
            }
            (CollectionKind::Set, _) => {
                Reply::Numbers(all.map(|value| Some(i64::from(value.is_some()))).collect())
            }
            (CollectionKind::SortedSet, _) => {
                Reply::Scores(all.map(|value| value.map(score_of)).collect())
            }
        };
        Ok(reply)
    }

    pub(super) fn count_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = self.collection(name, kind, work.store)?;
        Ok(Reply::Count(there.map_or(0, |there| there.count)))
    }

    pub(super) fn show_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, kind, work.store)? else {
            return Ok(Reply::Entries(Box::default()));
        };
        let mut shown = Shown::of(&there, there.count, work)?;
        if kind == CollectionKind::SortedSet {
            for (member, score) in self.collections.scored(there.number, 0) {
                shown.add_scored(member, score)?;
            }
        } else {
            for (field, cell) in self.collections.entries(there.number, 0) {
                shown.add(field, &cell)?;
            }
        }
        Ok(shown.into_reply())
    }

    pub(super) fn scan_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        from: Bound<&[u8]>,
        max: usize,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, kind, work.store)? else {
            return Ok(Reply::Entries(Box::default()));
        };
        let entries = scan(&self.collections.entries, &there, from, max, work)?;
        Ok(Reply::Entries(Box::new(entries)))
    }

    pub(super) fn move_member(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        member: &[u8],
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let source = self.collection(from, CollectionKind::Set, work.store)?;
        let Some(source) = source else { return Ok(Reply::Count(0)) };
        let target = self.collection(to, CollectionKind::Set, work.store)?;
        if self.collections.get(source.number, member).is_none() {
            return Ok(Reply::Count(0));
        }
        if from == to {
            return Ok(Reply::Count(1));
        }
        let has = |target: Collection| self.collections.get(target.number, member).is_some();
        let is_there = target.is_some_and(has);
        let is_alone = begin_together(&[from, to], member.len(), work)?;
        let stored = if is_there {
            Ok(())
        } else {
            let pairs = [Pair::new(member, NOTHING)];
            self.set_entries(to, CollectionKind::Set, (None, target), &pairs, work).map(|_| ())
        };
        if stored.is_ok() {
            self.take_moved(from, source, member, work);
        }
        if is_alone {
            work.log.end_batch();
        }
        stored.map(|()| Reply::Count(1))
    }
}

fn pair_of((field, value): &FieldAndValue) -> Pair<'_> {
    Pair::new(field, cell_of(value))
}

fn shared(value: Cell<'_>) -> Arc<[u8]> {
    value.body.map_or_else(|| Arc::from(value.inline), Arc::clone)
}

impl Keyspace {
    /// Takes a member out of the set that it leaves for another one, in the same frame.
    fn take_moved(
        &mut self,
        from: &QueueName,
        source: Collection,
        member: &[u8],
        work: &mut Work<'_>,
    ) {
        let taken = self.take_entries(from, source, &[member.to_vec()], work);
        taken.expect("invariant: the frame has room for both records");
    }
}

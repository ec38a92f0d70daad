//! Collections: fields with values (a hash), members (a set), members with scores (a sorted set),
//! entries with ids (a stream).
//!
//! A name stands for a number, and the entries of all collections lie in one packed tree, by number
//! and field. A sorted set has a second entry for each member in another tree, by number, score and
//! member; and so has a group of a stream for what is pending. So a collection is gone at once with
//! its name, however many entries it has: these are dropped later, in steps, and no number is used
//! again.
//!
//! The log has each changed entry as it is now. It does not have the second tree and the counts,
//! which recovery makes anew.

mod bounds;
mod changing;
mod combining;
mod fields;
mod picking;
mod pictures;
mod ranges;
mod recovery;
mod scores;
mod streams;
mod tables;
mod waiting;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionCommand, CollectionKind, CombinationTarget, Nanos, QueueName, Refusal, Reply, Score,
};

use crate::Effects;
use crate::collections::packed_tree::{Cell, INLINE_BYTES_MAX, KeyParts, PackedTree, Place};
use crate::collections::short_bytes::ShortBytes;
use crate::keyspace::{Keyspace, NamePlace};
use crate::log::FrameWriter;
use crate::replies::ReplyBudget;
use crate::store::MessageStore;
use crate::store::timers::Timer;

use combining::Members;
pub(crate) use combining::combination_steps;
use picking::Picks;
use pictures::Pictures;
pub(crate) use recovery::EntryCursor;
pub(crate) use streams::{delivered_bytes, delivered_max, most_claimed, read_bytes};
pub(crate) use tables::{TableChanges, check_step, step_bytes_max, step_records_max};
pub(crate) use waiting::{Awaited, AwaitedEntries, Pop, Waits};

/// All entries of collections.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    entries: PackedTree,
    /// Members of sorted sets by their scores, and pending entries of groups by their consumers.
    places: PackedTree,
    /// The last number that was given.
    last: u64,
    /// Bytes of fields and values.
    bytes: u64,
    /// The numbers of collections that are gone, with entries that are still to be dropped.
    dead: VecDeque<u64>,
    /// The moment of the timer that drops them.
    drops_at: Option<Nanos>,
    pictures: Pictures,
}

/// The collection that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) kind: CollectionKind,
    /// The number of its entries.
    pub(crate) number: u64,
    /// How many fields or members it has.
    pub(crate) count: u64,
    /// Bytes of these and their values.
    pub(crate) bytes: u64,
}

/// The parts of the engine that a command on collections works with.
#[derive(Debug)]
pub(crate) struct Work<'e> {
    pub(crate) store: &'e mut MessageStore,
    pub(crate) log: &'e mut FrameWriter,
    pub(crate) effects: &'e mut Effects,
    /// Values and collections may take so much memory.
    pub(crate) memory_max: u64,
    /// Bytes that the reply may show.
    pub(crate) shown_max: usize,
    /// The refusal of a reply that would show more.
    pub(crate) too_much: Refusal,
}

/// A command on collections that was done.
#[derive(Debug)]
pub(crate) enum Done<'c> {
    /// This is its answer, unless it waits.
    Told(Reply),
    /// These members are to be stored under a name, in place of any key.
    ToStore(&'c QueueName, CollectionKind, Members),
}

/// A member and its score.
pub(crate) type ScoredEntry<'t> = (KeyParts<'t>, Score);

/// An entry: a field or member, and its value.
pub(crate) type Entry<'t> = (KeyParts<'t>, Cell<'t>);

impl<'e> Work<'e> {
    /// Of a command that takes entries, and adds none.
    pub(crate) fn taking(
        store: &'e mut MessageStore,
        log: &'e mut FrameWriter,
        effects: &'e mut Effects,
        replies: &ReplyBudget,
    ) -> Self {
        let (shown_max, too_much) = (replies.left(), replies.refusal());
        Self { store, log, effects, memory_max: 0, shown_max, too_much }
    }
}

impl Collection {
    /// A new one, without entries.
    pub(crate) const fn new(kind: CollectionKind, number: u64) -> Self {
        Self { kind, number, count: 0, bytes: 0 }
    }

    fn is_scored(&self) -> bool {
        self.kind == CollectionKind::SortedSet
    }

    /// True if this may be the field of something pending: with a group's number it is.
    fn may_pend(&self, field: &[u8]) -> bool {
        self.kind == CollectionKind::Stream && streams::is_pending(field)
    }
}

impl Collections {
    /// The number of a new collection.
    pub(crate) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Bytes of memory that they take.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        let empty = PackedTree::EMPTY_BYTES;
        (self.entries.bytes() + self.places.bytes() - 2 * empty) as u64
    }

    /// How many entries all collections have.
    pub(crate) const fn entry_count(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The most bytes that they take in a snapshot.
    pub(crate) const fn snapshot_bytes(&self) -> u64 {
        self.bytes + self.entries.len() as u64 * PICTURE_BYTES_MAX
    }

    fn get(&self, number: u64, field: &[u8]) -> Option<Cell<'_>> {
        self.find(number, field).1
    }

    /// The place of a field, and its value.
    fn find(&self, number: u64, field: &[u8]) -> (Place, Option<Cell<'_>>) {
        self.entries.find(&entry_key(number, field))
    }

    /// The score of a member of a sorted set.
    fn score(&self, number: u64, member: &[u8]) -> Option<Score> {
        self.get(number, member).map(score_of)
    }

    /// The entries of a collection, in the order of their fields, from the one on that has so many
    /// before it.
    fn entries(&self, number: u64, from: u64) -> impl Iterator<Item = Entry<'_>> {
        entries_in(&self.entries, number, from)
    }

    /// The same of the members of a sorted set, in the order of their scores.
    fn scored(&self, number: u64, from: u64) -> impl Iterator<Item = ScoredEntry<'_>> {
        let first = self.places.rank(&number.to_be_bytes()) as u64 + from;
        let number = number.to_be_bytes();
        self.places.iter_at(first as usize).map_while(move |(key, cell)| {
            let (_, key) = key.split().filter(|(its, _)| *its == number)?;
            let (order, member) = key.split()?;
            let score = Score::of_order(order)?;
            let is_negative = !cell.inline.is_empty();
            Some((member, if is_negative { Score::new(-score.get())? } else { score }))
        })
    }

    /// How many members of a sorted set stand before this place in the order of scores.
    fn scored_rank(&self, number: u64, place: &[u8]) -> u64 {
        let first = self.places.rank(&number.to_be_bytes());
        (self.places.rank(&entry_key(number, place)) - first) as u64
    }

    /// How many entries of a collection stand before this field.
    fn rank(&self, number: u64, field: &[u8]) -> u64 {
        rank_in(&self.entries, number, field)
    }

    /// Sets an entry, in a place that may be known. The bytes of the value that it had before.
    fn set(
        &mut self,
        collection: &Collection,
        field: &[u8],
        value: Cell<'_>,
        place: Option<Place>,
    ) -> Option<usize> {
        let number = collection.number;
        let (is_scored, may_pend) = (collection.is_scored(), collection.may_pend(field));
        let key = entry_key(number, field);
        let (place, seen) = self.entries.find_again(place, &key);
        let before = seen.map(|cell| value_of(&cell).len());
        let old = seen.filter(|_| is_scored).map(score_of);
        let pending = seen.filter(|_| may_pend);
        let old_place = pending.and_then(|cell| streams::place_of(number, field, value_of(&cell)));
        self.entries.insert_at(&place, &key, value.into());
        if is_scored {
            self.index_score(number, field, old, score_of(value));
        }
        if may_pend {
            self.index_pending(old_place, streams::place_of(number, field, value_of(&value)));
        }
        let now = value_of(&value).len() as u64;
        self.bytes += match before {
            Some(_) => now,
            None => now + field.len() as u64,
        };
        self.bytes -= before.unwrap_or(0) as u64;
        self.trim_pictures();
        before
    }

    fn index_score(&mut self, number: u64, member: &[u8], old: Option<Score>, score: Score) {
        if let Some(old) = old.filter(|old| *old != score) {
            let was_there = self.places.remove(&score_key(number, old, member), |_| ());
            assert!(was_there, "a member has a place by its score");
        }
        if old != Some(score) {
            let inline = sign_of(score);
            let cell = Cell { inline, body: None };
            self.places.insert(&score_key(number, score, member), cell, |_| ());
        }
    }

    fn index_pending(&mut self, old: Option<Vec<u8>>, place: Option<Vec<u8>>) {
        if old == place {
            return;
        }
        if let Some(old) = old {
            let was_there = self.places.remove(&old, |_| ());
            assert!(was_there, "what is pending has a place by its consumer");
        }
        if let Some(place) = place {
            self.places.insert(&place, Cell::inline(&[]), |_| ());
        }
    }

    /// Removes an entry. The bytes of its value.
    fn remove(&mut self, collection: &Collection, field: &[u8]) -> Option<usize> {
        let (number, mut removed, mut place) = (collection.number, None, None);
        let (is_scored, may_pend) = (collection.is_scored(), collection.may_pend(field));
        self.entries.remove(&entry_key(number, field), |cell| {
            removed = Some((value_of(&cell).len(), is_scored.then(|| score_of(cell))));
            if may_pend {
                place = streams::place_of(number, field, value_of(&cell));
            }
        });
        let (bytes, score) = removed?;
        self.index_pending(place, None);
        if let Some(score) = score {
            let was_there = self.places.remove(&score_key(number, score, field), |_| ());
            assert!(was_there, "a member has a place by its score");
        }
        self.bytes -= (field.len() + bytes) as u64;
        self.trim_pictures();
        Some(bytes)
    }

    /// The entries of a collection are to be dropped, and those of its groups.
    pub(crate) fn drop_later(&mut self, collection: Collection, store: &mut MessageStore) {
        if collection.kind == CollectionKind::Stream {
            let groups: Vec<_> = self.group_numbers(&collection).collect();
            self.dead.extend(groups);
        }
        self.dead.push_back(collection.number);
        self.set_timer(store);
    }

    fn set_timer(&mut self, store: &mut MessageStore) {
        // Behind all that is due by now.
        let at = Some(store.latest).filter(|_| !self.dead.is_empty());
        store.timers.change(Timer::Collections, self.drops_at, at);
        self.drops_at = at;
    }

    /// Drops some of the entries that are to be dropped.
    pub(crate) fn drop_some(&mut self, store: &mut MessageStore) {
        let mut left = DROPPED_PER_STEP;
        while let Some(number) = self.dead.front().copied().filter(|_| left > 0) {
            let is_over = !self.drop_next_of(number);
            left -= 1;
            if is_over {
                self.dead.pop_front();
            }
        }
        store.took_steps(STEPS_PER_DROPPED * (DROPPED_PER_STEP - left));
        self.set_timer(store);
    }

    /// Drops an entry of a number; false if there is none.
    fn drop_next_of(&mut self, number: u64) -> bool {
        let of_number = |tree: &PackedTree| {
            let first = tree.iter_at(tree.rank(&number.to_be_bytes())).next();
            let key = first.map(|(key, _)| key.to_vec());
            key.filter(|key| key.starts_with(&number.to_be_bytes()))
        };
        if let Some(key) = of_number(&self.places) {
            return self.places.remove(&key, |_| ());
        }
        let Some(key) = of_number(&self.entries) else { return false };
        let mut bytes = key.len() - NUMBER_BYTES;
        let was_there = self.entries.remove(&key, |cell| bytes += value_of(&cell).len());
        self.bytes -= bytes as u64;
        self.trim_pictures();
        was_there
    }

    /// How many timers are set.
    pub(crate) fn timers(&self) -> usize {
        usize::from(self.drops_at.is_some()) + self.pictures.timers()
    }

    /// Verifies that the entries of each collection are as many and as long as its name says.
    fn check(&self, all: impl Iterator<Item = (QueueName, Collection)>) {
        self.entries.check();
        self.places.check();
        let mut counted = 0;
        for (name, collection) in all {
            let Collection { kind, number, count, bytes } = collection;
            assert!(number <= self.last && count > 0, "{name} has a number, and entries");
            assert!(!self.dead.contains(&number), "{name} is there");
            let (mut found, mut its_bytes, mut scored) = (0, 0, 0);
            for (field, cell) in self.entries(number, 0) {
                let field = field.to_vec();
                found += 1;
                its_bytes += (field.len() + value_of(&cell).len()) as u64;
                if kind == CollectionKind::SortedSet {
                    let key = score_key(number, score_of(cell), &field);
                    scored += u64::from(self.places.get(&key).is_some());
                }
            }
            assert_eq!((found, its_bytes), (count, bytes), "entries of {name}");
            let expected = if kind == CollectionKind::SortedSet { count } else { 0 };
            assert_eq!(scored, expected, "members of {name} by their scores");
            counted += count;
            if kind == CollectionKind::Stream {
                counted += self.check_stream(&collection);
            }
        }
        let is_whole = !self.dead.is_empty() || counted == self.entries.len() as u64;
        assert!(is_whole, "entries have a collection");
    }
}

impl Keyspace {
    /// All entries of collections.
    pub(crate) const fn collections(&self) -> &Collections {
        &self.collections
    }

    /// Some of the entries of collections that are gone are dropped.
    pub(crate) fn drop_entries(&mut self, store: &mut MessageStore) {
        self.collections.drop_some(store);
    }

    /// Bytes of memory that values and collections take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.values.memory_bytes() + self.collections.memory_bytes()
    }

    /// The most bytes that they take in a snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.values.snapshot_bytes() + self.collections.snapshot_bytes()
    }

    /// Verifies the entries of collections.
    pub(crate) fn check_collections(&self, store: &MessageStore) {
        let all = self.values.iter_after(None);
        self.collections.check(all.filter_map(|(name, value)| Some((name, value.collection()?))));
        self.collections.check_pictures(store);
        if let Some(at) = self.collections.drops_at {
            assert!(store.timers.contains(at, Timer::Collections), "entries are dropped by time");
        }
        assert_eq!(self.collections.drops_at.is_some(), !self.collections.dead.is_empty());
    }

    /// Does a command, but for storing its result under a name of its own.
    pub(crate) fn do_collection<'c>(
        &mut self,
        command: &'c CollectionCommand,
        work: &mut Work<'_>,
    ) -> Result<Done<'c>, Refusal> {
        let reply = match command {
            CollectionCommand::SetFields { name, fields, only_new } => {
                self.set_fields(name, fields, *only_new, work)
            }
            CollectionCommand::EditField { name, field, edit } => {
                self.edit_field(name, field, edit, work)
            }
            CollectionCommand::AddMembers { name, members } => {
                self.add_members(name, members, work)
            }
            CollectionCommand::SetScores { name, members, rule } => {
                self.set_scores(name, members, *rule, work)
            }
            CollectionCommand::RemoveFields { name, kind, fields } => {
                self.remove_fields(name, *kind, fields, work)
            }
            CollectionCommand::FindFields { name, kind, fields } => {
                self.find_fields(name, *kind, fields, work)
            }
            CollectionCommand::CountFields { name, kind } => self.count_fields(name, *kind, work),
            CollectionCommand::ShowFields { name, kind } => self.show_fields(name, *kind, work),
            CollectionCommand::ScanFields { name, kind, from, max } => {
                let from = from.as_ref().map(|from| &**from);
                self.scan_fields(name, *kind, from, *max, work)
            }
            CollectionCommand::TakePicture { name, kind } => self.take_picture(name, *kind, work),
            CollectionCommand::ShowPicture { picture, name, from, max } => {
                let from = from.as_ref().map(|from| &**from);
                self.show_picture((*picture, name), from, *max, work)
            }
            CollectionCommand::EndPicture { picture, name } => {
                Ok(self.end_picture((*picture, name), work))
            }
            CollectionCommand::PickFields { name, kind, max, distinct, take, seed } => {
                let (max, distinct, take, seed) = (*max, *distinct, *take, *seed);
                self.pick_fields(name, *kind, Picks { max, distinct, take, seed }, work)
            }
            CollectionCommand::MoveMember { from, to, member } => {
                self.move_member(from, to, member, work)
            }
            CollectionCommand::Combine(combination) => {
                let members = self.combine(combination, work)?;
                if let CombinationTarget::Stored(to) = &combination.target {
                    return Ok(Done::ToStore(to, combination.kind, members));
                }
                Self::tell_combined(combination, members, work)
            }
            CollectionCommand::ShowRange { name, part } => self.show_range(name, part, work),
            CollectionCommand::StoreRange { from, to, part } => {
                let members = self.members_of_part(from, part, work)?;
                return Ok(Done::ToStore(to, CollectionKind::SortedSet, members));
            }
            CollectionCommand::CountRange { name, range } => self.count_range(name, range, work),
            CollectionCommand::RemoveRange { name, range } => self.remove_range(name, range, work),
            CollectionCommand::Rank { name, member, reverse } => {
                self.rank_of(name, member, *reverse, work)
            }
            CollectionCommand::PopScored { names, highest, max, .. } => {
                let pop = Pop { highest: *highest, max: *max };
                self.pop_scored_now(names, pop, work)
            }
        };
        reply.map(Done::Told)
    }

    /// The collection of this name; nothing if there is no key.
    ///
    /// # Errors
    /// `WrongKind` if the name stands for something else.
    fn collection(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        store: &mut MessageStore,
    ) -> Result<Option<Collection>, Refusal> {
        self.find_collection(name, kind, store).map(|(_, found)| found)
    }

    /// The same, and the place of the name.
    fn find_collection(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        store: &mut MessageStore,
    ) -> Result<(NamePlace, Option<Collection>), Refusal> {
        let (place, value) = self.values.find(name);
        if let Some(value) = value.filter(|value| value.is_there(store.latest)) {
            let found = value.collection().filter(|found| found.kind == kind);
            return found.map(|found| (place, Some(found))).ok_or(Refusal::WrongKind);
        }
        let is_list = self.find_list(name, store).is_some();
        if is_list { Err(Refusal::WrongKind) } else { Ok((place, None)) }
    }
}

/// The entries of a collection in a tree, from the one on that has so many before it.
fn entries_in(tree: &PackedTree, number: u64, from: u64) -> impl Iterator<Item = Entry<'_>> {
    let first = tree.rank(&number.to_be_bytes()) as u64 + from;
    let number = number.to_be_bytes();
    tree.iter_at(first as usize).map_while(move |(key, cell)| {
        let (_, field) = key.split().filter(|(its, _)| *its == number)?;
        Some((field, cell))
    })
}

/// How many entries of a collection in a tree stand before this field.
fn rank_in(tree: &PackedTree, number: u64, field: &[u8]) -> u64 {
    let first = tree.rank(&number.to_be_bytes());
    (tree.rank(&entry_key(number, field)) - first) as u64
}

fn entry_key(number: u64, field: &[u8]) -> ShortBytes {
    ShortBytes::of([&number.to_be_bytes(), field])
}

fn score_key(number: u64, score: Score, member: &[u8]) -> ShortBytes {
    ShortBytes::of([&number.to_be_bytes(), &score.order()[..], member])
}

/// Bytes beside a member in the order of scores: they tell minus zero from zero.
fn sign_of(score: Score) -> &'static [u8] {
    if score.get() == 0.0 && score.get().is_sign_negative() { &[1] } else { &[] }
}

/// The bytes of a value.
fn value_of<'c>(cell: &Cell<'c>) -> &'c [u8] {
    cell.body.map_or(cell.inline, |body| body)
}

/// The value of a field as it is stored.
fn cell_of(value: &Arc<[u8]>) -> Cell<'_> {
    let is_inline = value.len() <= INLINE_BYTES_MAX;
    Cell { inline: if is_inline { value } else { &[] }, body: (!is_inline).then_some(value) }
}

/// The score that a member's value is.
fn score_of(cell: Cell<'_>) -> Score {
    let bits = cell.inline.first_chunk().map(|bits| f64::from_be_bytes(*bits));
    bits.and_then(Score::new).expect("invariant: a member has a score")
}

/// Bytes of a number in a key.
const NUMBER_BYTES: usize = 8;

/// Entries that one step drops.
const DROPPED_PER_STEP: usize = 256;

/// An entry is found and removed, of a sorted set twice.
const STEPS_PER_DROPPED: usize = 16;

/// Bytes of an entry in a snapshot beside its own: two lengths, and a share of the record.
const PICTURE_BYTES_MAX: u64 = 3 + 4 + 18;

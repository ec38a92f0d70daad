//! Small values and collections by name, and counts of them.
//!
//! They lie in a packed tree by name, a collection as its number and counts. Those that go at some
//! moment stand in another one by that moment and name.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use model::{CollectionKind, Database, KeyKind, NameSpan, Nanos, QueueName, Refusal, limits};

use crate::collections::packed_tree::{Cell, INLINE_BYTES_MAX, Iter, NewCell, PackedTree, Place};
use crate::collections::short_bytes::ShortBytes;
use crate::ids::QueueSlot;
use crate::keyspace::collections::Collection;
use crate::keyspace::databases::PerDatabase;
use crate::keyspace::{Content, Keyspace, Value};
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// All small values.
#[derive(Debug, Default)]
pub(crate) struct Values {
    names: PackedTree,
    /// Moment and name of those that go at some moment.
    deadlines: PackedTree,
    /// How many these are of each database.
    limited: PerDatabase,
    /// Of the names and the values.
    bytes: usize,
}

/// A value where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredValue<'v> {
    content: StoredContent<'v>,
    /// When it goes.
    pub(crate) at: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
enum StoredContent<'v> {
    Inline(&'v [u8]),
    Body(&'v Arc<[u8]>),
    Collection(Collection),
}

impl<'v> StoredValue<'v> {
    fn of(cell: Cell<'v>) -> Self {
        let (head, rest) = cell.inline.split_first().expect("invariant: a value has a head");
        let (at, inline) = if head & HAS_MOMENT == 0 {
            (None, rest)
        } else {
            let (at, rest) = rest.split_first_chunk().expect("invariant: a moment is whole");
            (Some(Nanos(u64::from_be_bytes(*at))), rest)
        };
        let content = match (CollectionKind::of_number(head >> KIND_SHIFT), cell.body) {
            (Some(kind), _) => StoredContent::Collection(collection_of(kind, inline)),
            (None, Some(body)) => StoredContent::Body(body),
            (None, None) => StoredContent::Inline(inline),
        };
        Self { content, at }
    }

    /// True unless its time is over.
    pub(crate) fn is_there(&self, now: Nanos) -> bool {
        self.at.is_none_or(|at| at > now)
    }

    /// Its bytes; a collection has none of its own.
    pub(crate) fn bytes(&self) -> &'v [u8] {
        match self.content {
            StoredContent::Inline(bytes) => bytes,
            StoredContent::Body(body) => body,
            StoredContent::Collection(_) => &[],
        }
    }

    /// Its bytes for a reply, or to be stored elsewhere.
    ///
    /// # Errors
    /// It is a collection.
    pub(crate) fn shared(&self) -> Result<Arc<[u8]>, Refusal> {
        match self.content {
            StoredContent::Inline(bytes) => Ok(Arc::from(bytes)),
            StoredContent::Body(body) => Ok(Arc::clone(body)),
            StoredContent::Collection(_) => Err(Refusal::WrongKind),
        }
    }

    pub(crate) fn kind(&self) -> KeyKind {
        self.collection().map_or(KeyKind::Value, |collection| collection.kind.into())
    }

    pub(crate) const fn collection(&self) -> Option<Collection> {
        if let StoredContent::Collection(collection) = self.content {
            Some(collection)
        } else {
            None
        }
    }

    pub(crate) fn to_value(self) -> Value {
        let content = match self.content {
            StoredContent::Inline(bytes) => Content::Text(Arc::from(bytes)),
            StoredContent::Body(body) => Content::Text(Arc::clone(body)),
            StoredContent::Collection(collection) => Content::Collection(collection),
        };
        Value { content, at: self.at }
    }
}

/// The values behind a name, ascending.
pub(crate) struct ValuesAfter<'v>(Iter<'v>);

impl<'v> Iterator for ValuesAfter<'v> {
    type Item = (QueueName, StoredValue<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, cell) = self.0.next()?;
        Some((name_of(&key.to_vec()), StoredValue::of(cell)))
    }
}

impl Values {
    /// The value of this name, unless its time is over.
    pub(crate) fn get(&self, name: &QueueName, now: Nanos) -> Option<StoredValue<'_>> {
        self.stored(name).filter(|value| value.is_there(now))
    }

    /// The same, be its time over or not.
    pub(crate) fn stored(&self, name: &QueueName) -> Option<StoredValue<'_>> {
        self.names.get(key_of(name)).map(StoredValue::of)
    }

    /// The place of a name, and the value there, be its time over or not.
    pub(crate) fn find(&self, name: &QueueName) -> (NamePlace, Option<StoredValue<'_>>) {
        let (place, cell) = self.names.find(key_of(name));
        let value = cell.map(StoredValue::of);
        (NamePlace { place, before: value.as_ref().map(Replaced::of) }, value)
    }

    /// The place of a name by now.
    fn find_again(&self, place: Option<NamePlace>, name: &QueueName) -> NamePlace {
        let place = place.filter(|found| self.names.is_current(&found.place));
        place.unwrap_or_else(|| self.find(name).0)
    }

    /// True if there is one, be its time over or not.
    pub(crate) fn holds(&self, name: &QueueName) -> bool {
        self.names.get(key_of(name)).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The names of those that are still there though their time is over.
    pub(crate) fn due(&self, now: Nanos) -> impl Iterator<Item = QueueName> {
        self.moments().take_while(move |(at, _)| *at <= now).map(|(_, name)| name)
    }

    /// The next that goes, and when.
    pub(crate) fn first_deadline(&self) -> Option<(Nanos, QueueName)> {
        self.moments().next()
    }

    /// When the next one goes.
    pub(crate) fn first_moment(&self) -> Option<Nanos> {
        if self.deadlines.len() == 0 { None } else { self.first_deadline().map(|(at, _)| at) }
    }

    fn moments(&self) -> impl Iterator<Item = (Nanos, QueueName)> {
        self.deadlines.iter_after(None).map(|(key, _)| {
            let key = key.to_vec();
            let (at, name) = key.split_first_chunk().expect("invariant: a moment is whole");
            (Nanos(u64::from_be_bytes(*at)), name_of(name))
        })
    }

    /// How many there are of a database; of all where none is given.
    pub(crate) fn len_of(&self, database: Option<Database>) -> usize {
        NameSpan::of(database).map(|span| self.len_in(span)).sum()
    }

    /// How many have a name of this part.
    pub(crate) fn len_in(&self, span: NameSpan) -> usize {
        span.to().map_or(self.len(), |to| self.rank(to)) - self.first_rank(span)
    }

    /// Those with a name of this part, without so many of the first.
    pub(crate) fn iter_from(
        &self,
        span: NameSpan,
        first: usize,
    ) -> impl Iterator<Item = (QueueName, StoredValue<'_>)> {
        let all = ValuesAfter(self.names.iter_at(self.first_rank(span) + first));
        all.take_while(move |(name, _)| span.holds(name.as_str()))
    }

    /// Bytes of memory that a value is reckoned to take with its name.
    pub(crate) fn memory_of(&self, name: &QueueName) -> u64 {
        let value = self.stored(name);
        let deadline = value.and_then(|value| value.at).map_or(0, |_| cost(name, MOMENT_BYTES));
        let bytes = value.map_or(0, |value| value.bytes().len());
        (cost(name, bytes) + deadline + ENTRY_BYTES_BESIDE) as u64
    }

    fn first_rank(&self, span: NameSpan) -> usize {
        span.from().map_or(0, |from| self.rank(from))
    }

    fn rank(&self, mark: char) -> usize {
        self.names.rank(mark.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// How many of them go at some moment.
    pub(crate) fn limited_of(&self, database: Database) -> u64 {
        self.limited.of(database)
    }

    /// All of a database, ascending; all where none is given.
    pub(crate) fn iter_of(
        &self,
        database: Option<Database>,
    ) -> impl Iterator<Item = (QueueName, StoredValue<'_>)> {
        NameSpan::of(database).flat_map(|span| self.iter_in(span, None))
    }

    /// Those with a name of this part, and behind this one.
    pub(crate) fn iter_in(
        &self,
        span: NameSpan,
        after: Option<&QueueName>,
    ) -> impl Iterator<Item = (QueueName, StoredValue<'_>)> {
        let mut mark = [0; 4];
        let first = span.from().map(|first| &*first.encode_utf8(&mut mark));
        let all = match first.filter(|first| after.is_none_or(|after| after.as_str() < first)) {
            Some(first) => ValuesAfter(self.names.iter_at(self.names.rank(first.as_bytes()))),
            None => self.iter_after(after),
        };
        all.take_while(move |(name, _)| span.holds(name.as_str()))
    }

    /// All behind this name, ascending; all where none is given.
    pub(crate) fn iter_after(&self, name: Option<&QueueName>) -> ValuesAfter<'_> {
        ValuesAfter(self.names.iter_after(name.map(key_of)))
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let empty = PackedTree::EMPTY_BYTES;
        (self.names.bytes() + self.deadlines.bytes() - 2 * empty) as u64
    }

    /// Checks that a value may be set beside the others, or instead of the one of its name, if all
    /// may take so much memory.
    pub(crate) fn takes(
        &self,
        name: &QueueName,
        bytes: usize,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        self.have_room([(name, bytes)].into_iter(), memory_max)
    }

    /// The same for several values.
    pub(crate) fn takes_all(
        &self,
        values: &BTreeMap<QueueName, Arc<[u8]>>,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        self.have_room(values.iter().map(|(name, value)| (name, value.len())), memory_max)
    }

    fn have_room<'n>(
        &self,
        all: impl Iterator<Item = (&'n QueueName, usize)> + Clone,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let mut more = 0;
        for (name, bytes) in all.clone() {
            if bytes > limits::VALUE_BYTES_MAX {
                return Err(Refusal::TooManyValues);
            }
            more += cost(name, bytes) + ENTRY_BYTES_BESIDE;
        }
        let memory = self.memory_bytes() + more as u64;
        if memory <= memory_max {
            return Ok(());
        }
        // Only now: finding those that go takes time.
        let there = all.filter_map(|(name, _)| {
            Some(cost(name, self.stored(name)?.bytes().len()) + ENTRY_BYTES_BESIDE)
        });
        let less = there.sum::<usize>();
        let fits = less >= more || memory - less as u64 <= memory_max;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }

    /// The most bytes that they take in a snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        (self.bytes + self.names.len() * PICTURE_BYTES_MAX) as u64
    }

    /// Sets a value, in a place that may be known. The one that was there before.
    pub(crate) fn insert(
        &mut self,
        name: &QueueName,
        value: &Value,
        place: Option<NamePlace>,
    ) -> Option<Replaced> {
        let NamePlace { place, before } = self.find_again(place, name);
        let head = head_of(value);
        let body = value.text().filter(|text| head.len() + text.len() > INLINE_BYTES_MAX);
        let text = value.text().filter(|_| body.is_none());
        let cell = NewCell { inline: [&head, text.map_or(&[], |text| text)], body };
        self.names.insert_at(&place, key_of(name), cell);
        if let Some(before) = &before {
            self.discount(name, before.bytes);
        }
        self.bytes += cost(name, value.bytes());
        self.change_deadline(name, before.and_then(|before| before.at), value.at);
        debug_assert!(self.deadlines.len() <= self.names.len(), "a value has one deadline");
        before
    }

    /// The counts of a collection that is there, in a place that may be known, have changed.
    pub(crate) fn recount(
        &mut self,
        name: &QueueName,
        collection: Collection,
        place: Option<NamePlace>,
    ) {
        let NamePlace { place, before } = self.find_again(place, name);
        let before = before.expect("invariant: the collection has a name");
        let number = before.collection.map(|before| before.number);
        assert_eq!(number, Some(collection.number), "it is the same one");
        let head = head_of(&Value { content: Content::Collection(collection), at: before.at });
        let cell = NewCell { inline: [&head, &[]], body: None };
        self.names.insert_at(&place, key_of(name), cell);
    }

    pub(crate) fn remove(&mut self, name: &QueueName) -> Option<Value> {
        let mut removed = None;
        self.names.remove(key_of(name), |cell| removed = Some(StoredValue::of(cell).to_value()));
        let removed = removed?;
        self.discount(name, removed.bytes());
        self.change_deadline(name, removed.at, None);
        Some(removed)
    }

    /// This was the value of that name.
    fn discount(&mut self, name: &QueueName, bytes: usize) {
        let cost = cost(name, bytes);
        assert!(cost <= self.bytes, "the bytes of {name} were counted");
        self.bytes -= cost;
    }

    fn change_deadline(&mut self, name: &QueueName, before: Option<Nanos>, now: Option<Nanos>) {
        if before == now {
            return;
        }
        if let Some(at) = before {
            let was_known = self.deadlines.remove(&moment_key(at, name), |_| ());
            assert!(was_known, "a value's deadline is known");
            self.limited.take_one(name);
        }
        if let Some(at) = now {
            let nothing = Cell::inline(&[]);
            let key = moment_key(at, name);
            self.deadlines.insert(&key, nothing, |seen| assert!(seen.is_none(), "it goes once"));
            self.limited.add_one(name);
        }
    }

    /// Verifies the counts.
    pub(crate) fn check(&self) {
        self.names.check();
        self.deadlines.check();
        let bytes = self.iter_after(None).map(|(name, value)| cost(&name, value.bytes().len()));
        assert_eq!(bytes.sum::<usize>(), self.bytes, "bytes of values");
        let deadlines = self.iter_after(None).filter_map(|(name, value)| Some((value.at?, name)));
        let known = |(at, name): (Nanos, QueueName)| {
            assert!(self.deadlines.get(&moment_key(at, &name)).is_some(), "the deadline of {name}");
        };
        let count = deadlines.map(known).count();
        assert_eq!(count, self.deadlines.len(), "deadlines of values");
        let limited = self.iter_after(None).filter(|(_, value)| value.at.is_some());
        self.limited.check(limited.map(|(name, _)| Database::of(name.as_str())));
    }
}

fn key_of(name: &QueueName) -> &[u8] {
    name.as_str().as_bytes()
}

fn name_of(key: &[u8]) -> QueueName {
    let text = core::str::from_utf8(key).ok();
    text.and_then(|text| QueueName::new(text).ok()).expect("invariant: a name was stored")
}

fn moment_key(at: Nanos, name: &QueueName) -> ShortBytes {
    ShortBytes::of([&at.0.to_be_bytes(), key_of(name)])
}

/// The place of a name, and the facts of the value there when it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamePlace {
    place: Place,
    before: Option<Replaced>,
}

/// The facts of a value that another one has replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced {
    at: Option<Nanos>,
    bytes: usize,
    pub(crate) collection: Option<Collection>,
}

impl Replaced {
    fn of(value: &StoredValue<'_>) -> Self {
        Self { at: value.at, bytes: value.bytes().len(), collection: value.collection() }
    }
}

/// The beginning of a cell: flags, the moment if there is one, and a collection whole.
fn head_of(value: &Value) -> ShortBytes {
    let kind = value.collection().map_or(0, |collection| collection.kind.number());
    let first = [kind << KIND_SHIFT | if value.at.is_some() { HAS_MOMENT } else { 0 }];
    let moment = value.at.map(|at| at.0.to_be_bytes());
    let moment = moment.as_ref().map_or(&[][..], |moment| moment);
    let Some(Collection { number, count, bytes, .. }) = value.collection() else {
        return ShortBytes::of([&first, moment]);
    };
    let [number, count, bytes] = [number, count, bytes].map(u64::to_be_bytes);
    ShortBytes::of([&first, moment, &number, &count, &bytes])
}

fn collection_of(kind: CollectionKind, inline: &[u8]) -> Collection {
    let parts = inline.as_chunks().0;
    let [number, count, bytes] = parts else { panic!("invariant: a collection is whole") };
    let [number, count, bytes] = [number, count, bytes].map(|part| u64::from_be_bytes(*part));
    Collection { kind, number, count, bytes }
}

impl MessageStore {
    /// True if no ready message is in a queue, or the queue is gone.
    pub(crate) fn has_no_ready(&self, slot: QueueSlot) -> bool {
        self.queues.get(slot).is_none_or(|queue| queue.counts().ready() == 0)
    }

    pub(crate) fn hidden_list(&self, name: &QueueName) -> bool {
        let slot = self.queues.find(name.as_str());
        slot.is_some_and(|slot| self.queues.at(slot).is_list())
    }
}

impl Keyspace {
    /// Checks that a value may be set beside the others, or instead of the one of its name, if all
    /// may take so much memory with the collections.
    pub(crate) fn takes(
        &self,
        name: &QueueName,
        bytes: usize,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let most = memory_max.saturating_sub(self.collections.memory_bytes());
        self.values.takes(name, bytes, most)
    }

    /// The same for several values.
    pub(crate) fn takes_all(
        &self,
        values: &BTreeMap<QueueName, Arc<[u8]>>,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let most = memory_max.saturating_sub(self.collections.memory_bytes());
        self.values.takes_all(values, most)
    }

    /// A value is there from now on, and hides the list of its name.
    pub(crate) fn insert_value(
        &mut self,
        name: &QueueName,
        value: Value,
        store: &mut MessageStore,
    ) {
        let (place, _) = self.values.find(name);
        self.insert_value_at(place, name, value, store);
    }

    /// The same for a name whose place was found.
    pub(crate) fn insert_value_at(
        &mut self,
        place: NamePlace,
        name: &QueueName,
        value: Value,
        store: &mut MessageStore,
    ) {
        let before = self.change_values(|values| values.insert(name, &value, Some(place)), store);
        if before.is_none() && store.hidden_list(name) {
            self.lists.take_one(name);
            self.hidden_lists.add_one(name);
        }
        let now = value.collection().map(|collection| collection.number);
        let old = before.and_then(|before| before.collection);
        if let Some(old) = old.filter(|old| now != Some(old.number)) {
            self.collections.drop_later(old, store);
        }
        self.touched(name, store);
    }

    /// A value is gone, and hides no list any more.
    pub(crate) fn remove_value(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Option<Value> {
        let removed = self.remove_name(name, store)?;
        if let Some(collection) = removed.collection() {
            self.collections.drop_later(collection, store);
        }
        Some(removed)
    }

    /// The same of a value that has another name by now.
    pub(crate) fn remove_name(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Option<Value> {
        let removed = self.change_values(|values| values.remove(name), store)?;
        if store.hidden_list(name) {
            self.hidden_lists.take_one(name);
            self.lists.add_one(name);
        }
        self.touched(name, store);
        Some(removed)
    }

    fn change_values<T>(
        &mut self,
        change: impl FnOnce(&mut Values) -> T,
        store: &mut MessageStore,
    ) -> T {
        let before = self.values.first_moment();
        let result = change(&mut self.values);
        let first = self.values.first_moment();
        if before != first {
            store.timers.change(Timer::Values, before, first);
        }
        result
    }
}

/// The bytes that a value counts for.
fn cost(name: &QueueName, bytes: usize) -> usize {
    name.as_str().len() + bytes
}

/// The first byte of a value: whether a moment follows, and the kind of a collection.
const HAS_MOMENT: u8 = 1;
const KIND_SHIFT: u8 = 1;

/// Bytes of that, and of the moment.
const MOMENT_BYTES: usize = 1 + 8;

/// Bytes of memory that a new value usually takes beside its name and its bytes: the entry, the
/// spare room of its leaf, a body's own. A deadline takes the name once more. All is counted when
/// it is there.
const ENTRY_BYTES_BESIDE: usize = 96;

/// Bytes of a value's record beside name and value, and its share of the cost of a chunk.
const PICTURE_BYTES_MAX: usize = 2 + 2 + 4 + 8 + 8;

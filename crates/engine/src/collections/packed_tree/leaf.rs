//! A leaf: entries back to back in one buffer, without the bytes that all keys begin with.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;
use core::ops::Range;

use super::{Cell, NODE_BYTES, NewCell, Node, Split};

#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// The bytes that all keys begin with, and the entries behind them.
    pub(super) data: Vec<u8>,
    prefix: usize,
    pub(super) slots: Vec<Slot>,
    /// Of the entries that have one, in their order.
    pub(super) bodies: Vec<Arc<[u8]>>,
    pub(super) body_bytes: usize,
}

/// The part of an entry that a search looks at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The first bytes of the key behind the common ones.
    head: u16,
    /// Where the entry begins.
    pub(super) start: u16,
}

/// The number of an entry in its leaf, or the one that it would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryPlace {
    pub(super) index: usize,
    pub(super) is_there: bool,
}

/// An entry, and where it lies.
pub(super) struct Found<'l> {
    pub(super) suffix: &'l [u8],
    inline: &'l [u8],
    pub(super) has_body: bool,
    start: usize,
    pub(super) end: usize,
}

/// The entries of a leaf from one on.
pub(super) struct Entries<'l> {
    leaf: &'l Leaf,
    next: usize,
    /// How many bodies come before that.
    bodies: usize,
}

impl<'l> Iterator for Entries<'l> {
    type Item = (Found<'l>, Cell<'l>);

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.leaf.entry(self.next)?;
        let body = if found.has_body { self.leaf.bodies.get(self.bodies) } else { None };
        self.next += 1;
        self.bodies += usize::from(found.has_body);
        let cell = Cell { inline: found.inline, body };
        Some((found, cell))
    }
}

/// A length of one byte or two; the bytes behind it, and how many it has itself.
#[inline]
fn length(bytes: &[u8]) -> Option<(usize, &[u8], usize)> {
    match *bytes {
        [low @ ..0x80, ref rest @ ..] => Some((usize::from(low), rest, 1)),
        [low, high, ref rest @ ..] => {
            Some((usize::from(low & 0x7f) | usize::from(high) << 7, rest, 2))
        }
        _ => None,
    }
}

/// The bytes before those of an entry: the lengths of its key and its inline bytes.
struct Head {
    bytes: [u8; 4],
    len: usize,
}

impl Head {
    fn new(suffix: usize, inline: usize, has_body: bool) -> Self {
        let mut head = Self { bytes: [0; 4], len: 0 };
        head.put(suffix);
        head.put(inline << 1 | usize::from(has_body));
        head
    }

    fn put(&mut self, length: usize) {
        assert!(length < 1 << 15, "keys and inline values are short");
        let (bytes, count) = if length < 0x80 {
            ([length as u8, 0], 1)
        } else {
            ([length as u8 | 0x80, (length >> 7) as u8], 2)
        };
        let place = self.bytes.get_mut(self.len..self.len + 2);
        place.expect("invariant: two lengths").copy_from_slice(&bytes);
        self.len += count;
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

fn put_entry(suffix: [&[u8]; 2], inline: &[u8], has_body: bool, out: &mut Vec<u8>) {
    let [one, other] = suffix;
    out.extend_from_slice(Head::new(one.len() + other.len(), inline.len(), has_body).as_bytes());
    out.extend_from_slice(one);
    out.extend_from_slice(other);
    out.extend_from_slice(inline);
}

/// An entry by itself.
pub(super) type Owned = (Vec<u8>, Vec<u8>, Option<Arc<[u8]>>);

impl Leaf {
    /// A leaf of these entries, which are sorted.
    pub(super) fn of(all: &[Owned]) -> Self {
        let first = all.first().map_or(&[][..], |(key, ..)| key);
        let last = all.last().map_or(&[][..], |(key, ..)| key);
        let prefix = common(first, last);
        let mut leaf = Self { prefix, ..Self::default() };
        leaf.data.reserve(LEAF_BYTES);
        leaf.data.extend_from_slice(first.get(..prefix).unwrap_or_default());
        for (key, inline, body) in all {
            let suffix = key.get(prefix..).unwrap_or_default();
            leaf.slots.push(Slot::of(suffix, leaf.data.len()));
            put_entry([suffix, &[]], inline, body.is_some(), &mut leaf.data);
        }
        leaf.bodies = all.iter().filter_map(|(.., body)| body.clone()).collect();
        leaf.body_bytes = leaf.bodies.iter().map(body_bytes).sum();
        debug_assert!(all.is_sorted_by(|one, next| one.0 < next.0), "entries are sorted");
        leaf.fit();
        leaf
    }

    pub(super) fn bytes(&self) -> usize {
        let table = self.bodies.capacity() * size_of::<Arc<[u8]>>();
        let slots = self.slots.capacity() * size_of::<Slot>();
        NODE_BYTES + self.data.capacity() + slots + table + self.body_bytes
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn prefix_bytes(&self) -> &[u8] {
        self.data.get(..self.prefix).unwrap_or_default()
    }

    /// The entry of this number.
    #[inline]
    fn entry(&self, index: usize) -> Option<Found<'_>> {
        let start = usize::from(self.slots.get(index)?.start);
        let rest = self.data.get(start..)?;
        let (key, rest, first) = length(rest)?;
        let (value, rest, second) = length(rest)?;
        let (value, has_body) = (value >> 1, value & 1 == 1);
        let (suffix, rest) = rest.split_at_checked(key)?;
        let inline = rest.get(..value)?;
        let end = start + first + second + key + value;
        Some(Found { suffix, inline, has_body, start, end })
    }

    pub(super) fn entries(&self) -> Entries<'_> {
        Entries { leaf: self, next: 0, bodies: 0 }
    }

    pub(super) fn owned(&self) -> impl Iterator<Item = Owned> {
        self.entries().map(|(found, cell)| {
            let key = [self.prefix_bytes(), found.suffix].concat();
            (key, found.inline.to_vec(), cell.body.cloned())
        })
    }

    fn key(&self, index: usize) -> Vec<u8> {
        [self.prefix_bytes(), self.suffix(index)].concat()
    }

    /// The part of the key of an entry that is its own.
    fn suffix(&self, index: usize) -> &[u8] {
        self.entry(index).map_or(&[][..], |found| found.suffix)
    }

    /// How many bodies the entries before this one have.
    fn bodies_before(&self, index: usize) -> usize {
        if self.bodies.is_empty() {
            return 0;
        }
        (0..index).filter(|it| self.entry(*it).is_some_and(|found| found.has_body)).count()
    }

    /// The place of a key, and the value that is there.
    pub(super) fn find(&self, key: &[u8]) -> (EntryPlace, Option<Cell<'_>>) {
        let (place, found) = self.search(key);
        (place, found.map(|found| self.cell_of(place, &found)))
    }

    /// The value of an entry, if it is there.
    pub(super) fn cell(&self, place: EntryPlace) -> Option<Cell<'_>> {
        let found = if place.is_there { self.entry(place.index)? } else { return None };
        Some(self.cell_of(place, &found))
    }

    fn cell_of<'l>(&'l self, place: EntryPlace, found: &Found<'l>) -> Cell<'l> {
        let body = found.has_body.then(|| self.bodies_before(place.index));
        Cell { inline: found.inline, body: body.and_then(|at| self.bodies.get(at)) }
    }

    /// The place of a key.
    pub(super) fn place_of(&self, key: &[u8]) -> EntryPlace {
        self.search(key).0
    }

    /// The place of a key, and the entry that is there.
    #[inline]
    fn search(&self, key: &[u8]) -> (EntryPlace, Option<Found<'_>>) {
        let prefix = self.prefix_bytes();
        let Some(suffix) = key.strip_prefix(prefix) else {
            // All of its keys lie on one side.
            let index = if prefix < key { self.count() } else { 0 };
            return (EntryPlace { index, is_there: false }, None);
        };
        let head = head(suffix);
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let index = low.midpoint(high);
            let slot = self.slots.get(index).expect("invariant: it is in the middle");
            let mut order = slot.head.cmp(&head);
            if order.is_eq() {
                let found = self.entry(index).expect("invariant: a slot leads to an entry");
                order = found.suffix.cmp(suffix);
                if order.is_eq() {
                    return (EntryPlace { index, is_there: true }, Some(found));
                }
            }
            if order.is_lt() { low = index + 1 } else { high = index }
        }
        (EntryPlace { index: low, is_there: false }, None)
    }

    pub(super) fn entries_after(&self, key: Option<&[u8]>) -> Entries<'_> {
        let entry = key.map(|key| self.place_of(key));
        self.entries_at(entry.map_or(0, |entry| entry.index + usize::from(entry.is_there)))
    }

    /// The entries from this number on.
    pub(super) fn entries_at(&self, index: usize) -> Entries<'_> {
        Entries { leaf: self, next: index, bodies: self.bodies_before(index) }
    }

    /// The most bytes of data that a leaf of its entries and those behind it has. They may have
    /// fewer bytes in common than each leaf has.
    pub(super) fn joined_bytes(&self, behind: &Self) -> usize {
        let bytes = self.data.len() + behind.data.len();
        if self.count() == 0 || behind.count() == 0 {
            return bytes;
        }
        let prefix = common(&self.key(0), &behind.key(behind.count() - 1));
        // A suffix that becomes longer may need one byte more for its length.
        let longer = |leaf: &Self| (leaf.prefix - prefix.min(leaf.prefix) + 1) * leaf.count();
        bytes + longer(self) + longer(behind)
    }

    /// A leaf of its own for an entry without the prefix of all others, if they would have too many
    /// bytes without it. Such a key stands before or behind all of them.
    pub(super) fn part(&mut self, key: &[u8], cell: &NewCell<'_>) -> Split {
        if key.starts_with(self.prefix_bytes()) {
            return None;
        }
        let shorter = self.prefix - common(key, self.prefix_bytes());
        if self.data.len() + shorter * self.count() <= LEAF_BYTES {
            return None;
        }
        let mut right = Self { data: key.to_vec(), prefix: key.len(), ..Self::default() };
        right.insert(EntryPlace { index: 0, is_there: false }, key, cell);
        if key < self.prefix_bytes() {
            core::mem::swap(self, &mut right);
        }
        let bound = bound([self.key(self.count() - 1).as_slice(), &right.key(0)]);
        Some((bound, Arc::new(Node::Leaf(right))))
    }

    /// Gives an entry other inline bytes, if they are as many, and there is no body.
    pub(super) fn overwrite(&mut self, index: usize, cell: &NewCell<'_>) -> bool {
        let found = self.entry(index).expect("invariant: the entry is there");
        let bytes = cell.inline_bytes();
        if found.has_body || cell.body.is_some() || found.inline.len() != bytes {
            return false;
        }
        let place = found.end - bytes..found.end;
        let place = self.data.get_mut(place);
        fill(place.expect("invariant: an entry is whole"), cell.inline);
        true
    }

    pub(super) fn insert(&mut self, entry: EntryPlace, key: &[u8], cell: &NewCell<'_>) {
        if !key.starts_with(self.prefix_bytes()) {
            self.shorten_prefix(common(key, self.prefix_bytes()));
        }
        let suffix = key.get(self.prefix..).unwrap_or_default();
        let EntryPlace { index, is_there } = entry;
        let (start, end, had_body) = if is_there {
            let found = self.entry(index).expect("invariant: the entry is there");
            (found.start, found.end, found.has_body)
        } else {
            let start = self.start(index);
            (start, start, false)
        };
        if had_body || cell.body.is_some() {
            self.put_body(self.bodies_before(index), had_body, cell.body.cloned());
        }
        if !is_there {
            reserve(&mut self.slots, 1, SLOTS_STEP);
            self.slots.insert(index, Slot::of(suffix, start));
        }
        let head = Head::new(suffix.len(), cell.inline_bytes(), cell.body.is_some());
        let bytes = head.len + suffix.len() + cell.inline_bytes();
        self.shift(index + 1, bytes.cast_signed() - (end - start).cast_signed());
        let [one, other] = cell.inline;
        fill(self.resize(start..end, bytes), [head.as_bytes(), suffix, one, other]);
        self.fit();
    }

    /// The beginning of the entry of this number; behind the last one the end of all.
    fn start(&self, index: usize) -> usize {
        self.slots.get(index).map_or(self.data.len(), |slot| usize::from(slot.start))
    }

    /// Makes room for so many bytes in the place of those.
    fn resize(&mut self, place: Range<usize>, bytes: usize) -> &mut [u8] {
        let (len, end) = (self.data.len(), place.start + bytes);
        reserve(&mut self.data, bytes.saturating_sub(place.len()), ROOM_STEP);
        self.data.resize(len.max(len - place.len() + bytes), 0);
        self.data.copy_within(place.end..len, end);
        self.data.truncate(len - place.len() + bytes);
        self.data.get_mut(place.start..end).expect("invariant: it was made")
    }

    /// Removes an entry that is there.
    pub(super) fn remove(&mut self, index: usize) {
        let found = self.entry(index).expect("invariant: the entry is there");
        debug_assert!(found.start < found.end, "an entry has bytes");
        let (start, end, had_body) = (found.start, found.end, found.has_body);
        if had_body {
            self.put_body(self.bodies_before(index), had_body, None);
        }
        self.data.drain(start..end);
        self.slots.remove(index);
        self.shift(index, start.cast_signed() - end.cast_signed());
        if self.count() == 0 {
            (self.data, self.slots, self.prefix) = (Vec::new(), Vec::new(), 0);
        }
        self.fit();
    }

    /// The entries from this one on lie so many bytes further behind.
    fn shift(&mut self, from: usize, by: isize) {
        let by = i16::try_from(by).expect("invariant: leaves are short");
        let behind = self.slots.get_mut(from..).unwrap_or_default();
        behind.iter_mut().for_each(|slot| slot.start = slot.start.wrapping_add_signed(by));
    }

    fn put_body(&mut self, at: usize, had_body: bool, body: Option<Arc<[u8]>>) {
        if had_body {
            self.body_bytes -= body_bytes(&self.bodies.remove(at));
        }
        if let Some(body) = body {
            self.body_bytes += body_bytes(&body);
            self.bodies.insert(at, body);
        }
    }

    /// Only so many bytes are common to all keys.
    fn shorten_prefix(&mut self, prefix: usize) {
        assert!(prefix <= self.prefix, "a prefix becomes shorter");
        let (left, more) = self.prefix_bytes().split_at(prefix);
        // A suffix that becomes longer may need one byte more for its length.
        let bytes = self.data.len() + (more.len() + 1) * self.count();
        let mut data = Vec::with_capacity(bytes.next_multiple_of(ROOM_STEP));
        let mut slots = Vec::with_capacity(self.count().next_multiple_of(SLOTS_STEP));
        data.extend_from_slice(left);
        for (found, _) in self.entries() {
            let start = data.len();
            put_entry([more, found.suffix], found.inline, found.has_body, &mut data);
            let head = head_of([more, found.suffix]);
            slots.push(Slot::new(head, start));
        }
        (self.data, self.slots, self.prefix) = (data, slots, prefix);
    }

    /// Gives a part of the entries to a new leaf if there are too many bytes. If the entry that
    /// came now is the first or the last, it is a leaf by itself: more are likely to follow.
    pub(super) fn split_if_long(&mut self, new: usize) -> Split {
        let count = self.count();
        if self.data.len() <= LEAF_BYTES || count < 2 {
            return None;
        }
        let at = match new {
            _ if new + 1 == count => count - 1,
            0 => 1,
            _ => self.middle(),
        };
        let bound = [self.prefix_bytes(), &bound([self.suffix(at - 1), self.suffix(at)])].concat();
        let right = self.copy(at..count);
        if common(self.suffix(0), self.suffix(at - 1)) > 0 {
            *self = self.copy(0..at);
        } else {
            self.truncate(at);
        }
        debug_assert_eq!(self.count() + right.count(), count, "a split loses nothing");
        Some((bound.into(), Arc::new(Node::Leaf(right))))
    }

    /// A leaf of some of the entries.
    fn copy(&self, range: Range<usize>) -> Self {
        let (first, last) = (self.suffix(range.start), self.suffix(range.end - 1));
        let more = common(first, last);
        let all = self.start(range.start)..self.start(range.end);
        let bytes = self.prefix + more + all.len() - more * range.len();
        let mut data = Vec::with_capacity(bytes.next_multiple_of(ROOM_STEP));
        let mut slots = Vec::with_capacity(range.len().next_multiple_of(SLOTS_STEP));
        data.extend_from_slice(self.prefix_bytes());
        data.extend_from_slice(first.get(..more).unwrap_or_default());
        for index in range.clone() {
            let found = self.entry(index).expect("invariant: the entry is there");
            let suffix = found.suffix.get(more..).unwrap_or_default();
            slots.push(Slot::of(suffix, data.len()));
            put_entry([suffix, &[]], found.inline, found.has_body, &mut data);
        }
        let bodies = self.bodies_before(range.start)..self.bodies_before(range.end);
        let bodies = self.bodies.get(bodies).unwrap_or_default().to_vec();
        let body_bytes = bodies.iter().map(body_bytes).sum();
        Self { data, prefix: self.prefix + more, slots, bodies, body_bytes }
    }

    /// Drops the entries from this one on.
    fn truncate(&mut self, at: usize) {
        let (end, bodies) = (self.start(at), self.bodies_before(at));
        self.data.truncate(end);
        self.data.shrink_to(end.next_multiple_of(ROOM_STEP));
        self.slots.truncate(at);
        self.slots.shrink_to(at.next_multiple_of(SLOTS_STEP));
        self.bodies.truncate(bodies);
        self.bodies.shrink_to_fit();
        self.body_bytes = self.bodies.iter().map(body_bytes).sum();
    }

    /// The number of entries in the first half of its bytes: one at least, and not all.
    fn middle(&self) -> usize {
        let half = self.prefix + (self.data.len() - self.prefix) / 2;
        let count = self.slots.partition_point(|slot| usize::from(slot.start) <= half);
        count.clamp(1, self.count() - 1)
    }

    /// Has no more room than it needs, by and large.
    fn fit(&mut self) {
        fit(&mut self.data, ROOM_STEP);
        fit(&mut self.slots, SLOTS_STEP);
        if self.bodies.is_empty() {
            self.bodies = Vec::new();
        }
    }
}

/// The shortest key that is behind the one and not behind the other.
fn bound([one, other]: [&[u8]; 2]) -> Box<[u8]> {
    other.get(..=common(one, other)).unwrap_or(other).into()
}

impl Slot {
    fn of(suffix: &[u8], start: usize) -> Self {
        Self::new(head(suffix), start)
    }

    fn new(head: u16, start: usize) -> Self {
        let start = u16::try_from(start).expect("invariant: leaves are short");
        Self { head, start }
    }
}

/// The first two bytes, in the order of keys: zeros behind a short one.
fn head(suffix: &[u8]) -> u16 {
    match *suffix {
        [] => 0,
        [only] => u16::from(only) << 8,
        [first, second, ..] => u16::from_be_bytes([first, second]),
    }
}

/// The same of a suffix in two parts.
fn head_of([one, other]: [&[u8]; 2]) -> u16 {
    match *one {
        [] => head(other),
        [only] => head(&[only, other.first().copied().unwrap_or(0)]),
        _ => head(one),
    }
}

/// Writes parts back to back into a place that they fill.
fn fill<const N: usize>(mut place: &mut [u8], parts: [&[u8]; N]) {
    for part in parts {
        let (first, rest) = place.split_at_mut(part.len());
        first.copy_from_slice(part);
        place = rest;
    }
    debug_assert!(place.is_empty(), "they fill it");
}

/// Makes room for so many more, in such steps.
fn reserve<T>(all: &mut Vec<T>, more: usize, step: usize) {
    let wanted = all.len() + more;
    if wanted > all.capacity() {
        all.reserve_exact(wanted.next_multiple_of(step) - all.len());
    }
}

fn fit<T>(all: &mut Vec<T>, step: usize) {
    if all.capacity() - all.len() > 2 * step {
        all.shrink_to(all.len().next_multiple_of(step));
    }
}

/// How many bytes two keys begin with alike.
pub(super) fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

pub(super) fn body_bytes(body: &Arc<[u8]>) -> usize {
    BODY_BYTES_BESIDE + body.len()
}

/// Bytes of data in a leaf; it may have an entry more for a moment, and a single one may be longer.
pub(super) const LEAF_BYTES: usize = 3584;

/// The data of a leaf grows in such steps, and the table of its entries in those.
const ROOM_STEP: usize = 256;
const SLOTS_STEP: usize = 16;

/// The counts beside a body, and the allocator's share.
const BODY_BYTES_BESIDE: usize = 16 + 16;

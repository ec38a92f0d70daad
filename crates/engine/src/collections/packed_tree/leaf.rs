//! A leaf: entries back to back in one buffer, without the bytes that all keys begin with.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem::size_of;

use super::{Cell, NODE_BYTES, Node, Split};

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

/// An entry, and where it lies.
pub(super) struct Found<'l> {
    pub(super) suffix: &'l [u8],
    inline: &'l [u8],
    pub(super) has_body: bool,
    /// Its number among the entries of its leaf.
    index: usize,
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

fn put_length(length: usize, out: &mut Vec<u8>) {
    assert!(length < 1 << 15, "keys and inline values are short");
    if length < 0x80 {
        out.push(length as u8);
    } else {
        out.extend([length as u8 | 0x80, (length >> 7) as u8]);
    }
}

fn put_entry(suffix: &[u8], inline: &[u8], has_body: bool, out: &mut Vec<u8>) {
    put_length(suffix.len(), out);
    put_length(inline.len() << 1 | usize::from(has_body), out);
    out.extend_from_slice(suffix);
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
            put_entry(suffix, inline, body.is_some(), &mut leaf.data);
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
        Some(Found { suffix, inline, has_body, index, start, end })
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
        let suffix = self.entry(index).map_or(&[][..], |found| found.suffix);
        [self.prefix_bytes(), suffix].concat()
    }

    pub(super) fn cell<'l>(&'l self, found: &Found<'l>) -> Cell<'l> {
        let body =
            if found.has_body { self.bodies.get(self.bodies_before(found.index)) } else { None };
        Cell { inline: found.inline, body }
    }

    /// How many bodies the entries before this one have.
    fn bodies_before(&self, index: usize) -> usize {
        if self.bodies.is_empty() {
            return 0;
        }
        (0..index).filter(|it| self.entry(*it).is_some_and(|found| found.has_body)).count()
    }

    /// The entry of this key, without the common bytes, or the number that it would have.
    pub(super) fn find(&self, suffix: &[u8]) -> Result<Found<'_>, usize> {
        let head = head(suffix);
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            let slot = self.slots.get(middle).expect("invariant: it is in the middle");
            let order = slot.head.cmp(&head);
            if order.is_eq() {
                let found = self.entry(middle).expect("invariant: a slot leads to an entry");
                match found.suffix.cmp(suffix) {
                    Ordering::Less => low = middle + 1,
                    Ordering::Equal => return Ok(found),
                    Ordering::Greater => high = middle,
                }
            } else if order.is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Err(low)
    }

    pub(super) fn entries_after(&self, key: Option<&[u8]>) -> Entries<'_> {
        let next = match key.map(|key| (key, key.strip_prefix(self.prefix_bytes()))) {
            None => 0,
            // All of its keys lie on one side.
            Some((key, None)) if self.prefix_bytes() < key => self.count(),
            Some((_, None)) => 0,
            Some((_, Some(suffix))) => self.find(suffix).map_or_else(|at| at, |it| it.index + 1),
        };
        Entries { leaf: self, next, bodies: self.bodies_before(next) }
    }

    /// How many entries stand before this key.
    pub(super) fn rank(&self, key: &[u8]) -> usize {
        match key.strip_prefix(self.prefix_bytes()) {
            Some(suffix) => self.find(suffix).map_or_else(|at| at, |found| found.index),
            None if self.prefix_bytes() < key => self.count(),
            None => 0,
        }
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
    pub(super) fn part(&mut self, key: &[u8], cell: Cell<'_>) -> Split {
        let shorter = self.prefix - common(key, self.prefix_bytes());
        if shorter == 0 || self.data.len() + shorter * self.count() <= LEAF_BYTES {
            return None;
        }
        let mut right = Self::of(&[(key.to_vec(), cell.inline.to_vec(), cell.body.cloned())]);
        if key < self.prefix_bytes() {
            core::mem::swap(self, &mut right);
        }
        let bound = bound(&self.key(self.count() - 1), &right.key(0));
        Some((bound, Arc::new(Node::Leaf(right))))
    }

    /// True if it was there.
    pub(super) fn insert(
        &mut self,
        key: &[u8],
        cell: Cell<'_>,
        seen: impl FnOnce(Option<Cell<'_>>),
    ) -> bool {
        if !key.starts_with(self.prefix_bytes()) {
            self.shorten_prefix(common(key, self.prefix_bytes()));
        }
        let suffix = key.get(self.prefix..).unwrap_or_default();
        let (index, start, end, had_body, is_there) = match self.find(suffix) {
            Ok(found) => {
                seen(Some(self.cell(&found)));
                let is_alike = found.inline.len() == cell.inline.len();
                if is_alike && !found.has_body && cell.body.is_none() {
                    let place = found.end - cell.inline.len()..found.end;
                    let place = self.data.get_mut(place).expect("invariant: an entry is whole");
                    place.copy_from_slice(cell.inline);
                    return true;
                }
                (found.index, found.start, found.end, found.has_body, true)
            }
            Err(index) => {
                seen(None);
                let end = self.data.len();
                let start = self.slots.get(index).map_or(end, |slot| usize::from(slot.start));
                (index, start, start, false, false)
            }
        };
        let mut entry = Vec::with_capacity(suffix.len() + cell.inline.len() + 4);
        put_entry(suffix, cell.inline, cell.body.is_some(), &mut entry);
        let bodies = self.bodies_before(index);
        if !is_there {
            reserve(&mut self.slots, 1, SLOTS_STEP);
            self.slots.insert(index, Slot::of(suffix, start));
        }
        reserve(&mut self.data, entry.len().saturating_sub(end - start), ROOM_STEP);
        self.shift(index + 1, entry.len().cast_signed() - (end - start).cast_signed());
        self.data.splice(start..end, entry);
        self.put_body(bodies, had_body, cell.body.cloned());
        self.fit();
        is_there
    }

    pub(super) fn remove(&mut self, key: &[u8], seen: impl FnOnce(Cell<'_>)) -> bool {
        let Some(suffix) = key.strip_prefix(self.prefix_bytes()) else { return false };
        let Ok(found) = self.find(suffix) else { return false };
        debug_assert!(found.start < found.end, "an entry has bytes");
        seen(self.cell(&found));
        let (index, start, end, had_body) = (found.index, found.start, found.end, found.has_body);
        let bodies = self.bodies_before(index);
        self.data.drain(start..end);
        self.slots.remove(index);
        self.shift(index, start.cast_signed() - end.cast_signed());
        self.put_body(bodies, had_body, None);
        if self.count() == 0 {
            (self.data, self.slots, self.prefix) = (Vec::new(), Vec::new(), 0);
        }
        self.fit();
        true
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
        let more = self.data.get(prefix..self.prefix).unwrap_or_default().to_vec();
        let mut data = self.data.get(..prefix).unwrap_or_default().to_vec();
        let mut slots = Vec::with_capacity(self.count());
        for (found, _) in self.entries() {
            let suffix = [&more, found.suffix].concat();
            slots.push(Slot::of(&suffix, data.len()));
            put_entry(&suffix, found.inline, found.has_body, &mut data);
        }
        (self.data, self.slots, self.prefix) = (data, slots, prefix);
    }

    /// Gives a part of the entries to a new leaf if there are too many bytes. If the first or last
    /// key came now, that is a leaf by itself: more are likely to follow.
    pub(super) fn split_if_long(&mut self, key: &[u8]) -> Split {
        let count = self.count();
        if self.data.len() <= LEAF_BYTES || count < 2 {
            return None;
        }
        let at = match () {
            () if self.key(count - 1) == key => count - 1,
            () if self.key(0) == key => 1,
            () => self.middle(),
        };
        let mut all: Vec<_> = self.owned().collect();
        let right = Self::of(&all.split_off(at));
        *self = Self::of(&all);
        let bound = bound(&self.key(at - 1), &right.key(0));
        debug_assert_eq!(self.count() + right.count(), count, "a split loses nothing");
        Some((bound, Arc::new(Node::Leaf(right))))
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
fn bound(one: &[u8], other: &[u8]) -> Box<[u8]> {
    other.get(..=common(one, other)).unwrap_or(other).into()
}

impl Slot {
    fn of(suffix: &[u8], start: usize) -> Self {
        let start = u16::try_from(start).expect("invariant: leaves are short");
        Self { head: head(suffix), start }
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

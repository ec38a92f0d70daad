//! Sorted entries of bytes in packed leaves: a B+tree whose leaves are one buffer each.
//!
//! A leaf holds its entries back to back, without the bytes that all its keys begin with. An entry
//! takes its own bytes and two lengths, where a tree of owned keys takes a pointer, a length and an
//! allocation for key and value each. A search looks through one leaf from its beginning.
//!
//! A value has inline bytes, and may have a body beside them, which is shared and not copied. A
//! clone of the tree shares all nodes; the first change of each copies it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;

/// Sorted entries.
#[derive(Clone, Debug)]
pub(crate) struct PackedTree {
    root: Arc<Node>,
    len: usize,
    bytes: usize,
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell<'t> {
    /// At most [`INLINE_BYTES_MAX`].
    pub(crate) inline: &'t [u8],
    pub(crate) body: Option<&'t Arc<[u8]>>,
}

/// The key of an entry, in two parts: one begins all keys of a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyParts<'t> {
    prefix: &'t [u8],
    suffix: &'t [u8],
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Inner(Inner),
}

#[derive(Clone, Debug, Default)]
struct Leaf {
    /// The bytes that all keys begin with, and the entries behind them.
    data: Vec<u8>,
    prefix: usize,
    count: usize,
    /// Of the entries that have one, in their order.
    bodies: Vec<Arc<[u8]>>,
    body_bytes: usize,
}

#[derive(Clone, Debug)]
struct Inner {
    /// The first key that may be in each child but the first.
    bounds: Vec<Box<[u8]>>,
    children: Vec<Arc<Node>>,
}

/// A child that was split: the keys of the new one begin at this bound.
type Split = Option<(Box<[u8]>, Arc<Node>)>;

impl KeyParts<'_> {
    /// The whole key.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }
}

impl Default for PackedTree {
    fn default() -> Self {
        let root = Node::Leaf(Leaf::default());
        Self { bytes: root.bytes(), root: Arc::new(root), len: 0 }
    }
}

impl PackedTree {
    /// Bytes of memory that a tree without entries takes.
    pub(crate) const EMPTY_BYTES: usize = NODE_BYTES;

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that it takes, with the bodies.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Cell<'_>> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(inner) => node = inner.children.get(inner.child_of(key))?,
                Node::Leaf(leaf) => {
                    let suffix = key.strip_prefix(leaf.prefix_bytes())?;
                    return leaf.find(suffix).ok().map(|found| leaf.cell(&found));
                }
            }
        }
    }

    /// Sets an entry; `seen` is shown what it was before.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        cell: Cell<'_>,
        seen: impl FnOnce(Option<Cell<'_>>),
    ) {
        assert!(cell.inline.len() <= INLINE_BYTES_MAX, "large values are bodies");
        let mut change = Change { len: 0, bytes: 0 };
        let split = insert(&mut self.root, key, cell, seen, &mut change);
        if let Some((bound, right)) = split {
            let children = [Arc::clone(&self.root), right];
            let root = Node::Inner(Inner { bounds: [bound].into(), children: children.into() });
            change.bytes += root.bytes().cast_signed();
            self.root = Arc::new(root);
        }
        self.take(change);
    }

    /// Removes an entry, which is shown to `seen`; false if there is none.
    pub(crate) fn remove(&mut self, key: &[u8], seen: impl FnOnce(Cell<'_>)) -> bool {
        let mut change = Change { len: 0, bytes: 0 };
        let found = remove(&mut self.root, key, seen, &mut change);
        while let Node::Inner(inner) = &*self.root
            && inner.children.len() <= 1
        {
            change.bytes -= self.root.bytes().cast_signed();
            let only = inner.children.first().cloned();
            self.root = only.unwrap_or_else(|| {
                let empty = Node::Leaf(Leaf::default());
                change.bytes += empty.bytes().cast_signed();
                Arc::new(empty)
            });
        }
        self.take(change);
        found
    }

    /// The entries behind this key, ascending; all where none is given.
    pub(crate) fn iter_after(&self, key: Option<&[u8]>) -> Iter<'_> {
        let mut iter = Iter { stack: Vec::new(), leaf: None };
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(inner) => {
                    let child = key.map_or(0, |key| inner.child_of(key));
                    let rest = inner.children.get(child + 1..).unwrap_or_default();
                    iter.stack.push(rest.iter());
                    let Some(child) = inner.children.get(child) else { return iter };
                    node = child;
                }
                Node::Leaf(leaf) => {
                    iter.leaf = Some((leaf, leaf.entries_after(key)));
                    return iter;
                }
            }
        }
    }

    fn take(&mut self, change: Change) {
        self.len = self.len.checked_add_signed(change.len).expect("invariant: entries are counted");
        self.bytes =
            self.bytes.checked_add_signed(change.bytes).expect("invariant: bytes are counted");
    }

    /// Verifies order, bounds and counts.
    ///
    /// # Panics
    /// When something is wrong.
    pub(crate) fn check(&self) {
        let (len, bytes) = check(&self.root, None, None);
        assert_eq!(len, self.len, "entries of a tree");
        assert_eq!(bytes, self.bytes, "bytes of a tree");
    }
}

/// Differences of the counts of a tree.
struct Change {
    len: isize,
    bytes: isize,
}

impl Change {
    /// The node, which no clone of the tree shares any more. A copy may have less spare room.
    fn own<'n>(&mut self, node: &'n mut Arc<Node>) -> &'n mut Node {
        if Arc::strong_count(node) > 1 {
            let before = node.bytes();
            let copy = Arc::make_mut(node);
            self.bytes += copy.bytes().cast_signed() - before.cast_signed();
            return copy;
        }
        Arc::make_mut(node)
    }
}

impl Node {
    fn bytes(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.bytes(),
            Self::Inner(inner) => inner.bytes(),
        }
    }

    /// Too small to stay by itself, if a neighbour has room for it.
    fn is_small(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.data.len() < LEAF_BYTES / 4,
            Self::Inner(inner) => inner.children.len() < CHILDREN_MAX / 4,
        }
    }
}

fn insert(
    node: &mut Arc<Node>,
    key: &[u8],
    cell: Cell<'_>,
    seen: impl FnOnce(Option<Cell<'_>>),
    change: &mut Change,
) -> Split {
    let node = change.own(node);
    let (before, split) = match node {
        Node::Leaf(leaf) => {
            let before = leaf.bytes();
            change.len += isize::from(!leaf.insert(key, cell, seen));
            (before, leaf.split_if_long(key))
        }
        Node::Inner(inner) => {
            let at = inner.child_of(key);
            let child = inner.children.get_mut(at).expect("invariant: a bound leads to a child");
            let (bound, child) = insert(child, key, cell, seen, change)?;
            let before = inner.bytes();
            inner.bounds.insert(at, bound);
            inner.children.insert(at + 1, child);
            (before, inner.split_if_long(at + 1))
        }
    };
    change.bytes += node.bytes().cast_signed() - before.cast_signed();
    if let Some((_, right)) = &split {
        change.bytes += right.bytes().cast_signed();
    }
    split
}

fn remove(
    node: &mut Arc<Node>,
    key: &[u8],
    seen: impl FnOnce(Cell<'_>),
    change: &mut Change,
) -> bool {
    let node = change.own(node);
    match node {
        Node::Leaf(leaf) => {
            let before = leaf.bytes();
            let found = leaf.remove(key, seen);
            change.len -= isize::from(found);
            change.bytes += leaf.bytes().cast_signed() - before.cast_signed();
            found
        }
        Node::Inner(inner) => {
            let at = inner.child_of(key);
            let child = inner.children.get_mut(at).expect("invariant: a bound leads to a child");
            let found = remove(child, key, seen, change);
            if found && child.is_small() {
                let before = inner.bytes();
                inner.merge_around(at, change);
                change.bytes += inner.bytes().cast_signed() - before.cast_signed();
            }
            found
        }
    }
}

impl Inner {
    fn bytes(&self) -> usize {
        let bounds: usize = self.bounds.iter().map(|bound| bound.len()).sum();
        let tables = self.bounds.capacity() * size_of::<Box<[u8]>>()
            + self.children.capacity() * size_of::<Arc<Node>>();
        NODE_BYTES + bounds + tables
    }

    /// The place of the child that may hold a key.
    fn child_of(&self, key: &[u8]) -> usize {
        self.bounds.partition_point(|bound| **bound <= *key)
    }

    /// Gives a part of the children to a new node; all behind `last` if that is the last child, for
    /// then more are likely to follow.
    fn split_if_long(&mut self, last: usize) -> Split {
        let count = self.children.len();
        if count <= CHILDREN_MAX {
            return None;
        }
        let at = if last + 1 >= count { count - 2 } else { count / 2 };
        let children = self.children.split_off(at);
        let bounds = self.bounds.split_off(at);
        let bound = self.bounds.pop()?;
        self.children.shrink_to(CHILDREN_MAX);
        Some((bound, Arc::new(Node::Inner(Self { bounds, children }))))
    }

    /// Joins a small child with a neighbour that has room for it, or drops it if it is empty.
    fn merge_around(&mut self, at: usize, change: &mut Change) {
        let is_empty = |node: &Arc<Node>| matches!(&**node, Node::Leaf(leaf) if leaf.count == 0);
        if self.children.len() > 1 && self.children.get(at).is_some_and(is_empty) {
            let gone = self.children.remove(at);
            change.bytes -= gone.bytes().cast_signed();
            self.bounds.remove(at.saturating_sub(1));
            return;
        }
        let left = at.saturating_sub(1);
        for left in [left, at] {
            if left + 1 < self.children.len() && self.merge(left, change) {
                return;
            }
        }
    }

    /// Joins a child with the one behind it, if one node has room for both.
    fn merge(&mut self, left: usize, change: &mut Change) -> bool {
        let Some([one, other]) = self.children.get(left..left + 2) else { return false };
        let before = one.bytes() + other.bytes();
        let joined = match (&**one, &**other) {
            (Node::Leaf(one), Node::Leaf(other)) => {
                if one.data.len() + other.data.len() > LEAF_BYTES * 3 / 4 {
                    return false;
                }
                let joined = Leaf::of(&one.owned().chain(other.owned()).collect::<Vec<_>>());
                // They may have fewer bytes in common than each has.
                if joined.data.len() > LEAF_BYTES {
                    return false;
                }
                Node::Leaf(joined)
            }
            (Node::Inner(one), Node::Inner(other)) => {
                if one.children.len() + other.children.len() > CHILDREN_MAX * 3 / 4 {
                    return false;
                }
                let Some(bound) = self.bounds.get(left) else { return false };
                let middle = [bound.clone()];
                let bounds = [&one.bounds, &middle[..], &other.bounds].concat();
                let children = [&*one.children, &*other.children].concat();
                Node::Inner(Self { bounds, children })
            }
            _ => return false,
        };
        change.bytes += joined.bytes().cast_signed() - before.cast_signed();
        self.children.remove(left + 1);
        self.bounds.remove(left);
        if let Some(child) = self.children.get_mut(left) {
            *child = Arc::new(joined);
        }
        true
    }
}

/// An entry, and where it lies.
struct Found<'l> {
    suffix: &'l [u8],
    inline: &'l [u8],
    has_body: bool,
    start: usize,
    end: usize,
    /// How many bodies come before it.
    bodies: usize,
}

/// Where an entry would lie.
struct Place {
    start: usize,
    bodies: usize,
}

/// The entries of a leaf.
struct Entries<'l> {
    data: &'l [u8],
    at: usize,
    bodies: usize,
}

impl<'l> Iterator for Entries<'l> {
    type Item = Found<'l>;

    #[inline]
    fn next(&mut self) -> Option<Found<'l>> {
        let start = self.at;
        let rest = self.data.get(start..)?;
        let (key, rest, first) = length(rest)?;
        let (value, rest, second) = length(rest)?;
        let (value, has_body) = (value >> 1, value & 1 == 1);
        let (suffix, rest) = rest.split_at_checked(key)?;
        let inline = rest.get(..value)?;
        let bodies = self.bodies;
        self.at = start + first + second + key + value;
        self.bodies += usize::from(has_body);
        Some(Found { suffix, inline, has_body, start, end: self.at, bodies })
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
type Owned = (Vec<u8>, Vec<u8>, Option<Arc<[u8]>>);

impl Leaf {
    /// A leaf of these entries, which are sorted.
    fn of(all: &[Owned]) -> Self {
        let first = all.first().map_or(&[][..], |(key, ..)| key);
        let last = all.last().map_or(&[][..], |(key, ..)| key);
        let prefix = common(first, last);
        let mut data = Vec::with_capacity(LEAF_BYTES);
        data.extend_from_slice(first.get(..prefix).unwrap_or_default());
        for (key, inline, body) in all {
            put_entry(key.get(prefix..).unwrap_or_default(), inline, body.is_some(), &mut data);
        }
        let bodies: Vec<_> = all.iter().filter_map(|(.., body)| body.clone()).collect();
        let body_bytes = bodies.iter().map(body_bytes).sum();
        let mut leaf = Self { data, prefix, count: all.len(), bodies, body_bytes };
        leaf.fit();
        leaf
    }

    fn bytes(&self) -> usize {
        let table = self.bodies.capacity() * size_of::<Arc<[u8]>>();
        NODE_BYTES + self.data.capacity() + table + self.body_bytes
    }

    fn prefix_bytes(&self) -> &[u8] {
        self.data.get(..self.prefix).unwrap_or_default()
    }

    fn entries(&self) -> Entries<'_> {
        Entries { data: &self.data, at: self.prefix, bodies: 0 }
    }

    fn owned(&self) -> impl Iterator<Item = Owned> {
        self.entries().map(|found| {
            let key = [self.prefix_bytes(), found.suffix].concat();
            let body = self.cell(&found).body.cloned();
            (key, found.inline.to_vec(), body)
        })
    }

    fn cell<'l>(&'l self, found: &Found<'l>) -> Cell<'l> {
        let body = if found.has_body { self.bodies.get(found.bodies) } else { None };
        Cell { inline: found.inline, body }
    }

    /// The entry of this key, without the common bytes, or the place where it would be.
    fn find(&self, suffix: &[u8]) -> Result<Found<'_>, Place> {
        let mut entries = self.entries();
        loop {
            let place = Place { start: entries.at, bodies: entries.bodies };
            match entries.next() {
                Some(found) if found.suffix < suffix => {}
                Some(found) if found.suffix == suffix => return Ok(found),
                _ => return Err(place),
            }
        }
    }

    fn entries_after(&self, key: Option<&[u8]>) -> Entries<'_> {
        let mut entries = self.entries();
        let Some(key) = key else { return entries };
        let Some(suffix) = key.strip_prefix(self.prefix_bytes()) else {
            // All of its keys lie on one side.
            if self.prefix_bytes() < key {
                entries.at = self.data.len();
            }
            return entries;
        };
        match self.find(suffix) {
            Ok(found) => {
                entries.at = found.end;
                entries.bodies = found.bodies + usize::from(found.has_body);
            }
            Err(place) => (entries.at, entries.bodies) = (place.start, place.bodies),
        }
        entries
    }

    /// True if it was there.
    fn insert(&mut self, key: &[u8], cell: Cell<'_>, seen: impl FnOnce(Option<Cell<'_>>)) -> bool {
        if !key.starts_with(self.prefix_bytes()) {
            self.shorten_prefix(common(key, self.prefix_bytes()));
        }
        let suffix = key.get(self.prefix..).unwrap_or_default();
        let (start, end, bodies, had_body, is_there) = match self.find(suffix) {
            Ok(found) => {
                seen(Some(self.cell(&found)));
                (found.start, found.end, found.bodies, found.has_body, true)
            }
            Err(place) => {
                seen(None);
                (place.start, place.start, place.bodies, false, false)
            }
        };
        let mut entry = Vec::with_capacity(suffix.len() + cell.inline.len() + 4);
        put_entry(suffix, cell.inline, cell.body.is_some(), &mut entry);
        self.make_room((self.data.len() + entry.len()).saturating_sub(end - start));
        self.data.splice(start..end, entry);
        self.put_body(bodies, had_body, cell.body.cloned());
        self.count += usize::from(!is_there);
        self.fit();
        is_there
    }

    fn remove(&mut self, key: &[u8], seen: impl FnOnce(Cell<'_>)) -> bool {
        let Some(suffix) = key.strip_prefix(self.prefix_bytes()) else { return false };
        let Ok(found) = self.find(suffix) else { return false };
        seen(self.cell(&found));
        let (start, end, bodies, has_body) = (found.start, found.end, found.bodies, found.has_body);
        self.data.drain(start..end);
        self.put_body(bodies, has_body, None);
        self.count -= 1;
        if self.count == 0 {
            (self.data, self.prefix) = (Vec::new(), 0);
        }
        self.fit();
        true
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
        for found in self.entries() {
            put_entry(&[&more, found.suffix].concat(), found.inline, found.has_body, &mut data);
        }
        (self.data, self.prefix) = (data, prefix);
    }

    /// Gives a part of the entries to a new leaf if there are too many bytes. If the first or last
    /// key came now, that is a leaf by itself: more are likely to follow, or it has less in common
    /// with the others than they have.
    fn split_if_long(&mut self, key: &[u8]) -> Split {
        if self.data.len() <= LEAF_BYTES || self.count < 2 {
            return None;
        }
        let mut all: Vec<_> = self.owned().collect();
        let at = match () {
            () if all.last().is_some_and(|(last, ..)| last == key) => all.len() - 1,
            () if all.first().is_some_and(|(first, ..)| first == key) => 1,
            () => self.middle(),
        };
        let right = all.split_off(at);
        let last = all.last().map_or(&[][..], |(key, ..)| key);
        let first = right.first().map_or(&[][..], |(key, ..)| key);
        let bound = first.get(..=common(last, first)).unwrap_or(first).into();
        *self = Self::of(&all);
        Some((bound, Arc::new(Node::Leaf(Self::of(&right)))))
    }

    /// The number of entries in the first half of its bytes: one at least, and not all.
    fn middle(&self) -> usize {
        let half = self.prefix + (self.data.len() - self.prefix) / 2;
        let count = self.entries().take_while(|found| found.end <= half).count();
        count.clamp(1, self.count - 1)
    }

    /// Has room for so many bytes of data.
    fn make_room(&mut self, bytes: usize) {
        if bytes > self.data.capacity() {
            let wanted = bytes.next_multiple_of(ROOM_STEP);
            self.data.reserve_exact(wanted - self.data.len());
        }
    }

    /// Has no more room than it needs, by and large.
    fn fit(&mut self) {
        if self.data.capacity() - self.data.len() > 2 * ROOM_STEP {
            self.data.shrink_to(self.data.len().next_multiple_of(ROOM_STEP));
        }
        if self.bodies.is_empty() {
            self.bodies = Vec::new();
        }
    }
}

/// How many bytes two keys begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn body_bytes(body: &Arc<[u8]>) -> usize {
    BODY_BYTES_BESIDE + body.len()
}

/// Entries of a tree, ascending.
pub(crate) struct Iter<'t> {
    /// The children that are still to come, from the root on.
    stack: Vec<core::slice::Iter<'t, Arc<Node>>>,
    leaf: Option<(&'t Leaf, Entries<'t>)>,
}

impl<'t> Iterator for Iter<'t> {
    type Item = (KeyParts<'t>, Cell<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((leaf, entries)) = &mut self.leaf
                && let Some(found) = entries.next()
            {
                let key = KeyParts { prefix: leaf.prefix_bytes(), suffix: found.suffix };
                return Some((key, leaf.cell(&found)));
            }
            self.leaf = None;
            let children = self.stack.last_mut()?;
            match children.next().map(|child| &**child) {
                Some(Node::Leaf(leaf)) => self.leaf = Some((leaf, leaf.entries())),
                Some(Node::Inner(inner)) => self.stack.push(inner.children.iter()),
                None => drop(self.stack.pop()),
            }
        }
    }
}

fn check(node: &Node, low: Option<&[u8]>, high: Option<&[u8]>) -> (usize, usize) {
    match node {
        Node::Leaf(leaf) => {
            let keys: Vec<_> = leaf.owned().map(|(key, ..)| key).collect();
            assert!(keys.is_sorted_by(|one, next| one < next), "entries are sorted");
            assert!(keys.iter().all(|key| low.is_none_or(|low| low <= &**key)), "above the bound");
            assert!(
                keys.iter().all(|key| high.is_none_or(|high| &**key < high)),
                "below the bound"
            );
            assert_eq!(keys.len(), leaf.count, "entries of a leaf");
            let bodies = leaf.entries().filter(|found| found.has_body).count();
            assert_eq!(bodies, leaf.bodies.len(), "bodies of a leaf");
            assert_eq!(
                leaf.bodies.iter().map(body_bytes).sum::<usize>(),
                leaf.body_bytes,
                "their bytes"
            );
            (keys.len(), node.bytes())
        }
        Node::Inner(inner) => {
            assert_eq!(inner.children.len(), inner.bounds.len() + 1, "bounds between children");
            let lows = core::iter::once(low).chain(inner.bounds.iter().map(|it| Some(&**it)));
            let highs = inner.bounds.iter().map(|it| Some(&**it)).chain(core::iter::once(high));
            let parts = inner.children.iter().zip(lows.zip(highs));
            parts.fold((0, node.bytes()), |(len, bytes), (child, (low, high))| {
                let (its_len, its_bytes) = check(child, low, high);
                (len + its_len, bytes + its_bytes)
            })
        }
    }
}

/// Bytes of data in a leaf; a single entry may have more.
const LEAF_BYTES: usize = 3584;

/// The data of a leaf grows in such steps.
const ROOM_STEP: usize = 256;

/// Children of an inner node.
const CHILDREN_MAX: usize = 64;

/// Inline bytes of a value; what has more is a body.
pub(crate) const INLINE_BYTES_MAX: usize = 1024;

/// A node with the counts beside it, and the allocator's share of its two allocations.
const NODE_BYTES: usize = size_of::<Node>() + 16 + 16;

/// The counts beside a body, and the allocator's share.
const BODY_BYTES_BESIDE: usize = 16 + 16;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use core::ops::Bound;

    use testkit::{Rng, seeds};

    use super::*;

    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<Arc<[u8]>>)>;

    fn key(rng: &mut Rng, kind: u64) -> Vec<u8> {
        let number = rng.below(400);
        match kind {
            0 => format!("{number}").into_bytes(),
            1 => format!("a/rather/long/prefix/of/all/{number:08}").into_bytes(),
            2 => vec_of((number % 251) as u8, 1 + (number % 7) as usize),
            // Longer than a leaf.
            3 if rng.one_in(20) => vec_of((number % 5) as u8, 4_000),
            _ => number.to_be_bytes().to_vec(),
        }
    }

    fn vec_of(byte: u8, count: usize) -> Vec<u8> {
        core::iter::repeat_n(byte, count).collect()
    }

    fn random_cell(rng: &mut Rng) -> (Vec<u8>, Option<Arc<[u8]>>) {
        let count = rng.pick(&[0, 1, 8, 8, 8, 200, INLINE_BYTES_MAX]);
        let body = rng.one_in(6).then(|| Arc::from(vec_of(7, rng.below(3_000) as usize)));
        (vec_of(rng.below(256) as u8, count), body)
    }

    fn assert_same(tree: &PackedTree, model: &Model) {
        tree.check();
        assert_eq!(tree.len(), model.len());
        let found = tree
            .iter_after(None)
            .map(|(key, cell)| (key.to_vec(), (cell.inline.to_vec(), cell.body.cloned())));
        assert!(found.eq(model.iter().map(|(key, value)| (key.clone(), value.clone()))));
    }

    #[test]
    fn tree_behaves_as_a_sorted_map() {
        for seed in seeds(40) {
            let mut rng = Rng::new(seed);
            let (mut tree, mut model) = (PackedTree::default(), Model::new());
            let (kind, grows) = (rng.below(5), rng.coin());
            let mut picture: Option<(PackedTree, Model)> = None;
            for step in 0..4_000 {
                let key = key(&mut rng, kind);
                // It grows first, and shrinks then.
                let puts = if (step < 2_000) == grows { 4 } else { 1 };
                if rng.below(5) < puts {
                    let (inline, body) = random_cell(&mut rng);
                    let before = model.insert(key.clone(), (inline.clone(), body.clone()));
                    let cell = Cell { inline: &inline, body: body.as_ref() };
                    tree.insert(&key, cell, |seen| {
                        let seen = seen.map(|cell| (cell.inline.to_vec(), cell.body.cloned()));
                        assert_eq!(seen, before, "seed {seed}");
                    });
                } else {
                    let before = model.remove(&key);
                    let found = tree.remove(&key, |cell| {
                        let seen = (cell.inline.to_vec(), cell.body.cloned());
                        assert_eq!(Some(seen), before, "seed {seed}");
                    });
                    assert_eq!(found, before.is_some(), "seed {seed}");
                }
                let other = self::key(&mut rng, kind);
                let got = tree.get(&other).map(|cell| (cell.inline.to_vec(), cell.body.cloned()));
                assert_eq!(got, model.get(&other).cloned(), "seed {seed}");
                let next = tree.iter_after(Some(&other)).next().map(|(key, _)| key.to_vec());
                let range = (Bound::Excluded(other), Bound::Unbounded);
                assert_eq!(next.as_ref(), model.range(range).next().map(|(key, _)| key));
                if step % 500 == 0 {
                    assert_same(&tree, &model);
                    if let Some((tree, model)) = picture.replace((tree.clone(), model.clone())) {
                        assert_same(&tree, &model);
                    }
                }
            }
            for key in model.keys() {
                assert!(tree.remove(key, |_| ()), "seed {seed}");
            }
            assert_same(&tree, &Model::new());
            assert_eq!(tree.bytes(), PackedTree::EMPTY_BYTES, "an empty tree takes nothing");
        }
    }

    #[test]
    fn entries_take_little_beside_their_bytes() {
        let mut rng = Rng::new(1);
        let cell = Cell { inline: &[0; 9], body: None };
        let mut tree = PackedTree::default();
        for _ in 0..20_000 {
            tree.insert(format!("{:016x}", rng.draw()).as_bytes(), cell, |_| ());
        }
        assert!(tree.bytes() / tree.len() <= 36, "{} bytes an entry", tree.bytes() / tree.len());
        let mut tree = PackedTree::default();
        for number in 0..20_000 {
            tree.insert(format!("{number:016}").as_bytes(), cell, |_| ());
        }
        assert!(tree.bytes() / tree.len() <= 18, "{} bytes an entry", tree.bytes() / tree.len());
    }
}

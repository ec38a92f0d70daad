//! Sorted entries of bytes in packed leaves: a B+tree whose leaves are one buffer each.
//!
//! A leaf holds its entries back to back, without the bytes that all its keys begin with. An entry
//! takes its own bytes, two lengths and an offset, where a tree of owned keys takes a pointer, a
//! length and an allocation for key and value each.
//!
//! A value has inline bytes, and may have a body beside them, which is shared and not copied. A
//! clone of the tree shares all nodes; the first change of each copies it.

mod leaf;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;

use leaf::{Entries, EntryPlace, LEAF_BYTES, Leaf, body_bytes, common};

/// Sorted entries.
#[derive(Clone, Debug)]
pub(crate) struct PackedTree {
    root: Arc<Node>,
    len: usize,
    bytes: usize,
    /// How many changes it has seen: a place is good until the next.
    changes: u64,
    /// Bytes of the nodes that were copied since a clone shared them.
    copied: u64,
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell<'t> {
    /// At most [`INLINE_BYTES_MAX`].
    pub(crate) inline: &'t [u8],
    pub(crate) body: Option<&'t Arc<[u8]>>,
}

impl<'t> Cell<'t> {
    /// Without a body.
    pub(crate) const fn inline(inline: &'t [u8]) -> Self {
        Self { inline, body: None }
    }
}

/// The value that an entry is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCell<'t> {
    /// In two parts, one behind the other; at most [`INLINE_BYTES_MAX`] together.
    pub(crate) inline: [&'t [u8]; 2],
    pub(crate) body: Option<&'t Arc<[u8]>>,
}

impl NewCell<'_> {
    fn inline_bytes(&self) -> usize {
        self.inline.iter().map(|part| part.len()).sum()
    }
}

impl<'t> From<Cell<'t>> for NewCell<'t> {
    fn from(Cell { inline, body }: Cell<'t>) -> Self {
        Self { inline: [inline, &[]], body }
    }
}

/// The place of a key in a tree, be it there or not. Once the tree has changed, the place is
/// searched for anew where it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    path: Path,
    entry: EntryPlace,
    /// Changes that the tree had seen.
    changes: u64,
}

/// The numbers of the children on the way to a leaf.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The root's in the lowest bits.
    children: u64,
    height: u32,
}

impl Path {
    const ROOT: Self = Self { children: 0, height: 0 };

    /// The way to a child of the node that this leads to.
    fn to_child(self, at: usize) -> Self {
        assert!(self.height < HEIGHT_MAX, "no memory holds so high a tree");
        let children = self.children | (at as u64) << (self.height * CHILD_BITS);
        Self { children, height: self.height + 1 }
    }

    /// The child of the root, and the rest of the way.
    const fn step(self) -> (usize, Self) {
        let at = self.children & ((1 << CHILD_BITS) - 1);
        let rest = Self { children: self.children >> CHILD_BITS, height: self.height - 1 };
        (at as usize, rest)
    }
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

#[derive(Clone, Debug)]
struct Inner {
    /// The first key that may be in each child but the first.
    bounds: Vec<Box<[u8]>>,
    /// How many bytes all bounds begin with alike.
    prefix: usize,
    /// The first bytes of each bound behind those: most searches look at these alone.
    heads: Vec<u64>,
    children: Vec<Arc<Node>>,
    /// How many entries are below each child.
    counts: Vec<u32>,
}

/// A child that was split: the keys of the new one begin at this bound.
type Split = Option<(Box<[u8]>, Arc<Node>)>;

impl<'t> KeyParts<'t> {
    /// The whole key.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }

    /// The two parts of it.
    pub(crate) const fn parts(self) -> [&'t [u8]; 2] {
        [self.prefix, self.suffix]
    }

    /// The first bytes of it, and the rest; nothing if it has fewer.
    pub(crate) fn split<const N: usize>(self) -> Option<([u8; N], Self)> {
        let mut first = [0; N];
        let (from_prefix, prefix) = self.prefix.split_at(N.min(self.prefix.len()));
        let (from_suffix, suffix) = self.suffix.split_at_checked(N - from_prefix.len())?;
        let bytes = from_prefix.iter().chain(from_suffix);
        first.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        Some((first, Self { prefix, suffix }))
    }
}

impl Default for PackedTree {
    fn default() -> Self {
        let root = Node::Leaf(Leaf::default());
        Self { bytes: root.bytes(), root: Arc::new(root), len: 0, changes: 0, copied: 0 }
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

    /// Bytes of all nodes, with the bodies in them, that were copied since clones shared them.
    pub(crate) const fn copied(&self) -> u64 {
        self.copied
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Cell<'_>> {
        self.find(key).1
    }

    /// The place of a key, and the value that is there.
    pub(crate) fn find(&self, key: &[u8]) -> (Place, Option<Cell<'_>>) {
        let (mut node, mut path) = (&*self.root, Path::ROOT);
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.child_of(key);
                    path = path.to_child(at);
                    let child = inner.children.get(at);
                    node = child.expect("invariant: a bound leads to a child");
                }
                Node::Leaf(leaf) => {
                    let (entry, cell) = leaf.find(key);
                    return (Place { path, entry, changes: self.changes }, cell);
                }
            }
        }
    }

    /// The same, from a place that was found before.
    pub(crate) fn find_again(&self, place: Option<Place>, key: &[u8]) -> (Place, Option<Cell<'_>>) {
        let Some(place) = place.filter(|place| self.is_current(place)) else {
            return self.find(key);
        };
        debug_assert_eq!(place.entry, self.find(key).0.entry, "the place of another key");
        let (mut node, mut path) = (&*self.root, place.path);
        loop {
            match node {
                Node::Inner(inner) => {
                    let (at, rest) = path.step();
                    let child = inner.children.get(at);
                    (node, path) = (child.expect("invariant: the path leads to a child"), rest);
                }
                Node::Leaf(leaf) => return (place, leaf.cell(place.entry)),
            }
        }
    }

    /// True if the tree has not changed since the place was found.
    pub(crate) const fn is_current(&self, place: &Place) -> bool {
        place.changes == self.changes
    }

    /// Sets an entry; `seen` is shown what it was before.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        cell: Cell<'_>,
        seen: impl FnOnce(Option<Cell<'_>>),
    ) {
        let (place, before) = self.find(key);
        seen(before);
        self.insert_at(&place, key, cell.into());
    }

    /// The same for a key whose place was found.
    pub(crate) fn insert_at(&mut self, place: &Place, key: &[u8], cell: NewCell<'_>) {
        assert!(cell.inline_bytes() <= INLINE_BYTES_MAX, "large values are bodies");
        let Place { path, entry, .. } = self.known(place, key);
        let mut change = Change::NONE;
        let split = insert(&mut self.root, (path, entry), key, &cell, &mut change);
        if let Some((bound, right)) = split {
            let children = [Arc::clone(&self.root), right];
            let root = Node::Inner(Inner::of([bound].into(), children.into()));
            change.bytes += root.bytes().cast_signed();
            self.root = Arc::new(root);
        }
        self.take(change);
    }

    /// The place of a key as it is now.
    fn known(&self, place: &Place, key: &[u8]) -> Place {
        if !self.is_current(place) {
            return self.find(key).0;
        }
        debug_assert_eq!(place.entry, self.find(key).0.entry, "the place of another key");
        *place
    }

    /// Removes an entry, which is shown to `seen`; false if there is none.
    pub(crate) fn remove(&mut self, key: &[u8], seen: impl FnOnce(Cell<'_>)) -> bool {
        let (Place { path, entry, .. }, Some(cell)) = self.find(key) else { return false };
        seen(cell);
        let mut change = Change::NONE;
        remove(&mut self.root, path, entry, &mut change);
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
        true
    }

    /// How many entries stand before this key.
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        let (mut node, mut before) = (&*self.root, 0);
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.child_of(key);
                    before += inner.before(at);
                    let child = inner.children.get(at);
                    node = child.expect("invariant: a bound leads to a child");
                }
                Node::Leaf(leaf) => return before + leaf.place_of(key).index,
            }
        }
    }

    /// The entries from the one on that has so many before it.
    pub(crate) fn iter_at(&self, rank: usize) -> Iter<'_> {
        let mut iter = Iter { stack: Vec::new(), leaf: None };
        let (mut node, mut left) = (&*self.root, rank);
        loop {
            match node {
                Node::Inner(inner) => {
                    let (at, before) = inner.child_at(left);
                    left -= before;
                    let rest = inner.children.get(at + 1..).unwrap_or_default();
                    iter.stack.push(rest.iter());
                    let Some(child) = inner.children.get(at) else { return iter };
                    node = child;
                }
                Node::Leaf(leaf) => {
                    iter.leaf = Some((leaf, leaf.entries_at(left)));
                    return iter;
                }
            }
        }
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
        self.changes += 1;
        self.copied += change.copied as u64;
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
    copied: usize,
}

impl Change {
    const NONE: Self = Self { len: 0, bytes: 0, copied: 0 };

    /// The node, which no clone of the tree shares any more. A copy may have less spare room.
    fn own<'n>(&mut self, node: &'n mut Arc<Node>) -> &'n mut Node {
        if Arc::strong_count(node) > 1 {
            let copy = Node::clone(node);
            self.copied += node.bytes();
            self.bytes += copy.bytes().cast_signed() - node.bytes().cast_signed();
            *node = Arc::new(copy);
        }
        Arc::get_mut(node).expect("invariant: no clone shares it")
    }
}

impl Node {
    /// How many entries are in it and below it.
    fn count(&self) -> u32 {
        match self {
            Self::Leaf(leaf) => leaf.count() as u32,
            Self::Inner(inner) => inner.counts.iter().sum(),
        }
    }

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
    (path, entry): (Path, EntryPlace),
    key: &[u8],
    cell: &NewCell<'_>,
    change: &mut Change,
) -> Split {
    let node = change.own(node);
    let (before, split) = match node {
        Node::Leaf(leaf) => {
            if entry.is_there && leaf.overwrite(entry.index, cell) {
                return None;
            }
            let before = leaf.bytes();
            change.len += isize::from(!entry.is_there);
            let split = leaf.part(key, cell);
            if split.is_none() {
                leaf.insert(entry, key, cell);
            }
            (before, split.or_else(|| leaf.split_if_long(entry.index)))
        }
        Node::Inner(inner) => {
            let (at, path) = path.step();
            let child = inner.children.get_mut(at).expect("invariant: the path leads to a child");
            let split = insert(child, (path, entry), key, cell, change);
            inner.add(at, isize::from(!entry.is_there));
            let (bound, child) = split?;
            let before = inner.bytes();
            let count = child.count();
            inner.add(at, -(count as isize));
            inner.counts.insert(at + 1, count);
            inner.bounds.insert(at, bound);
            inner.children.insert(at + 1, child);
            inner.index();
            (before, inner.split_if_long(at + 1))
        }
    };
    change.bytes += node.bytes().cast_signed() - before.cast_signed();
    if let Some((_, right)) = &split {
        change.bytes += right.bytes().cast_signed();
    }
    split
}

/// Removes an entry that is there.
fn remove(node: &mut Arc<Node>, path: Path, entry: EntryPlace, change: &mut Change) {
    match change.own(node) {
        Node::Leaf(leaf) => {
            let before = leaf.bytes();
            leaf.remove(entry.index);
            change.len -= 1;
            change.bytes += leaf.bytes().cast_signed() - before.cast_signed();
        }
        Node::Inner(inner) => {
            let (at, path) = path.step();
            let child = inner.children.get_mut(at).expect("invariant: the path leads to a child");
            remove(child, path, entry, change);
            let is_small = child.is_small();
            inner.add(at, -1);
            if is_small {
                let before = inner.bytes();
                inner.merge_around(at, change);
                change.bytes += inner.bytes().cast_signed() - before.cast_signed();
            }
        }
    }
}

impl Inner {
    fn bytes(&self) -> usize {
        let bounds: usize = self.bounds.iter().map(|bound| bound.len()).sum();
        let tables = self.bounds.capacity() * size_of::<Box<[u8]>>()
            + self.heads.capacity() * size_of::<u64>()
            + self.children.capacity() * size_of::<Arc<Node>>()
            + self.counts.capacity() * size_of::<u32>();
        NODE_BYTES + bounds + tables
    }

    fn of(bounds: Vec<Box<[u8]>>, children: Vec<Arc<Node>>) -> Self {
        assert_eq!(children.len(), bounds.len() + 1, "a bound between two children");
        let counts = children.iter().map(|child| child.count()).collect();
        let mut inner = Self { bounds, prefix: 0, heads: Vec::new(), children, counts };
        inner.index();
        inner
    }

    /// So many entries more are below a child.
    fn add(&mut self, at: usize, more: isize) {
        let count = self.counts.get_mut(at).expect("invariant: each child has a count");
        *count = count.checked_add_signed(more as i32).expect("invariant: entries are counted");
    }

    /// How many entries are below the children before this one.
    fn before(&self, at: usize) -> usize {
        self.counts.iter().take(at).map(|count| *count as usize).sum()
    }

    /// The child with the entry that has so many before it, and how many are before that child.
    fn child_at(&self, rank: usize) -> (usize, usize) {
        let mut before = 0;
        for (at, count) in self.counts.iter().enumerate() {
            let behind = before + *count as usize;
            if rank < behind {
                return (at, before);
            }
            before = behind;
        }
        (self.children.len(), before)
    }

    /// The bounds have changed.
    fn index(&mut self) {
        let ends = self.bounds.first().zip(self.bounds.last());
        self.prefix = ends.map_or(0, |(first, last)| common(first, last));
        let heads = self.bounds.iter().map(|bound| head(bound, self.prefix));
        self.heads.clear();
        self.heads.reserve_exact(self.bounds.len());
        self.heads.extend(heads);
        debug_assert!(self.bounds.is_sorted(), "bounds are sorted");
    }

    /// The place of the child that may hold a key.
    fn child_of(&self, key: &[u8]) -> usize {
        let Some(first) = self.bounds.first() else { return 0 };
        let prefix = first.get(..self.prefix).unwrap_or_default();
        if !key.starts_with(prefix) {
            return if key < prefix { 0 } else { self.bounds.len() };
        }
        let wanted = head(key, self.prefix);
        let low = self.heads.partition_point(|head| *head < wanted);
        let alike = self.heads.get(low..).unwrap_or_default();
        let alike = alike.iter().take_while(|head| **head == wanted).count();
        let alike = self.bounds.get(low..low + alike).unwrap_or_default();
        low + alike.partition_point(|bound| **bound <= *key)
    }

    /// Gives a part of the children to a new node if there are too many: two if the new one is the
    /// last, for then more are likely to follow.
    fn split_if_long(&mut self, new: usize) -> Split {
        let count = self.children.len();
        if count <= CHILDREN_MAX {
            return None;
        }
        let at = if new + 1 >= count { count - 2 } else { count / 2 };
        let children = self.children.split_off(at);
        self.counts.truncate(at);
        let bounds = self.bounds.split_off(at);
        let bound = self.bounds.pop()?;
        self.children.shrink_to(CHILDREN_MAX);
        self.index();
        Some((bound, Arc::new(Node::Inner(Self::of(bounds, children)))))
    }

    /// Joins a small child with a neighbour that has room for it, or drops it if it is empty.
    fn merge_around(&mut self, at: usize, change: &mut Change) {
        let is_empty = |node: &Arc<Node>| matches!(&**node, Node::Leaf(leaf) if leaf.count() == 0);
        if self.children.len() > 1 && self.children.get(at).is_some_and(is_empty) {
            let gone = self.children.remove(at);
            self.counts.remove(at);
            change.bytes -= gone.bytes().cast_signed();
            self.bounds.remove(at.saturating_sub(1));
            return self.index();
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
                if one.joined_bytes(other) > LEAF_BYTES * 3 / 4 {
                    return false;
                }
                Node::Leaf(Leaf::of(&one.owned().chain(other.owned()).collect::<Vec<_>>()))
            }
            (Node::Inner(one), Node::Inner(other)) => {
                if one.children.len() + other.children.len() > CHILDREN_MAX * 3 / 4 {
                    return false;
                }
                let Some(bound) = self.bounds.get(left) else { return false };
                let middle = [bound.clone()];
                let bounds = [&one.bounds, &middle[..], &other.bounds].concat();
                let children = [&*one.children, &*other.children].concat();
                Node::Inner(Self::of(bounds, children))
            }
            _ => return false,
        };
        change.bytes += joined.bytes().cast_signed() - before.cast_signed();
        self.children.remove(left + 1);
        let moved = self.counts.remove(left + 1);
        self.add(left, moved as isize);
        self.bounds.remove(left);
        self.index();
        if let Some(child) = self.children.get_mut(left) {
            *child = Arc::new(joined);
        }
        true
    }
}

/// The first eight bytes behind a prefix, in the order of keys: zeros behind a short one.
fn head(key: &[u8], prefix: usize) -> u64 {
    let rest = key.get(prefix..).unwrap_or_default();
    match rest.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
            u64::from_be_bytes(head)
        }
    }
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
                && let Some((found, cell)) = entries.next()
            {
                let key = KeyParts { prefix: leaf.prefix_bytes(), suffix: found.suffix };
                return Some((key, cell));
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
            assert_eq!(keys.len(), leaf.count(), "entries of a leaf");
            let ends = leaf.entries().map(|(found, _)| found.end);
            let starts = leaf.slots.iter().skip(1).map(|slot| usize::from(slot.start));
            assert!(
                ends.eq(starts.chain((!keys.is_empty()).then_some(leaf.data.len()))),
                "back to back"
            );
            let bodies = leaf.entries().filter(|(found, _)| found.has_body).count();
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
            let heads = inner.bounds.iter().map(|bound| head(bound, inner.prefix));
            assert!(heads.eq(inner.heads.iter().copied()), "heads of bounds");
            let counts = inner.children.iter().map(|child| child.count());
            assert!(counts.eq(inner.counts.iter().copied()), "entries below children");
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

/// Children of an inner node.
const CHILDREN_MAX: usize = 64;

/// Bits of a child's number in a path.
const CHILD_BITS: u32 = CHILDREN_MAX.ilog2();

/// Inner nodes above a leaf: a node above a leaf has some ten children or more on the average, for
/// small neighbours are joined.
const HEIGHT_MAX: u32 = u64::BITS / CHILD_BITS;

/// Inline bytes of a value; a longer one is a body.
pub(crate) const INLINE_BYTES_MAX: usize = 1024;

/// A node with the counts beside it, and the allocator's share of its two allocations.
const NODE_BYTES: usize = size_of::<Node>() + 16 + 16;

#[cfg(test)]
#[path = "packed_tree_test.rs"]
mod tests;

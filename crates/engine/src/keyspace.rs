//! Keys: a name stands for a queue with ready messages (a list) or a small value.
//!
//! A list is no object of its own: it is there while a queue with a name has ready messages. Beside
//! its messages it has only a deadline, which goes with the last of them. A small value is a record
//! of the log and of every snapshot, whole.

mod bits;
pub(crate) mod collections;
pub(crate) mod databases;
pub(crate) mod deadlines;
mod decimal;
pub(crate) mod deleting;
mod editing;
mod inspection;
pub(crate) mod list_lifetime;
pub(crate) mod lists;
mod lookup;
pub(crate) mod naming;
mod observers;
pub(crate) mod recovery;
pub(crate) mod setting;
pub(crate) mod values;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use model::{DependsOn, End, KeyKind, Nanos, QueueName};

use crate::ids::{QueueSlot, SessionSlot};
use crate::store::queue::ListLifetime;

use collections::{Collection, Collections, Waits};
use databases::PerDatabase;
pub(crate) use list_lifetime::snapshot_bytes;
pub(crate) use recovery::KeyCursor;
pub(crate) use setting::DEADLINE_BYTES_MAX;
pub(crate) use values::NamePlace;
use values::Values;

/// The state of keys beside the queues.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    values: Values,
    collections: Collections,
    waits: Waits,
    /// Queues of a name that hold ready messages, but for those that a value hides.
    lists: PerDatabase,
    /// Those that a value hides.
    hidden_lists: PerDatabase,
    /// Lists that have a deadline.
    limited_lists: PerDatabase,
    /// Names of lists with a changed lifetime that the log is to be told.
    unstated: BTreeSet<QueueName>,
    /// Names of lists that have another lifetime by the log than they have, because their messages
    /// did not outlive a crash. To be stated before it matters: before there is such a list again.
    stale: BTreeSet<QueueName>,
    /// Names of lists that have a lifetime.
    limited: BTreeSet<QueueName>,
    /// In recovery: the lifetimes of lists that the log states so far.
    recovered: BTreeMap<QueueName, ListLifetime>,
    observers: Observers,
}

/// The sessions that observe keys.
#[derive(Debug, Default)]
struct Observers {
    by_key: BTreeMap<QueueName, BTreeSet<SessionSlot>>,
    by_session: BTreeMap<SessionSlot, Observing>,
}

/// The keys that a session observes.
#[derive(Debug)]
pub(crate) enum Observing {
    /// None of these keys has changed.
    Keys(BTreeSet<QueueName>),
    /// An observed key has changed, and no other matters any more.
    Stale,
}

impl Keyspace {
    /// All small values, and the names of collections.
    pub(crate) const fn values(&self) -> &Values {
        &self.values
    }

    /// True if commands that wait for members may be served.
    pub(crate) fn may_serve_waits(&self) -> bool {
        self.waits.may_serve()
    }

    /// True if the log is to be told of lists.
    pub(crate) fn has_unstated(&self) -> bool {
        !self.unstated.is_empty()
    }

    /// The next list with a changed lifetime that the log is to be told.
    pub(crate) fn next_unstated(&mut self) -> Option<QueueName> {
        self.unstated.pop_first()
    }

    /// The log is told of a list only before there is one again.
    pub(crate) fn put_off(&mut self, name: QueueName) {
        assert!(!self.unstated.contains(&name), "a list is stated once");
        self.stale.insert(name);
    }

    /// Lists that have a lifetime.
    pub(crate) fn limited_count(&self) -> usize {
        self.limited.len()
    }

    /// True if the log may have to be told of the list of this name.
    pub(crate) fn may_be_stated(&self, name: &QueueName) -> bool {
        self.limited.contains(name) || self.stale.contains(name)
    }

    /// True if the list of this name is among them.
    pub(crate) fn limits(&self, name: &QueueName) -> bool {
        self.limited.contains(name)
    }
}

/// The kind of thing that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    List(QueueSlot),
    /// A small value, or a collection.
    Value(KeyKind),
}

impl Popping {
    pub(crate) const fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Its answer waits for this position too.
    pub(crate) const fn raise(&mut self, floor: DependsOn) {
        self.floor = floor;
    }

    /// The command, and the position that its answer waits for.
    pub(crate) fn into_parts(self) -> (Asked, DependsOn) {
        (self.asked, self.floor)
    }
}

/// How elements are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PopArgs {
    pub(crate) end: End,
    pub(crate) max: u64,
    /// The most bytes to take, unless the first element alone has more.
    pub(crate) bytes_max: usize,
}

/// The target of a moved element.
#[derive(Clone, Debug)]
pub(crate) struct MoveArgs {
    pub(crate) from_end: End,
    pub(crate) to: QueueName,
    pub(crate) to_end: End,
}

/// A small value, or a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    content: Content,
    /// When it goes.
    pub(crate) at: Option<Nanos>,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Arc<[u8]>),
    Collection(Collection),
}

impl Value {
    pub(crate) const fn of_text(bytes: Arc<[u8]>, at: Option<Nanos>) -> Self {
        Self { content: Content::Text(bytes), at }
    }

    pub(crate) const fn of_collection(collection: Collection, at: Option<Nanos>) -> Self {
        Self { content: Content::Collection(collection), at }
    }

    /// Its bytes, unless it is a collection.
    pub(crate) const fn text(&self) -> Option<&Arc<[u8]>> {
        if let Content::Text(bytes) = &self.content { Some(bytes) } else { None }
    }

    pub(crate) const fn collection(&self) -> Option<Collection> {
        if let Content::Collection(collection) = self.content { Some(collection) } else { None }
    }

    /// Bytes of a text.
    pub(crate) fn bytes(&self) -> usize {
        self.text().map_or(0, |text| text.len())
    }
}

/// A command that waits.
#[derive(Debug)]
pub(crate) struct Popping {
    asked: Asked,
    /// A position that its answer waits for, however it is answered.
    floor: DependsOn,
}

/// The command that waits.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Elements, of the list that gets some first.
    Elements(PopArgs),
    /// One element, moved to another list.
    Move(MoveArgs),
}

//! Keys: a name stands for a queue with ready messages (a list) or a small value.
//!
//! A list is no object of its own: it is there while a queue with a name has ready messages. Beside
//! its messages it has only a deadline, which goes with the last of them. A small value is a record
//! of the log and of every snapshot, whole.

pub(crate) mod deadlines;
pub(crate) mod deleting;
pub(crate) mod list_lifetime;
pub(crate) mod lists;
pub(crate) mod naming;
pub(crate) mod recovery;
pub(crate) mod setting;
pub(crate) mod values;

use alloc::collections::{BTreeMap, BTreeSet};

use model::{Durability, Persistence, QueueName};

use crate::context::Context;
use crate::ids::QueueSlot;
use crate::store::MessageStore;
use crate::store::queue::ListLifetime;

pub(crate) use list_lifetime::snapshot_bytes;
pub(crate) use recovery::KeyCursor;
pub(crate) use setting::DEADLINE_BYTES_MAX;
pub(crate) use values::{Value, Values};

/// The state of keys beside the queues.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    pub(crate) values: Values,
    /// Queues of a name that hold ready messages, but for those that a value hides.
    pub(crate) lists: u64,
    /// Names of lists with a changed lifetime that the log is to be told.
    pub(crate) unstated: BTreeSet<QueueName>,
    /// Names of lists that have another lifetime by the log than they have, because their messages
    /// did not outlive a crash. To be stated before it matters: before there is such a list again.
    pub(crate) stale: BTreeSet<QueueName>,
    /// Names of lists that have a lifetime.
    pub(crate) limited: BTreeSet<QueueName>,
    /// In recovery: the lifetimes of lists that the log states so far.
    pub(crate) recovered: BTreeMap<QueueName, ListLifetime>,
}

impl Keyspace {
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
    Value,
}

impl Keyspace {
    /// True if a name is that of a small value, so that it is no list.
    pub(crate) fn is_value(&self, name: &QueueName, store: &MessageStore) -> bool {
        self.values.get(name, store.latest).is_some()
    }

    /// A ready message came into an empty queue of a name.
    pub(crate) fn list_began(&mut self, slot: QueueSlot, store: &MessageStore) {
        let name = &store.queues.at(slot).name;
        self.lists += u64::from(!self.values.holds(name));
        if self.stale.contains(name) {
            self.unstated.insert(name.clone());
        }
    }

    /// The last ready message of a queue of a name has gone, and the list's deadline with it.
    pub(crate) fn list_ended(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        self.lists -= u64::from(!self.values.holds(&queue.name));
        if queue.index.lifetime.at.is_some() {
            let over = queue.index.lifetime.over;
            self.change_lifetime(slot, ListLifetime { at: None, over }, store);
        }
    }
}

impl Context {
    /// The durability of records about keys.
    pub(crate) fn key_level(&self) -> Durability {
        self.policy.durability(Persistence::Persistent)
    }
}

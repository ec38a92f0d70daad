//! Keys: what is found by a name, whether a queue with ready messages (a list) or a small value.
//!
//! A list is not a thing of its own: it is there while a queue with a name has ready messages. What
//! of it outlives the messages is its deadline alone, which goes with the last of them. A small
//! value is a record of the log and of every snapshot, whole.

mod deadlines;
mod deleting;
mod list_lifetime;
mod naming;
mod recovery;
mod renaming;
mod setting;
mod values;

use alloc::collections::{BTreeMap, BTreeSet};

use model::{Durability, KeyCommand, KeyKind, Persistence, QueueName, Reply};

use crate::Effects;
use crate::engine::{Context, Engine, MessageStore, Outcome};
use crate::queue::{ListLifetime, QueueSlot};
use crate::session::SessionSlot;

pub(crate) use list_lifetime::snapshot_bytes;
pub(crate) use recovery::KeyCursor;
pub(crate) use setting::DEADLINE_BYTES_MAX;
pub(crate) use values::{Value, Values};

/// What is known of keys beside the queues.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    pub(crate) values: Values,
    /// Queues of a name that hold ready messages, but for those that a value hides.
    pub(crate) lists: u64,
    /// Names of lists whose lifetime has changed and the log is to be told.
    unstated: BTreeSet<QueueName>,
    /// Names whose lists have another lifetime by the log than they have, because what was in them
    /// did not outlive a crash. To be stated before it matters: before there is such a list again.
    stale: BTreeSet<QueueName>,
    /// Names of lists that have a lifetime.
    limited: BTreeSet<QueueName>,
    /// In recovery: what the log says so far of lists.
    recovered: BTreeMap<QueueName, ListLifetime>,
}

impl Keyspace {
    /// Lists that have a lifetime.
    pub(crate) fn limited_count(&self) -> usize {
        self.limited.len()
    }

    /// Whether the log may have to be told of the list of this name.
    pub(crate) fn may_be_stated(&self, name: &QueueName) -> bool {
        self.limited.contains(name) || self.stale.contains(name)
    }

    /// Whether the list of this name is among them.
    pub(crate) fn limits(&self, name: &QueueName) -> bool {
        self.limited.contains(name)
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    List(QueueSlot),
    Value,
}

impl Engine {
    pub(crate) fn key(
        &mut self,
        _by: SessionSlot,
        command: KeyCommand,
        effects: &mut Effects,
    ) -> Outcome {
        match command {
            KeyCommand::Kind { name } => self.kind_of_key(&name),
            KeyCommand::CountOf { names } => self.count_of_keys(&names),
            KeyCommand::Delete { names } => self.delete_keys(&names, effects),
            KeyCommand::DeleteAll => self.delete_all_keys(effects),
            KeyCommand::Rename { from, to, only_new } => {
                self.rename_key(&from, &to, only_new, effects)
            }
            KeyCommand::SetDeadline { name, deadline, rule } => {
                self.set_deadline(&name, deadline, rule, effects)
            }
            KeyCommand::ClearDeadline { name } => self.clear_deadline(&name, effects),
            KeyCommand::Lifetime { name } => self.lifetime_of_key(&name),
            KeyCommand::Names { after, max, kind } => {
                self.keyspace.names_of_keys(after, max, kind, &mut self.store, &self.log)
            }
            KeyCommand::CountAll => self.keyspace.count_keys(&mut self.store, &self.log),
            KeyCommand::SetValue { name, value, deadline, rule, want_old } => {
                let wish = setting::Wish { value, deadline, rule, want_old };
                self.set_value(&name, wish, effects)
            }
            KeyCommand::Value { name, take } => self.value_of_key(&name, take, effects),
            KeyCommand::ValueEach { names } => self.values_of_keys(names),
        }
    }

    /// What is found by this name.
    pub(crate) fn find_key(&mut self, name: &QueueName) -> Option<Key> {
        if self.keyspace.is_value(name, &self.store) {
            return Some(Key::Value);
        }
        self.find_list(name).map(Key::List)
    }

    /// The queue of this name if it is a list: also behind a value.
    pub(crate) fn find_list(&mut self, name: &QueueName) -> Option<QueueSlot> {
        let slot = self.store.queues.find(name.as_str())?;
        self.end_list_if_over(slot);
        self.store.queues.at(slot).is_list().then_some(slot)
    }

    /// A key whose time is over goes now rather than by time.
    pub(crate) fn notice_end(&mut self, name: &QueueName, effects: &mut Effects) {
        if self.keyspace.values.holds(name) && !self.keyspace.is_value(name, &self.store) {
            self.delete_value(name, effects);
        }
        self.find_list(name);
    }

    fn kind_of_key(&mut self, name: &QueueName) -> Outcome {
        let kind = self.find_key(name).map(|key| match key {
            Key::List(_) => KeyKind::List,
            Key::Value => KeyKind::Value,
        });
        Outcome::reply(self.log.after_all(), Reply::Kind(kind))
    }

    fn count_of_keys(&mut self, names: &[QueueName]) -> Outcome {
        self.store.took_steps(names.len());
        let count = names.iter().filter(|name| self.find_key(name).is_some()).count();
        Outcome::reply(self.log.after_all(), Reply::Count(count as u64))
    }
}

impl Keyspace {
    /// Whether a name is that of a small value, so that it is no list.
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
    /// How durable what is said of keys is.
    pub(crate) fn key_level(&self) -> Durability {
        self.policy.durability(Persistence::Persistent)
    }
}

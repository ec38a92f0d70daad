//! Finds keys: values, and lists that no value hides.

use alloc::vec::Vec;

use model::{Database, KeyKind, QueueName, Refusal, Reply};

use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::{Key, Keyspace};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;
use crate::store::message::State;
use crate::store::queue::{ListLifetime, Role};
use crate::store::timers::Timer;

impl Keyspace {
    /// Checks values, lifetimes and the count of lists. Gives the number of timers beside those of
    /// queues.
    ///
    /// # Panics
    /// When they contradict each other.
    pub(crate) fn check(&self, store: &MessageStore) -> usize {
        self.values.check();
        self.check_collections(store);
        let queues = || store.queues.iter().map(|(_, queue)| queue);
        queues().for_each(|queue| self.check_lifetime(queue));
        let lists = queues().filter(|queue| queue.is_list()).map(|queue| &queue.name);
        let (hidden, shown): (Vec<_>, Vec<_>) = lists.partition(|name| self.values.holds(name));
        let databases = |names: Vec<&QueueName>| {
            names.into_iter().map(|name| Database::of(name.as_str())).collect::<Vec<_>>()
        };
        self.lists.check(databases(shown).into_iter());
        self.hidden_lists.check(databases(hidden).into_iter());
        let limited = queues().filter(|queue| queue.lifetime().at.is_some());
        self.limited_lists.check(limited.map(|queue| Database::of(queue.name.as_str())));
        let limited = queues().filter(|queue| queue.lifetime() != ListLifetime::default());
        assert_eq!(limited.count(), self.limited_count(), "lists with a lifetime");
        let first = self.values.first_moment();
        if let Some(at) = first {
            assert!(store.timers.contains(at, Timer::Values), "values go by time");
        }
        usize::from(first.is_some()) + self.collections.timers()
    }

    /// True if a name is that of a small value, so that it is no list.
    pub(crate) fn is_value(&self, name: &QueueName, store: &MessageStore) -> bool {
        self.values.get(name, store.latest).is_some()
    }

    /// A ready message came into an empty queue of a name.
    pub(crate) fn list_began(&mut self, slot: QueueSlot, store: &MessageStore) {
        let queue = store.queues.at(slot);
        assert!(queue.is_list(), "a list begins with its first element");
        let name = &queue.name;
        let is_hidden = self.values.holds(name);
        let lists = if is_hidden { &mut self.hidden_lists } else { &mut self.lists };
        lists.add_one(name);
        if self.stale.contains(name) {
            self.unstated.insert(name.clone());
        }
    }

    /// The last ready message of a queue of a name has gone, and the list's deadline with it.
    pub(crate) fn list_ended(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        debug_assert!(queue.counts().ready() == 0, "a list ends when it is empty");
        let is_hidden = self.values.holds(&queue.name);
        let lists = if is_hidden { &mut self.hidden_lists } else { &mut self.lists };
        lists.take_one(&queue.name);
        if queue.lifetime().at.is_some() {
            let over = queue.lifetime().over;
            self.change_lifetime(slot, ListLifetime { at: None, over }, store);
        }
    }

    /// The queue of this name if it is a list: also behind a value.
    pub(crate) fn find_list(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Option<QueueSlot> {
        let slot = store.queues.find(name.as_str())?;
        self.end_list_if_over(slot, store);
        store.queues.at(slot).is_list().then_some(slot)
    }

    /// The key found by this name.
    pub(crate) fn find_key(&mut self, name: &QueueName, store: &mut MessageStore) -> Option<Key> {
        if let Some(value) = self.values.get(name, store.latest) {
            return Some(Key::Value(value.kind()));
        }
        self.find_list(name, store).map(Key::List)
    }

    pub(crate) fn kind_of_key(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let kind = self.find_key(name, store).map(|key| match key {
            Key::List(_) => KeyKind::List,
            Key::Value(kind) => kind,
        });
        Outcome::reply(log.after_all(), Reply::Kind(kind))
    }

    pub(crate) fn count_of_keys(
        &mut self,
        names: &[QueueName],
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        store.took_steps(names.len());
        let count = names.iter().filter(|name| self.find_key(name, store).is_some()).count();
        Outcome::reply(log.after_all(), Reply::Count(count as u64))
    }

    /// The queue of that name for a command that takes or looks at its elements. The elements of a
    /// temporary queue are for the session that made it.
    pub(crate) fn list_of(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Result<Option<QueueSlot>, Refusal> {
        self.check_is_list(name, store)?;
        let Some(slot) = store.queues.find(name.as_str()) else { return Ok(None) };
        self.end_list_if_over(slot, store);
        match store.queues.at(slot).role {
            Role::Temporary(owner) if owner != by => Err(Refusal::OfAnotherSession),
            _ => Ok(Some(slot)),
        }
    }

    /// How many elements there are.
    pub(crate) fn elements_count(&mut self, slot: QueueSlot, store: &mut MessageStore) -> u64 {
        self.end_list_if_over(slot, store);
        let queue = store.queues.at(slot);
        let ready = queue.counts().ready();
        if !queue.is_expiring(store.latest) {
            return ready;
        }
        let over = queue.expiring_by(store.latest);
        let is_ready =
            |id| store.message(id).state() == State::Ready && !store.is_expired_member(id);
        let ready_over = over.clone().filter(|id| is_ready(*id));
        let (looked, ready_over) = (over.count(), ready_over.count());
        store.took_steps(looked);
        ready - ready_over as u64
    }

    pub(crate) fn length(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Result<Outcome, Refusal> {
        let count = match self.list_of(by, name, store)? {
            Some(slot) => self.elements_count(slot, store),
            None => 0,
        };
        Ok(log.counted(count))
    }
}

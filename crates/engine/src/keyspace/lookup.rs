//! Finds keys: values, and lists that no value hides.

use model::QueueName;

use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::store::MessageStore;
use crate::store::queue::ListLifetime;
use crate::store::timers::Timer;

impl Keyspace {
    /// Checks values, lifetimes and the count of lists. Gives the number of timers beside those of
    /// queues.
    ///
    /// # Panics
    /// When they contradict each other.
    pub(crate) fn check(&self, store: &MessageStore) -> usize {
        self.values.check();
        let queues = || store.queues.iter().map(|(_, queue)| queue);
        queues().for_each(|queue| self.check_lifetime(queue));
        let shown = queues().filter(|queue| queue.is_list() && !self.values.holds(&queue.name));
        assert_eq!(shown.count() as u64, self.lists, "lists that no value hides");
        let limited = queues().filter(|queue| queue.lifetime() != ListLifetime::default());
        assert_eq!(limited.count(), self.limited_count(), "lists with a lifetime");
        let first = self.values.first_deadline();
        if let Some((at, _)) = first {
            assert!(store.timers.contains(*at, Timer::Values), "values go by time");
        }
        usize::from(first.is_some())
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
        self.lists += u64::from(!self.values.holds(name));
        if self.stale.contains(name) {
            self.unstated.insert(name.clone());
        }
    }

    /// The last ready message of a queue of a name has gone, and the list's deadline with it.
    pub(crate) fn list_ended(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let queue = store.queues.at(slot);
        debug_assert!(queue.counts().ready() == 0, "a list ends when it is empty");
        if !self.values.holds(&queue.name) {
            assert!(self.lists > 0, "a list was counted when it began");
            self.lists -= 1;
        }
        if queue.lifetime().at.is_some() {
            let over = queue.lifetime().over;
            self.change_lifetime(slot, ListLifetime { at: None, over }, store);
        }
    }
}

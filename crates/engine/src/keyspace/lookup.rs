//! Finds keys: values, and lists that no value hides.

use model::QueueName;

use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::store::MessageStore;
use crate::store::queue::ListLifetime;

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
        if queue.lifetime().at.is_some() {
            let over = queue.lifetime().over;
            self.change_lifetime(slot, ListLifetime { at: None, over }, store);
        }
    }
}

//! Deleting keys: values, and the ready messages of queues.

use alloc::vec::Vec;

use model::{QueueName, Reply, limits};

use super::Key;
use crate::Effects;
use crate::engine::{Engine, MessageStore, Outcome};
use crate::log::Log;
use crate::queue::QueueSlot;

/// What one command deletes.
#[derive(Debug)]
struct Deletion {
    /// How many messages and values it may still delete.
    left: usize,
    /// Keys that are gone.
    keys: u64,
    /// Queues of which it deleted something.
    lists: Vec<QueueSlot>,
}

impl Engine {
    pub(crate) fn delete_keys(&mut self, names: &[QueueName], effects: &mut Effects) -> Outcome {
        self.store.took_steps(names.len());
        let mut deletion = Deletion::begin();
        for name in names {
            let Some(key) = self.find_key(name) else { continue };
            if !self.delete_key(name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys), deletion);
            }
        }
        self.log.deleted(Reply::Count(deletion.keys), deletion)
    }

    pub(crate) fn delete_all_keys(&mut self, effects: &mut Effects) -> Outcome {
        self.store.took_steps(self.store.queues.count());
        let mut deletion = Deletion::begin();
        // One more than it may delete: then there is more.
        let at_once = deletion.left + 1;
        let values = self.keyspace.values.iter_after(None).take(at_once);
        let values: Vec<_> = values.map(|(name, _)| (name.clone(), Key::Value)).collect();
        // Those that are over are no keys any more, and go by themselves.
        let is_over = |slot| self.store.queues.at(slot).is_ended(self.store.latest);
        let lists = self.store.queues.lists().filter(|(slot, _)| !is_over(*slot)).take(at_once);
        let lists: Vec<_> = lists.map(|(slot, name)| (name.clone(), Key::List(slot))).collect();
        for (name, key) in values.into_iter().chain(lists) {
            if !self.delete_key(&name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys), deletion);
            }
        }
        self.log.deleted(Reply::Done, deletion)
    }

    /// Deletes all ready messages of a queue, which are known to fit into the frame.
    pub(crate) fn delete_list(&mut self, slot: QueueSlot, effects: &mut Effects) {
        while self.delete_first(slot, effects) {}
        self.store.end_drains_later(slot);
    }

    /// False where there is more of it than one command may delete.
    fn delete_key(
        &mut self,
        name: &QueueName,
        key: Key,
        deletion: &mut Deletion,
        effects: &mut Effects,
    ) -> bool {
        match key {
            Key::Value => {
                if !deletion.takes_one() || !self.log.takes_change() {
                    return false;
                }
                self.delete_value(name, effects);
            }
            Key::List(slot) => {
                // Who drains it is to hear that nothing is left.
                deletion.lists.push(slot);
                while self.store.queues.get(slot).is_some_and(|queue| queue.index.counts.ready > 0)
                {
                    if !deletion.takes_one() || !self.log.takes_change() {
                        return false;
                    }
                    self.delete_first(slot, effects);
                }
            }
        }
        deletion.keys += 1;
        true
    }

    /// Deletes the first ready message; false where there is none. The queue may go with it.
    fn delete_first(&mut self, slot: QueueSlot, effects: &mut Effects) -> bool {
        let first =
            self.store.queues.get(slot).and_then(|queue| queue.delivery.dispatch.ready().first());
        let Some((_, order)) = first else { return false };
        let id = self.store.message_of(order);
        self.leave(id);
        self.finish(id, effects);
        true
    }
}

impl MessageStore {
    /// How many ready messages there are.
    pub(crate) fn ready_count(&self, slot: QueueSlot) -> usize {
        usize::try_from(self.queues.at(slot).index.counts.ready).unwrap_or(usize::MAX)
    }
}

impl Log {
    fn deleted(&self, reply: Reply, deletion: Deletion) -> Outcome {
        Outcome::reply(self.after_all(), reply).waking_all(deletion.lists)
    }
}

impl Deletion {
    const fn begin() -> Self {
        Self { left: limits::FRAME_RECORDS_MAX, keys: 0, lists: Vec::new() }
    }

    fn takes_one(&mut self) -> bool {
        let may = self.left > 0;
        self.left -= usize::from(may);
        may
    }
}

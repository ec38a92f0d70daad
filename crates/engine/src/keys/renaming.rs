//! Giving a key another name.

use model::{QueueName, Refusal, Reply, limits};
use records::CHANGED_BYTES_MAX;

use super::Key;
use super::setting::{DEADLINE_BYTES_MAX, KEY_RECORDS_MAX, ready_max};
use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::log::DELETED_BYTES_MAX;
use crate::move_messages::RELOCATION_BYTES_MAX;
use crate::queue::{ListLifetime, QueueSlot, Role};

impl Engine {
    pub(crate) fn rename_key(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        only_new: bool,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(key) = self.find_key(from) else { return self.log.not_found() };
        if only_new && self.find_key(to).is_some() {
            return Outcome::reply(self.log.after_all(), Reply::Count(0));
        }
        if from == to {
            return Outcome::reply(self.log.after_all(), Reply::Done);
        }
        let renamed = match key {
            Key::Value => self.rename_value(from, to, effects).map(|()| None),
            Key::List(slot) => self.rename_list(slot, from, to, effects).map(Some),
        };
        let done = || Outcome::reply(self.log.after_all(), Reply::Done);
        match renamed {
            Ok(Some(slot)) => done().waking(slot),
            Ok(None) => done(),
            Err(refusal) => self.log.refuse(refusal),
        }
    }

    fn rename_value(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let value = self.keyspace.values.get(from, self.store.latest).cloned();
        let value = value.expect("invariant: it was just found");
        let list = match self.find_key(to) {
            Some(Key::List(slot)) => Some(slot),
            Some(Key::Value) | None => None,
        };
        self.replace_key(to, list, value, effects)?;
        self.delete_value(from, effects);
        Ok(())
    }

    /// Moves the ready messages of one queue to another, in their order, and the list's deadline.
    /// All is one frame.
    fn rename_list(
        &mut self,
        from_slot: QueueSlot,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<QueueSlot, Refusal> {
        let there = self.find_list(to);
        let deleted = there.map_or(0, |slot| self.store.ready_count(slot));
        let moved = self.store.ready_count(from_slot);
        if moved.saturating_add(deleted) > ready_max(KEY_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        let record_bytes = CHANGED_BYTES_MAX - limits::QUEUE_NAME_BYTES_MAX + to.as_str().len();
        let bytes = moved * record_bytes + deleted * DELETED_BYTES_MAX + 2 * DEADLINE_BYTES_MAX;
        if bytes > self.log.frame_bytes_max {
            return Err(Refusal::ListTooLong);
        }
        let room = moved as u64 * RELOCATION_BYTES_MAX;
        if !self.log.surely_takes(bytes) || room > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        let to_slot = self.directory.find_or_create(to.clone(), &mut self.store)?;
        if self.store.queues.at(to_slot).role != Role::Named {
            return Err(Refusal::NoSuchDestination);
        }
        // Or else it might go when it is empty.
        self.store.queues.at_mut(to_slot).usage.uncommitted += 1;
        self.delete_value(to, effects);
        self.delete_list(to_slot, effects);
        let at = self.store.queues.at(from_slot).index.lifetime.at;
        self.move_list(from_slot, to_slot, effects);
        self.store.queues.at_mut(to_slot).usage.uncommitted -= 1;
        if at.is_some() {
            let over = self.store.queues.at(to_slot).index.lifetime.over;
            self.keyspace.change_lifetime(to_slot, ListLifetime { at, over }, &mut self.store);
            self.state_lifetime(from, effects);
            self.state_lifetime(to, effects);
        }
        Ok(to_slot)
    }

    fn move_list(&mut self, from: QueueSlot, to: QueueSlot, effects: &mut Effects) {
        while let Some((_, order)) =
            self.store.queues.get(from).and_then(|queue| queue.delivery.dispatch.ready().first())
        {
            let id = self.store.message_of(order);
            self.leave(id);
            let order = self.store.last_place();
            self.relocate(id, to, order, effects);
        }
        self.store.end_drains_later(from);
    }
}

//! When keys are to go, as sessions say it.

use model::{Durability, Lifetime, Nanos, QueueName, Refusal, Reply};
use records::{DeadlineView, RecordView};

use super::Key;
use crate::Effects;
use crate::ids::QueueSlot;
use crate::keyspace::{Keyspace, Value};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;
use crate::store::queue::ListLifetime;

impl Keyspace {
    /// When a key goes that is there.
    pub(crate) fn deadline_of(
        &self,
        name: &QueueName,
        key: Key,
        store: &MessageStore,
    ) -> Option<Nanos> {
        match key {
            Key::List(slot) => store.queues.at(slot).lifetime().at,
            Key::Value(_) => self.values.get(name, store.latest)?.at,
        }
    }

    pub(crate) fn lifetime_of_key(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let Some(key) = self.find_key(name, store) else { return log.not_found() };
        let at = self.deadline_of(name, key, store);
        let left = at.map(|at| at.since(store.latest));
        Outcome::reply(log.after_all(), Reply::Lifetime(Lifetime { at, left }))
    }

    pub(crate) fn give_value_deadline(
        &mut self,
        name: &QueueName,
        at: Option<Nanos>,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: true, at, over: None },
            effects,
        )?;
        let value = self.values().get(name, store.latest);
        let value = value.expect("invariant: it was just found").to_value();
        self.insert_value(name, Value { at, ..value }, store);
        Ok(())
    }

    pub(crate) fn give_list_deadline(
        &mut self,
        slot: QueueSlot,
        name: &QueueName,
        at: Option<Nanos>,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let over = store.queues.at(slot).lifetime().over;
        log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: false, at, over },
            effects,
        )?;
        self.change_lifetime(slot, ListLifetime { at, over }, store);
        self.lifetime_is_stated(name);
        self.touched(name, store);
        Ok(())
    }
}

impl FrameWriter {
    /// The record of a deadline, if there is room for it; one that is cleared needs none.
    pub(crate) fn store_deadline(
        &mut self,
        view: DeadlineView<'_>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let level = self.key_level();
        if level == Durability::None {
            return Ok(());
        }
        let record = RecordView::KeyDeadline(view);
        if view.at.is_none() {
            self.append(&record, level, effects);
            return Ok(());
        }
        let stored = self.store(&record, level, effects);
        stored.map(|_| ()).map_err(|_| Refusal::StoreFull)
    }
}

//! When keys are to go, as sessions say it.

use super::Key;
use model::{Durability, Nanos, QueueName, Refusal};
use records::{DeadlineView, RecordView};

use crate::Effects;
use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::store::MessageStore;

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
            Key::Value => self.values.get(name, store.latest)?.at,
        }
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

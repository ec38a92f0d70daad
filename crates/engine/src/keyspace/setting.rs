//! Setting, reading and deleting small values.

use alloc::sync::Arc;

use super::Value;
use model::{
    Deadline, DependsOn, Durability, Nanos, QueueName, Refusal, SetRule, ValueDeadline, limits,
};
use records::{RecordView, ValueView};

use crate::Effects;
use crate::log::FrameWriter;
use crate::store::MessageStore;

/// The value to set, and the condition for it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) value: Arc<[u8]>,
    pub(crate) deadline: ValueDeadline,
    pub(crate) rule: SetRule,
    pub(crate) want_old: bool,
}

impl MessageStore {
    /// The moment that is meant.
    pub(crate) fn moment_of(&self, deadline: Deadline) -> Nanos {
        match deadline {
            Deadline::After(span) => self.latest + span,
            Deadline::At(at) => at,
        }
    }
}

impl FrameWriter {
    /// The record of a new value, if there is room for it.
    pub(crate) fn store_value(
        &mut self,
        name: &QueueName,
        value: &Value,
        effects: &mut Effects,
    ) -> Result<DependsOn, Refusal> {
        let level = self.key_level();
        if level == Durability::None {
            return Ok(DependsOn::NOTHING);
        }
        let view = ValueView { name: name.as_str(), bytes: &value.bytes, at: value.at };
        let placed = self.store(&RecordView::ValueSet(view), level, effects);
        let placed = placed.map_err(|_| Refusal::StoreFull)?;
        Ok(DependsOn::new(placed.lsn, level))
    }
}

/// Messages that one command may delete or move beside so many other records.
pub(crate) const fn ready_max(others: usize) -> usize {
    limits::FRAME_RECORDS_MAX - others
}

/// Records of a command about a key beside those of messages: two values, two deadlines.
pub(crate) const KEY_RECORDS_MAX: usize = 4;

/// A KeyDeadline record.
pub(crate) const DEADLINE_BYTES_MAX: usize = 32 + limits::QUEUE_NAME_BYTES_MAX;

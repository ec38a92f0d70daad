//! Batches: commands that take effect together, if what was observed is as it was.

use alloc::vec::Vec;

use model::{Command, QueueName, Refusal};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn batch(
        &mut self,
        _by: SessionSlot,
        _commands: Vec<Command>,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }

    pub(crate) fn observe(&mut self, _by: SessionSlot, _names: Vec<QueueName>) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }

    pub(crate) fn unobserve(&mut self, _by: SessionSlot) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }

    /// Whoever observes this key is to know that it has changed.
    pub(crate) fn touched(&mut self, _name: &QueueName) {}
}

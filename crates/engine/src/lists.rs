//! Queues as lists.

use model::{ListCommand, Refusal};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn list(
        &mut self,
        _by: SessionSlot,
        _command: ListCommand,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }
}

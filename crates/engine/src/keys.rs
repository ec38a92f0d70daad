//! Keys: lists and small values by name.

use model::{KeyCommand, Refusal};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn key(
        &mut self,
        _by: SessionSlot,
        _command: KeyCommand,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }
}

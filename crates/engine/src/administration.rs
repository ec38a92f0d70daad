//! What operators ask.

use model::{AdminCommand, Refusal};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn administer(
        &mut self,
        _by: SessionSlot,
        _command: AdminCommand,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }
}

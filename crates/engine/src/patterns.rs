//! Consumers of all topics whose names match a pattern.

use model::{LinkId, NewMessage, QueueName, Refusal};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn publish_to(
        &mut self,
        _by: SessionSlot,
        _topic: &QueueName,
        _message: &NewMessage,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }

    pub(crate) fn subscribe_pattern(
        &mut self,
        _by: SessionSlot,
        _link: LinkId,
        _pattern: QueueName,
        _effects: &mut Effects,
    ) -> Outcome {
        Outcome::refused(Refusal::NotInBatch)
    }
}

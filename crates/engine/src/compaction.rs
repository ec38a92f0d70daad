//! Storing anew what lives of an old frame, so that its place in the log can be used again.

use model::{Lsn, MessageId};

use crate::codec::Records;
use crate::engine::Engine;
use crate::record::{RecordError, RecordView};
use crate::{Effects, Freed};

impl Engine {
    /// For each Message record of the frame at `lsn` whose message lives there: states the message
    /// in a new frame as it stands now and frees the old place. One frame for all, or none.
    ///
    /// Nothing waits for the new frame: until it is durable the old one must stay.
    ///
    /// # Errors
    /// When the frame is damaged; what came before the damage is stated anew.
    pub fn restate(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        effects: &mut Effects,
    ) -> Result<(), RecordError> {
        let mut result = Ok(());
        for record in Records::new(payload) {
            match record {
                Ok((RecordView::Message { envelope, .. }, _)) => {
                    self.restate_message(envelope.message, lsn, effects);
                }
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        self.log.seal(effects);
        result
    }

    fn restate_message(&mut self, id: MessageId, lsn: Lsn, effects: &mut Effects) {
        let Some(message) = self.messages.get_mut(id.0) else { return };
        if !message.is_journalled() || message.location != lsn {
            return;
        }
        let place = self.queues.at(message.queue).place();
        let record =
            RecordView::Message { envelope: message.envelope(id, place), body: &message.body };
        let placed = self.log.append(&record, message.durability, effects);
        effects.freed.push(Freed { lsn, bytes: message.record_bytes.into() });
        (message.location, message.record_bytes) = (placed.lsn, placed.bytes);
    }
}

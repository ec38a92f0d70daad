//! Storing anew what lives of an old frame, so that its place in the log can be used again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Durability, Lsn, MessageId};

use crate::Effects;
use crate::codec::Records;
use crate::copies::{Copies, CopiesDraft};
use crate::engine::Engine;
use crate::log::Placed;
use crate::record::{Envelope, RecordError, RecordView};

impl Engine {
    /// For each Message or Shared record of the frame at `lsn` of which something lives there:
    /// states that in a new frame as it stands now and frees the old place. One frame for all, or
    /// none; several where much that could change has been added to many.
    ///
    /// Nothing waits for the new frames: until they are durable the old one must stay.
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
                Ok((RecordView::Message { envelope, .. }, bytes)) => {
                    self.log.make_way(bytes + GROWTH_BYTES_MAX, effects);
                    self.restate_message(envelope.message, lsn, effects);
                }
                Ok((RecordView::Shared { copies, .. }, bytes)) => {
                    let growth = GROWTH_BYTES_MAX * copies.count() as usize;
                    self.log.make_way(bytes + growth, effects);
                    self.restate_copies(copies, lsn, effects);
                }
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        self.log.seal(effects);
        result
    }

    fn restate_message(&mut self, id: MessageId, lsn: Lsn, effects: &mut Effects) {
        if !self.must_restate(id, lsn, effects) {
            return;
        }
        // Not `living`: the log is borrowed beside it.
        let Some(message) = self.messages.get(id.0) else { return };
        let envelope = Envelope { group: 0, ..self.queues.envelope_of(id, message) };
        let record = RecordView::Message { envelope, body: &message.body };
        let placed = self.log.append(&record, message.durability, effects);
        self.move_records(&[id], 0, placed, effects);
    }

    /// What lives of a Shared record: again with one body, and as a group that is named by the
    /// first that lives.
    fn restate_copies(&mut self, copies: Copies<'_>, lsn: Lsn, effects: &mut Effects) {
        let ids = copies.iter().map(|copy| copy.message);
        let living: Vec<_> = ids.filter(|id| self.must_restate(*id, lsn, effects)).collect();
        let [first, _, ..] = living[..] else {
            return living.iter().for_each(|id| self.restate_message(*id, lsn, effects));
        };
        let mut draft = CopiesDraft::default();
        let mut level = Durability::None;
        for &id in &living {
            let message = self.living(id);
            draft.push(&self.queues.envelope_of(id, message));
            level = level.max(message.durability);
        }
        let body = Arc::clone(&self.living(first).body);
        let record = RecordView::Shared { copies: draft.copies(), body: &body };
        let placed = self.log.append(&record, level, effects);
        self.move_records(&living, first.0, placed, effects);
    }

    /// Whether the frame is where the message's record is. One that is about to be forgotten lets
    /// go of it instead.
    fn must_restate(&mut self, id: MessageId, lsn: Lsn, effects: &mut Effects) -> bool {
        let Some(message) = self.messages.get(id.0) else { return false };
        if !message.is_journalled() || message.location != lsn {
            return false;
        }
        if self.queues.at(message.queue).is_leaving() {
            self.forget_record(id, effects);
            return false;
        }
        true
    }

    /// These messages are in another record now, which stores them as this group.
    fn move_records(&mut self, ids: &[MessageId], group: u64, to: Placed, effects: &mut Effects) {
        for id in ids {
            let Some(message) = self.messages.get(id.0) else { continue };
            self.groups.release(message, effects);
        }
        for id in ids {
            self.living_mut(*id).set_placed(group, to);
            if group != 0 {
                self.groups.join(group, to);
            }
        }
    }
}

/// What a record of a message gains at most beyond what it had when it was stored: counters, and
/// two names of queues.
const GROWTH_BYTES_MAX: usize = 1024;

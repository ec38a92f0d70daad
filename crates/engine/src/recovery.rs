//! Making an engine again from a snapshot and the frames of the log.
//!
//! The order is: [`Engine::load`] each chunk of the snapshot, [`Engine::replay`] each frame after
//! the snapshot's begin, ascending, [`Engine::restore_body`] the frames from before it, in any
//! order, then [`Engine::finish_recovery`]. Nothing else may be called in between. Every error
//! means that the log and the snapshot do not fit together or are damaged: the engine is then good
//! for nothing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Lsn, MessageId};

use crate::codec::{Records, queue_name};
use crate::engine::{Engine, Recovery};
use crate::log::Placed;
use crate::message::{Message, State};
use crate::queue::QueueSlot;
use crate::record::{Envelope, Place, RecordError, RecordView, Standing, StoredState};

impl Engine {
    /// Takes in a chunk of a snapshot.
    ///
    /// # Errors
    /// When the chunk is damaged or holds a message that is there already.
    pub fn load(&mut self, chunk: &[u8]) -> Result<(), RecordError> {
        for record in Records::new(chunk) {
            match record?.0 {
                RecordView::Sequence { next_message, next_buried, latest } => {
                    self.next.message = self.next.message.max(next_message);
                    self.next.buried = self.next.buried.max(next_buried);
                    self.latest = self.latest.max(latest);
                }
                RecordView::Located { envelope, location, record_bytes } => {
                    if self.messages.get(envelope.message.0).is_some() {
                        return Err(RecordError::DuplicateMessage(envelope.message));
                    }
                    let placed = Placed { lsn: location, bytes: record_bytes };
                    self.recover(&envelope, placed, None)?;
                }
                other => return Err(RecordError::Misplaced(other.kind())),
            }
        }
        Ok(())
    }

    /// Takes in a frame from after the snapshot's begin. Between the begin and the end of the
    /// snapshot frames are `fuzzy`: changes of messages that the snapshot found gone are ignored.
    /// Everywhere else they are errors.
    ///
    /// # Errors
    /// When the frame is damaged, not after the one before it, or changes an unknown message.
    pub fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), RecordError> {
        if lsn <= self.recovery.replayed {
            return Err(RecordError::OutOfOrder(lsn));
        }
        self.recovery.replayed = lsn;
        for record in Records::new(payload) {
            let (record, size) = record?;
            let result = match record {
                RecordView::Message { envelope, body } => {
                    let bytes = u32::try_from(size).map_err(|_| RecordError::Invalid("body"))?;
                    self.recover(&envelope, Placed { lsn, bytes }, Some(body))
                }
                RecordView::Changed { message, standing, moved } => {
                    self.replay_change(message, &standing, moved)
                }
                RecordView::Deleted { message } => self.replay_deletion(message),
                other => Err(RecordError::Misplaced(other.kind())),
            };
            match result {
                Err(RecordError::UnknownMessage(_)) if fuzzy => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Takes the bodies of a frame from before the snapshot: of those messages whose location it
    /// is. Everything else in it is ignored.
    ///
    /// # Errors
    /// When the frame is damaged, or such a record is not the one that the snapshot names.
    pub fn restore_body(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        for record in Records::new(payload) {
            let (RecordView::Message { envelope, body }, size) = record? else { continue };
            let Some(message) = self.messages.get_mut(envelope.message.0) else { continue };
            if message.location != lsn || !message.body_missing {
                continue;
            }
            if size as u64 != u64::from(message.record_bytes) {
                return Err(RecordError::WrongBody(envelope.message));
            }
            message.body = Arc::from(body);
            message.body_missing = false;
            self.recovery.bodies_missing -= 1;
        }
        Ok(())
    }

    /// Ends recovery; `last` is the position of the last frame in the log.
    ///
    /// # Errors
    /// When a message has no body, or a frame after `last` was replayed.
    pub fn finish_recovery(&mut self, last: Lsn) -> Result<(), RecordError> {
        if self.recovery.bodies_missing > 0 {
            let missing = self.messages.iter_from(0).find(|(_, message)| message.body_missing);
            let (number, _) = missing.expect("invariant: missing bodies are counted");
            return Err(RecordError::MissingBody(MessageId(number)));
        }
        if last < self.recovery.replayed {
            return Err(RecordError::OutOfOrder(last));
        }
        let idle: Vec<_> = self.queues.iter().map(|(slot, _)| slot).collect();
        for slot in idle {
            self.remove_if_idle(slot);
        }
        self.log.last = last;
        self.recovery = Recovery::default();
        Ok(())
    }

    /// Location and record size, in bytes, of each journalled message.
    pub fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        let journalled = self.messages.iter_from(0).filter(|(_, message)| message.is_journalled());
        journalled.map(|(_, message)| (message.location, message.record_bytes.into()))
    }

    /// Takes in a message, or anew one that is known: compaction states messages again.
    fn recover(
        &mut self,
        envelope: &Envelope<'_>,
        placed: Placed,
        body: Option<&[u8]>,
    ) -> Result<(), RecordError> {
        let id = envelope.message;
        if self.messages.get(id.0).is_some() {
            self.forget(id);
        }
        let Place::Queue(queue) = envelope.place else {
            return Err(RecordError::Invalid("subscription"));
        };
        let slot = self.recovered_queue(queue)?;
        self.check_places(id, slot, &envelope.standing)?;
        let mut message = Message::new(envelope, slot, Arc::from(body.unwrap_or_default()));
        (message.location, message.record_bytes) = (placed.lsn, placed.bytes);
        message.body_missing = body.is_none();
        self.recovery.bodies_missing += u64::from(message.body_missing);
        self.latest = self.latest.max(envelope.created);
        self.picture_changed(&message, true);
        self.messages.insert(id.0, Box::new(message));
        self.settle_recovered(id, &envelope.standing);
        Ok(())
    }

    fn recovered_queue(&mut self, name: &str) -> Result<QueueSlot, RecordError> {
        if let Some(slot) = self.queues.find(name) {
            return Ok(slot);
        }
        let name = queue_name(name)?;
        let policy = self.queue_policies.of(&name);
        Ok(self.queues.create(name, policy))
    }

    fn replay_change(
        &mut self,
        id: MessageId,
        standing: &Standing<'_>,
        moved: Option<&str>,
    ) -> Result<(), RecordError> {
        let Some(message) = self.messages.get(id.0) else {
            return Err(RecordError::UnknownMessage(id));
        };
        let before = message.queue;
        let slot = moved.map_or(Ok(before), |queue| self.recovered_queue(queue))?;
        self.leave(id);
        self.reorder(id, id.0);
        self.check_places(id, slot, standing)?;
        self.move_to_queue(id, slot);
        self.living_mut(id).assume(id, standing);
        self.settle_recovered(id, standing);
        Ok(())
    }

    fn replay_deletion(&mut self, id: MessageId) -> Result<(), RecordError> {
        if self.messages.get(id.0).is_none() {
            return Err(RecordError::UnknownMessage(id));
        }
        self.forget(id);
        Ok(())
    }

    fn forget(&mut self, id: MessageId) {
        self.leave(id);
        let message = self.take(id);
        self.recovery.bodies_missing -= u64::from(message.body_missing);
    }

    /// Enters a message into its indexes and moves the numbers past those it uses.
    fn settle_recovered(&mut self, id: MessageId, standing: &Standing<'_>) {
        if standing.order != id.0 {
            self.reordered.insert(standing.order, id);
        }
        self.next.message = self.next.message.max(id.0.max(standing.order) + 1);
        let state = match standing.state {
            StoredState::Ready => State::Ready,
            StoredState::Delayed { until } => State::Delayed { until },
            StoredState::Buried { order } => {
                self.next.buried = self.next.buried.max(order + 1);
                State::Buried { order }
            }
        };
        self.enter(id, state);
    }

    /// A damaged record must not take a place that another message has.
    fn check_places(
        &self,
        id: MessageId,
        slot: QueueSlot,
        standing: &Standing<'_>,
    ) -> Result<(), RecordError> {
        let order = standing.order;
        let of_another = order != id.0 && self.messages.get(order).is_some();
        if of_another || self.reordered.get(order).is_some() {
            return Err(RecordError::DuplicateOrder(order));
        }
        match standing.state {
            StoredState::Buried { order } if self.queues.at(slot).buried.contains_key(&order) => {
                Err(RecordError::DuplicateOrder(order))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "recovery_test.rs"]
mod tests;

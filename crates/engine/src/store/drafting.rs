//! Drafts: records of new messages that are not in their queues yet.
//!
//! A message is stored in two steps. First its records go into the open frame and it is *drafted*;
//! then it is *admitted* to its queue. Between the two all can be taken back, which is how a
//! transaction that finds no room leaves nothing behind.

use alloc::boxed::Box;
use alloc::sync::Arc;

use model::{Durability, LinkId, MessageId, Nanos, NewMessage};
use records::{
    MessageCounters, Place, RecordView, Standing, StoredEnvelope, StoredState, place_of,
};

use crate::Effects;
use crate::bodies::Stored;
use crate::directory::Target;
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::{FrameWriter, NoRoom};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::message::Message;

/// A message that is in the open frame, if it is journalled, and not yet in its queue.
pub(crate) type Drafted = (MessageId, Box<Message>);

/// The place of a message among those of its priority, and the room behind its record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placement {
    /// A certain place; `None`: behind all.
    pub(crate) order: Option<i64>,
    /// Room that is left for another record.
    pub(crate) beside_bytes: usize,
}

impl Sessions {
    /// The queue of a producer; `None` if its target is a topic.
    pub(crate) fn producer_queue(&self, by: SessionSlot, link: LinkId) -> Option<QueueSlot> {
        match self.at(by).producers().get(&link)? {
            Target::Queue(slot) => Some(*slot),
            Target::Topic(_) => None,
        }
    }
}

impl MessageStore {
    /// A message of one queue, with its record.
    pub(crate) fn draft_alone(
        &mut self,
        slot: QueueSlot,
        new: &NewMessage,
        spot: Placement,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<Drafted, NoRoom> {
        let queue = self.queues.at(slot);
        let asked = log.durability(new.persistence);
        let level = if queue.is_memory_only() { Durability::None } else { asked };
        let id = MessageId(self.next.message);
        let mut envelope =
            StoredEnvelope { place: queue.place(), ..self.envelope_of_new(id, level, new) };
        envelope.standing.order = spot.order.unwrap_or(envelope.standing.order);
        if envelope.sender != 0 && queue.subscription().is_some() {
            // It is bounded by the rules of its topic, not by the quotas of a sender.
            envelope.sender = 0;
        }
        let mut message = Message::new(&envelope, slot, Stored::Here(Arc::clone(&new.body)));
        message.set_message_group(new.group);
        if level != Durability::None {
            let record = RecordView::Message { envelope, body: &new.body };
            message.set_stored(0, log.store_beside(&record, spot.beside_bytes, level, effects)?);
        }
        let sender = envelope.sender;
        message.set_account(self.queues.accounts_mut().open(sender));
        self.next.message += 1;
        Ok((id, Box::new(message)))
    }

    /// A new message as records describe it, but for its place.
    pub(crate) fn envelope_of_new(
        &self,
        id: MessageId,
        durability: Durability,
        new: &NewMessage,
    ) -> StoredEnvelope<'static> {
        StoredEnvelope {
            message: id,
            place: Place::Queue(""),
            durability,
            created: self.latest,
            lease: new.lease,
            format: new.format,
            group: 0,
            sender: self.queues.accounts().acting(),
            standing: Standing {
                priority: new.priority,
                delay: new.delay,
                state: if new.delay == Nanos::ZERO {
                    StoredState::Ready
                } else {
                    StoredState::Delayed { until: self.latest + new.delay }
                },
                order: place_of(id),
                counters: MessageCounters::default(),
                expires: new.expires,
                dead: None,
            },
        }
    }
}

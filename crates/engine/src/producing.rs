//! Producers: opening one, and storing messages.

use alloc::boxed::Box;

use model::{
    After, Destination, Durability, LinkId, MessageId, Nanos, NewMessage, QueueName, Refusal,
    Reply, limits,
};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::log::Placed;
use crate::message::{Message, State};
use crate::queue::QueueSlot;
use crate::record::{Counters, Envelope, RecordView, Standing, StoredState};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn open_producer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        to: Destination,
    ) -> Outcome {
        let Destination::Queue(name) = to else {
            return Outcome::refused(Refusal::NoSuchLink);
        };
        let Some(slot) = self.find_or_create(name) else {
            return Outcome::refused(Refusal::TooManyQueues);
        };
        self.queues.at_mut(slot).producers += 1;
        if let Some(before) = self.sessions.at_mut(by).producers.insert(link, slot) {
            self.close_producer(before);
            self.remove_if_idle(before);
        }
        Outcome::reply(After::NOTHING, Reply::Done)
    }

    pub(crate) fn put(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        new: NewMessage,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(slot) = self.producer_queue(by, link) else {
            return Outcome::refused(Refusal::NoSuchLink);
        };
        let Some((id, message)) = self.journal_put(slot, new, effects) else {
            return Outcome::refused(Refusal::StoreFull);
        };
        let (state, after) = (message.state(), message.after());
        self.next.message += 1;
        self.picture_changed(&message, true);
        self.messages.insert(id.0, Box::new(message));
        self.enter(id, state);
        self.queues.at_mut(slot).messages_total += 1;
        self.totals.messages += 1;
        let outcome = Outcome::reply(after, Reply::Stored { message: id });
        if state == State::Ready { outcome.waking(slot) } else { outcome }
    }

    /// Where a producer's messages go.
    pub(crate) fn producer_queue(&self, by: SessionSlot, link: LinkId) -> Option<QueueSlot> {
        self.sessions.at(by).producers.get(&link).copied()
    }

    /// The queue of that name; none when it would be one too many.
    pub(crate) fn find_or_create(&mut self, name: QueueName) -> Option<QueueSlot> {
        if let Some(slot) = self.queues.find(name.as_str()) {
            return Some(slot);
        }
        if self.queues.is_full() {
            return None;
        }
        let policy = self.queue_policies.of(&name);
        Some(self.queues.create(name, policy))
    }

    pub(crate) fn close_producer(&mut self, slot: QueueSlot) {
        let queue = self.queues.at_mut(slot);
        assert!(queue.producers > 0, "a queue knows its producers");
        queue.producers -= 1;
    }

    /// A new message with its record in the log; none when there is no room for it. A body larger
    /// than any segment takes never has room.
    fn journal_put(
        &mut self,
        slot: QueueSlot,
        new: NewMessage,
        effects: &mut Effects,
    ) -> Option<(MessageId, Message)> {
        if new.body.len() > limits::MESSAGE_BYTES_MAX {
            return None;
        }
        let id = MessageId(self.next.message);
        let envelope = Envelope {
            message: id,
            place: self.queues.at(slot).place(),
            durability: self.policy.durability(new.persistence),
            created: self.latest,
            lease: new.lease,
            format: new.format,
            group: 0,
            standing: first_standing(self.latest, id, &new),
        };
        let placed = if envelope.durability == Durability::None {
            None
        } else {
            let record = RecordView::Message { envelope, body: &new.body };
            Some(self.log.store(&record, envelope.durability, effects)?)
        };
        let mut message = Message::new(&envelope, slot, new.body);
        if let Some(Placed { lsn, bytes }) = placed {
            (message.location, message.changed, message.record_bytes) = (lsn, lsn, bytes);
        }
        Some((id, message))
    }
}

fn first_standing(now: Nanos, id: MessageId, new: &NewMessage) -> Standing<'static> {
    Standing {
        priority: new.priority,
        delay: new.delay,
        state: if new.delay == Nanos::ZERO {
            StoredState::Ready
        } else {
            StoredState::Delayed { until: now + new.delay }
        },
        order: id.0,
        counters: Counters::default(),
        expires: new.expires,
        dead: None,
    }
}

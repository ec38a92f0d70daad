//! Queues as lists: their ready messages in the order of delivery. Commands add to and take from
//! both ends, and look at and change elements by their places.
//!
//! Ready messages are ordered by (priority, order). An element put at the tail is behind the last
//! one. It has that one's priority, if that is less urgent than the default, and its own number as
//! its order. An element put at the head has the first one's priority, if that is more urgent. Its
//! order is below zero, in front of all that were given out before.
//!
//! A message beyond its time is no element, though it may not have gone yet.

pub(crate) mod editing;
pub(crate) mod places;
pub(crate) mod popping;
pub(crate) mod pushing;
pub(crate) mod runs;
pub(crate) mod waiting;

use model::{DependsOn, Element, End, MessageId, OneOrMany, Payload, QueueName, Refusal, Reply};

use crate::bodies::Bodies;
use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;

pub(crate) use runs::as_run;

impl Keyspace {
    /// Checks that the name is not that of a value.
    pub(crate) fn check_is_list(
        &self,
        name: &QueueName,
        store: &MessageStore,
    ) -> Result<(), Refusal> {
        if self.is_value(name, store) { Err(Refusal::WrongKind) } else { Ok(()) }
    }
}

impl MessageStore {
    /// The elements from this one on, away from that end.
    pub(crate) fn elements_from(
        &self,
        slot: QueueSlot,
        end: End,
        first: Option<(u32, i64)>,
    ) -> impl Iterator<Item = MessageId> {
        let queue = self.queues.at(slot);
        let is_expiring = queue.is_expiring(self.latest);
        core::iter::successors(first, move |at| queue.delivery.dispatch.ready().next_from(end, *at))
            .map(|(_, order)| self.message_of(order))
            .filter(move |id| !is_expiring || !self.is_over(*id))
    }

    /// All elements from an end on.
    pub(crate) fn elements(&self, slot: QueueSlot, end: End) -> impl Iterator<Item = MessageId> {
        self.elements_from(slot, end, self.queues.at(slot).delivery.dispatch.ready().at_end(end))
    }
}

impl Bodies {
    pub(crate) fn element_of(&self, id: MessageId, store: &MessageStore) -> Element {
        let message = store.message(id);
        let (format, payload) = (message.format(), Payload::by(self.formats()));
        Element { format, payload, body: self.body_of(id, message, store) }
    }
}

impl FrameWriter {
    /// A count reflects all that was changed.
    pub(crate) fn counted(&self, count: u64) -> Outcome {
        Outcome::reply(self.after_all(), Reply::Count(count))
    }

    pub(crate) fn nothing_in_time(&self) -> Outcome {
        Outcome::reply(self.after_all(), Reply::TimedOut { link: None })
    }
}

/// Elements on their way to a session.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) elements: OneOrMany<Element>,
    pub(crate) after: DependsOn,
}

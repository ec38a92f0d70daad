//! Which messages need what of the log: what an operator asks who wonders about its size.

use model::{Lsn, MessageId, Nanos, QueueName};

use crate::engine::Engine;
use crate::queue::Role;

/// A message of which a record in the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// The frame with that record.
    pub lsn: Lsn,
    /// The message.
    pub message: MessageId,
    /// When it was stored.
    pub created: Nanos,
    /// Its queue, or the topic that it was published to.
    pub queue: &'a QueueName,
    /// Whether that is a topic: it waits in a subscription.
    pub of_topic: bool,
}

impl Engine {
    /// All of them, the oldest first. Looks at every message.
    pub fn logged(&self) -> impl Iterator<Item = Logged<'_>> {
        let messages = self.messages.iter_from(0).filter(|(_, message)| message.is_journalled());
        messages.filter_map(|(number, message)| {
            let queue = self.queues.get(message.queue)?;
            Some(Logged {
                lsn: message.location,
                message: MessageId(number),
                created: message.created,
                queue: &queue.name,
                of_topic: matches!(queue.role, Role::Subscription { .. }),
            })
        })
    }
}

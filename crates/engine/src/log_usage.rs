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
    /// Tells of those among `count` messages from `first` on, the oldest first. The message to go
    /// on from, none after the last.
    pub fn logged(
        &self,
        first: MessageId,
        count: usize,
        mut tell: impl FnMut(Logged<'_>),
    ) -> Option<MessageId> {
        let mut messages = self.store.messages.iter_from(first.0);
        for (number, message) in messages.by_ref().take(count) {
            let queue = self.store.queues.get(message.queue).filter(|_| message.is_journalled());
            let Some(queue) = queue else { continue };
            tell(Logged {
                lsn: message.location,
                message: MessageId(number),
                created: message.created,
                queue: &queue.name,
                of_topic: matches!(queue.role, Role::Subscription { .. }),
            });
        }
        messages.next().map(|(number, _)| MessageId(number))
    }
}

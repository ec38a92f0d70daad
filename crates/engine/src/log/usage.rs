//! The messages that need records of the log, for an operator that asks about its size.

use model::{Lsn, MessageId, Nanos, QueueName};

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
    /// True if that is a topic: it waits in a subscription.
    pub of_topic: bool,
}

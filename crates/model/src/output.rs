//! What the engine tells a protocol session.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{
    After, BrokerStatistics, LinkId, MessageId, MessageStatistics, QueueName, QueueStatistics,
    SessionId,
};

/// A reply on its way to a session, and what must be durable before the session's peer may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Whose.
    pub session: SessionId,
    /// The gate holds it until then.
    pub after: After,
    /// What.
    pub reply: Reply,
}

/// The answer to one [`crate::Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is as asked.
    Done,
    /// A message was stored.
    Stored {
        /// Its new identity.
        message: MessageId,
    },
    /// The engine will not, and nothing changed.
    Refused(Refusal),
    /// A message was leased to the session.
    Delivered(Box<Delivery>),
    /// No message came in time.
    TimedOut,
    /// Nothing is ready, and a lease of this session is about to end.
    LeaseEnding,
    /// No such message or queue, or not in a state or by a session that allows it.
    NotFound,
    /// A message was looked at.
    Found {
        /// Which.
        message: MessageId,
        /// Its body.
        body: Box<[u8]>,
    },
    /// So many messages were changed.
    Count(u64),
    /// So many messages were changed, as many as one command may change
    /// ([`crate::limits::FRAME_RECORDS_MAX`]), and there are more of the same kind: ask again.
    CountSoFar(u64),
    /// See [`MessageStatistics`].
    MessageStatistics(Box<MessageStatistics>),
    /// See [`QueueStatistics`].
    QueueStatistics(Box<QueueStatistics>),
    /// See [`BrokerStatistics`].
    BrokerStatistics(Box<BrokerStatistics>),
    /// The names of all queues, ascending.
    Queues(Vec<QueueName>),
}

/// A leased message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The consumer that received it; `None` where it was leased by its identity.
    pub link: Option<LinkId>,
    /// Which.
    pub message: MessageId,
    /// How many times it has been delivered, with this one.
    pub count: u32,
    /// Its body.
    pub body: Box<[u8]>,
}

/// Why the engine refuses a command. Every one leaves the engine as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The journal has no room for another message until space returns; deletes still work.
    StoreFull,
    /// There are [`crate::limits::QUEUES_MAX`] queues.
    TooManyQueues,
    /// The consumer watches [`crate::limits::CONSUMER_QUEUES_MAX`] queues.
    TooManyWatched,
    /// The link was not opened.
    NoSuchLink,
}

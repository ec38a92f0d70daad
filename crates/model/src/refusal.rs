//! Why the engine does not do what it was told.

use alloc::boxed::Box;
use core::fmt;

use crate::{Nanos, QueueName};

/// Why the engine refuses a command. Every one leaves the engine as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The journal has no room for another message until space returns; deletes still work.
    StoreFull,
    /// The broker's memory is full of what cannot leave it; deletes still work.
    MemoryFull,
    /// There are [`crate::limits::QUEUES_MAX`] queues, or topics, or this session has
    /// [`crate::limits::SESSION_TEMPORARY_MAX`] temporary ones.
    TooManyQueues,
    /// The consumer watches [`crate::limits::CONSUMER_QUEUES_MAX`] queues.
    TooManyWatched,
    /// The link was not opened.
    NoSuchLink,
    /// A temporary destination that is not there any more.
    NoSuchDestination,
    /// A temporary destination that another session made: only that consumes from it.
    OfAnotherSession,
    /// The link is open already.
    LinkInUse,
    /// Another session is this client's.
    ClientInUse,
    /// The subscription has a consumer and is not shared, or not shared in this way.
    SubscriptionInUse,
    /// There are [`crate::limits::SUBSCRIPTIONS_MAX`] subscriptions, so many of one topic as fit
    /// into one frame, or [`crate::limits::PATTERN_SUBSCRIPTIONS_MAX`] of patterns.
    TooManySubscriptions,
    /// Consumers of the queue use [`crate::limits::QUEUE_SELECTORS_MAX`] different selectors.
    TooManySelectors,
    /// Not a selector.
    InvalidSelector {
        /// The byte where it ceases to be one.
        position: usize,
        /// Why.
        reason: Box<str>,
    },
    /// The session has no such transaction.
    NoSuchTransaction,
    /// The session has [`crate::limits::SESSION_TRANSACTIONS_MAX`] transactions, or the number is
    /// in use.
    TooManyTransactions,
    /// The transaction holds more than [`crate::limits::TRANSACTION_RECORDS_MAX`] messages or
    /// [`crate::limits::TRANSACTION_BYTES_MAX`] bytes, would come to more than
    /// [`crate::limits::TRANSACTION_COPIES_MAX`] messages, or all that are open hold more than
    /// [`crate::limits::UNCOMMITTED_BYTES_MAX`] bytes.
    TransactionTooLarge,
    /// A part of the transaction was refused before, so that it can only be rolled back.
    TransactionFailed,
    /// The name is that of a value where a list is meant, or the other way round.
    WrongKind,
    /// The list has no such place.
    NoSuchPlace,
    /// It would have to look at, or move, more than [`crate::limits::LIST_SCAN_MAX`] elements.
    ListTooLong,
    /// It would have to answer with more than so many bytes, or to compare more that left memory.
    TooManyBytes {
        /// So many: [`crate::limits::REPLY_BYTES_MAX`], or fewer where there is little memory.
        max: usize,
    },
    /// The commands of a batch may change more than fits into one frame.
    BatchTooLarge,
    /// Not allowed in a batch.
    NotInBatch,
    /// A value is larger than [`crate::limits::VALUE_BYTES_MAX`], or all are larger than
    /// [`crate::limits::VALUES_BYTES_MAX`], or there are [`crate::limits::VALUES_MAX`] of them.
    TooManyValues,
    /// The session observes [`crate::limits::SESSION_OBSERVED_MAX`] keys.
    TooManyObserved,
    /// The name that a sender gives a message is longer than
    /// [`crate::limits::SEND_ID_BYTES_MAX`] bytes.
    SendIdTooLong,
    /// The queue has consumers, or somebody holds messages of it, or it goes with a session.
    QueueInUse,
    /// A queue, or a subscription of a topic, holds as much as its rules allow.
    QueueFull(Box<QueueFull>),
    /// There are [`crate::limits::OWN_POLICIES_MAX`] queues with rules of their own.
    TooManyPolicies,
    /// The rules contradict each other: [`crate::QueueBounds::are_at_odds`].
    PolicyAtOdds,
    /// The server stores nothing more until it is started anew.
    Draining,
}

/// Which bound of which queue is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// The queue, or the topic of the subscription.
    pub queue: QueueName,
    /// Its bound.
    pub bound: Bound,
}

/// What a queue may hold, as its rules say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many messages.
    Messages(u64),
    /// So many bytes of bodies.
    Bytes(u64),
    /// As many as are taken out of it in so long.
    Age(Nanos),
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} is full: {}", self.queue, self.bound)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages(count) => write!(f, "max-messages={count}"),
            Self::Bytes(bytes) => write!(f, "max-bytes={bytes}"),
            Self::Age(age) => write!(f, "target-age={}ms", age.0 / 1_000_000),
        }
    }
}

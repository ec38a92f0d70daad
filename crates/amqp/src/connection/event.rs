//! Facts on their way to the peer, and awaited replies.

use alloc::boxed::Box;

use model::{Delivery, Destination, LinkId, MessageId, TransactionId};

use crate::connection::session::SessionKey;
use crate::error::Error;
use crate::performative::Role;
use crate::state::{DeliveryState, Outcome};

/// A fact for the peer, told once all that it depends on is durable: handed back to
/// [`crate::Connection::emit`].
#[derive(Debug)]
pub struct Event(pub(crate) Fact);

/// The event itself.
#[derive(Debug)]
pub(crate) enum Fact {
    /// The connection may be opened.
    Opened,
    /// It may not.
    OpenRefused(Box<Error>),
    Begun(SessionKey),
    Attached(LinkId),
    AttachRefused(LinkId, Box<Error>),
    /// A link is gone, for the peer's wish or for an error.
    Detached(LinkId, Departing),
    /// A session is gone, for the peer's wish or for an error.
    Ended(SessionKey, Option<Box<Error>>),
    /// The connection is to be closed as the peer wished.
    Closed,
    /// The outcome of the peer's delivery.
    Answered(Incoming, Answer),
    /// A producer may get new credit.
    Answerable(LinkId),
    /// The peer's disposition of our delivery is done.
    Settled(SessionKey, u64, Answer),
    Delivered(Box<Delivery>),
    /// Nothing more is there for a consumer: the answer to which of its drains.
    Drained(LinkId, u32),
}

/// How a link ends.
#[derive(Clone, Debug)]
pub(crate) struct Departing {
    pub(crate) closed: bool,
    pub(crate) error: Option<Box<Error>>,
}

/// A delivery of the peer that the engine was asked to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) session: SessionKey,
    pub(crate) link: LinkId,
    /// Its number in the session (2.8.8).
    pub(crate) id: u32,
    /// The peer has settled it and waits for no answer.
    pub(crate) settled: bool,
    pub(crate) transaction: Option<TransactionId>,
}

/// The reply that the engine owes, and its purpose. Replies come in the order of the commands.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// The peer is not told of it.
    Ignored,
    Identified,
    /// Which client this is was told only for a subscription; it may go without.
    Recognised,
    Begun(SessionKey),
    /// A temporary destination for this link, which is opened next.
    Created(LinkId),
    /// The engine was asked for a queue with a name that means something else elsewhere.
    QueueSearched(LinkId, Destination, &'static str),
    Attached(LinkId),
    Refused(LinkId, Box<Error>),
    Found(LinkId),
    Put(Incoming),
    /// Refused without the engine; it is told in its turn.
    Rejected(Incoming, Box<Error>),
    Declared(Incoming, TransactionId),
    Discharged(Incoming, TransactionId),
    Settled(Settling),
    Unsubscribed(LinkId),
    Detached(LinkId, Departing),
    Ended(SessionKey, Option<Box<Error>>),
    Closed,
}

/// A delivery of ours that the peer has settled, or asks us to.
#[derive(Clone, Debug)]
pub(crate) struct Settling {
    pub(crate) session: SessionKey,
    pub(crate) delivery: u64,
    /// The message that the engine held for it.
    pub(crate) message: Option<MessageId>,
    pub(crate) transaction: Option<TransactionId>,
    /// The answer that the peer waits for, unless it has settled by itself.
    pub(crate) answer: Option<Answer>,
}

/// A delivery's state as we tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Outcome(Outcome),
    /// Its outcome is provisional, in a transaction (4.4).
    Enlisted(TransactionId, Outcome),
    /// It began a transaction (4.5.5).
    Declared(TransactionId),
}

/// Neighbouring deliveries with the same answer, which one disposition tells.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) channel: u16,
    pub(crate) role: Role,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) answer: Answer,
}

impl Answer {
    pub(crate) const ACCEPTED: Self = Self::Outcome(Outcome::Accepted);

    pub(crate) fn rejected(error: Error) -> Self {
        Self::Outcome(Outcome::Rejected(Some(Box::new(error))))
    }

    /// Accepted, or provisionally so.
    pub(crate) const fn accepted(transaction: Option<TransactionId>) -> Self {
        match transaction {
            Some(transaction) => Self::Enlisted(transaction, Outcome::Accepted),
            None => Self::ACCEPTED,
        }
    }

    /// Gives the state that a disposition carries.
    pub(crate) fn with_state<T>(&self, write: impl FnOnce(DeliveryState<'_>) -> T) -> T {
        match self {
            Self::Outcome(outcome) => write(DeliveryState::Outcome(outcome.clone())),
            Self::Enlisted(transaction, outcome) => write(DeliveryState::Transactional {
                txn_id: &txn_id(*transaction),
                outcome: Some(outcome.clone()),
            }),
            Self::Declared(transaction) => {
                write(DeliveryState::Declared { txn_id: &txn_id(*transaction) })
            }
        }
    }
}

/// The id under which the peer knows a transaction.
pub(crate) const fn txn_id(transaction: TransactionId) -> [u8; 8] {
    transaction.0.to_be_bytes()
}

/// The transaction of an id that we gave; `None`: we did not.
pub(crate) fn transaction(txn_id: &[u8]) -> Option<TransactionId> {
    txn_id.try_into().ok().map(u64::from_be_bytes).map(TransactionId)
}

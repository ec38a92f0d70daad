//! The outcomes of a delivered message.

use crate::{Nanos, QueueName, SubscriptionName};

/// The outcome of a held message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It is done with, and deleted.
    Accept,
    /// It goes back, and nothing is counted: ready again at its place, once the delay is over that
    /// the rules of its queue say ([`crate::Redelivery`]).
    Release,
    /// Its delivery failed: the same, and one failure more; when there are too many of them, among
    /// the dead letters.
    Fail,
    /// The same, but once this delay is over, regardless of the rules; zero: at once.
    GiveBack {
        /// Its delivery failed.
        failed: bool,
        /// How long it stays hidden.
        delay: Nanos,
    },
    /// The client cannot have looked at it, or its link has ended: ready again at its place at
    /// once, and nothing is counted.
    Return,
    /// It cannot be dealt with: among the dead letters, for this reason.
    Park(DeadReason),
}

/// Why a message was set among the dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// It expired before a consumer received it.
    Expired,
    /// Too many deliveries failed.
    Attempts,
    /// A consumer rejected it.
    Rejected,
    /// A consumer said that it can never deal with it.
    Undeliverable,
    /// Its queue had no place for all that was sent.
    Overflow,
}

impl DeadReason {
    /// The reason in a word, as consumers of dead letters see it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Attempts => "attempts",
            Self::Rejected => "rejected",
            Self::Undeliverable => "undeliverable",
            Self::Overflow => "overflow",
        }
    }
}

/// How a message came to be among the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Why.
    pub reason: DeadReason,
    /// The queue it was taken from, or the topic of the subscription it was taken from.
    pub from: QueueName,
    /// The subscription, as long as it exists.
    pub subscription: Option<SubscriptionName>,
    /// When.
    pub at: Nanos,
    /// How many deliveries had failed.
    pub attempts: u32,
}

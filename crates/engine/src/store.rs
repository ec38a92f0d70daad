//! Messages by id, the queues that index them, timers, and the time.

pub(crate) mod dispatch;
pub(crate) mod drafting;
pub(crate) mod message;
pub(crate) mod message_groups;
pub(crate) mod purging;
pub(crate) mod queue;
pub(crate) mod statistics;
pub(crate) mod timers;

use alloc::boxed::Box;

use model::{DeadLetterStatistics, MessageId, Nanos};

use crate::collections::pages::Pages;
use crate::store::message::Message;
use crate::store::queue::{Counts, Queues};
use crate::store::timers::Timers;

/// Messages by id, the queues that index them, timers, and the time.
#[derive(Debug)]
pub(crate) struct MessageStore {
    pub(crate) messages: Pages<Box<Message>>,
    /// Order to id, for the messages with an order that is not their id. A negative order is there
    /// as its two's complement.
    pub(crate) reordered: Pages<MessageId>,
    pub(crate) queues: Queues,
    pub(crate) timers: Timers,
    pub(crate) next: Next,
    /// The latest moment the engine was given.
    pub(crate) latest: Nanos,
    pub(crate) totals: Totals,
}

/// The numbers that come next.
#[derive(Debug)]
pub(crate) struct Next {
    /// Of a message, or of its order when it goes behind all others.
    pub(crate) message: u64,
    /// Of an order in front of all others: descends, below zero.
    pub(crate) front: i64,
    /// Of a place among the buried.
    pub(crate) buried: u64,
    /// Of a place among those that wait.
    pub(crate) ticket: u64,
}

/// Counts over all queues.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) counts: Counts,
    pub(crate) expired: u64,
    pub(crate) messages: u64,
    pub(crate) waiting: u64,
    pub(crate) dead_letters: DeadLetterStatistics,
    /// The most bytes that all journalled messages take in a snapshot.
    pub(crate) snapshot_bytes: u64,
    /// See [`Engine::steps`].
    pub(crate) steps: u64,
}

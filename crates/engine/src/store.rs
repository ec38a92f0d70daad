//! Messages by id, the queues that index them, timers, and the time.

pub(crate) mod accounts;
pub(crate) mod dispatch;
pub(crate) mod drafting;
pub(crate) mod message;
pub(crate) mod message_groups;
mod numbers;
pub(crate) mod purging;
pub(crate) mod queue;
pub(crate) mod statistics;
pub(crate) mod timers;
mod totals;

use alloc::boxed::Box;

use model::{DeadLetterStatistics, MessageId, Nanos};
use records::place_of;

use crate::admission::StoreAdmission;
use crate::collections::pages::Pages;
use crate::directory::policy::QueuePolicies;
use crate::store::message::Message;
use crate::store::queue::{Counts, Queues, whose_place};
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
    pub(crate) admission: StoreAdmission,
    next: Next,
    /// The latest moment the engine was given.
    pub(crate) latest: Nanos,
    totals: Totals,
}

impl MessageStore {
    /// No messages, and no queues but those that are kept.
    pub(crate) fn new(policies: &QueuePolicies, memory_limit: u64) -> Self {
        Self {
            messages: Pages::new(),
            reordered: Pages::new(),
            queues: Queues::new(policies, memory_limit),
            timers: Timers::default(),
            admission: StoreAdmission::new(policies.are_bounded()),
            next: Next::new(),
            latest: Nanos::ZERO,
            totals: Totals::default(),
        }
    }

    /// The message that this order among the ready belongs to.
    pub(crate) fn message_of(&self, order: i64) -> MessageId {
        whose_place(&self.reordered, order)
    }

    /// A message that an index, or a lookup just before, says is there.
    pub(crate) fn message(&self, id: MessageId) -> &Message {
        self.messages.get(id.0).expect("invariant: what is in an index lives")
    }

    /// See [`MessageStore::message`].
    pub(crate) fn message_mut(&mut self, id: MessageId) -> &mut Message {
        self.messages.get_mut(id.0).expect("invariant: what is in an index lives")
    }

    /// A message comes into the store, not yet into an index.
    pub(crate) fn insert(&mut self, id: MessageId, message: Box<Message>) {
        let order = message.order(id);
        self.messages.insert(id.0, message);
        self.enter_order(id, order);
    }

    /// Gives a message that is in no index another place among the ready.
    pub(crate) fn reorder(&mut self, id: MessageId, order: i64) {
        let message = self.message_mut(id);
        let before = message.order(id);
        message.set_order(id, order);
        self.leave_order(id, before);
        self.enter_order(id, order);
    }

    /// Notes the message of a place that is not its number's.
    #[inline]
    pub(crate) fn enter_order(&mut self, id: MessageId, order: i64) {
        if order != place_of(id) {
            debug_assert!(
                !self.has_reordered(order),
                "a place among the ready is that of one message"
            );
            self.reordered.insert(order as u64, id);
        }
    }

    /// The message has that place no longer.
    #[inline]
    pub(crate) fn leave_order(&mut self, id: MessageId, order: i64) {
        if order != place_of(id) {
            let was_there = self.reordered.remove(order as u64);
            debug_assert_eq!(was_there, Some(id), "a place among the ready leads to its message");
        }
    }

    /// True if a message has this place that is not its number's.
    pub(crate) fn has_reordered(&self, order: i64) -> bool {
        self.reordered.get(order as u64).is_some()
    }

    /// Changes the part of a message that a snapshot records. The message is in no index.
    pub(crate) fn amend(&mut self, id: MessageId, change: impl FnOnce(&mut Message)) {
        let before = self.snapshot_bytes_of(self.message(id));
        change(self.message_mut(id));
        let now = self.snapshot_bytes_of(self.message(id));
        self.change_snapshot_bytes(before, now);
    }
}

/// The numbers that come next.
#[derive(Debug)]
pub(crate) struct Next {
    /// Of a message, or of its order when it goes behind all others.
    message: u64,
    /// Of an order in front of all others: descends, below zero.
    front: i64,
    /// Of a place among the buried.
    buried: u64,
    /// Of a place among those that wait.
    ticket: u64,
}

/// Counts over all queues.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    counts: Counts,
    expired: u64,
    messages: u64,
    waiting: u64,
    dead_letters: DeadLetterStatistics,
    denied: u64,
    over_quota: u64,
    /// The most bytes that all journalled messages take in a snapshot.
    snapshot_bytes: u64,
    /// See [`Engine::steps`].
    steps: u64,
}

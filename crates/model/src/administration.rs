//! Commands of an operator, or of a client without a session of its own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{
    ClientName, Delivery, MessageId, MessageState, Nanos, PolicyChange, QueueName, SessionId,
    Subscription,
};

/// Commands beside the work of producers and consumers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Messages of a queue, in every state unless one is asked for, without touching them; ready
    /// ones in the order of delivery, then those leased, delayed and buried. → `Page`, `NotFound`
    Browse {
        /// The queue.
        queue: QueueName,
        /// Only those in this state.
        state: Option<MessageState>,
        /// Only those that match.
        selector: Option<Arc<str>>,
        /// The end of the page before.
        after: Option<PageEnd>,
        /// The most messages; at most [`crate::limits::PAGE_MESSAGES_MAX`].
        max: usize,
    },
    /// One message, in any queue and state, without touching it. → `Page` of one, `NotFound`
    Show {
        /// Which.
        message: MessageId,
    },
    /// Delete all messages of a queue that no session holds, so many as fit into one frame. →
    /// `Count`; `CountUntil`: ask again, with its position as `after`; `NotFound`, `Refused`
    Purge {
        /// The queue.
        queue: QueueName,
        /// Only those in this state.
        state: Option<MessageState>,
        /// Only those that match.
        selector: Option<Arc<str>>,
        /// The end of the page before.
        after: Option<PageEnd>,
    },
    /// Move messages that no session holds to the tail of another queue, the first first, if
    /// they are ready; so many as fit into one frame. A dead letter ceases to be one, and its
    /// failed attempts are forgotten. → `Count`; `CountUntil`: ask again, with its position as
    /// `after` and for the rest of `max`; `NotFound`, `Refused`
    MoveMessages {
        /// Source.
        from: QueueName,
        /// The target; `None`: each dead letter goes to where it came from, and other messages
        /// stay.
        to: Option<QueueName>,
        /// Only this one.
        message: Option<MessageId>,
        /// Only those that match.
        selector: Option<Arc<str>>,
        /// Only those that came to be there before this message's number: ask again with the same,
        /// so that moving a queue into itself ends.
        before: MessageId,
        /// The most to move.
        max: u64,
        /// The end of the page before.
        after: Option<PageEnd>,
    },
    /// Delete a queue with all its messages, so many as fit into one frame. It stays, empty, if
    /// its policy keeps it or while a producer points to it. → `Done`; `CountSoFar`: ask again;
    /// `NotFound`, `Refused` (`QueueInUse`)
    Delete {
        /// The queue.
        queue: QueueName,
    },
    /// The rules of a queue, or those that it would have. → `Policy`
    Policy {
        /// The queue.
        queue: QueueName,
    },
    /// Give a queue rules of its own, or take them away. They hold from then on, also for each
    /// subscription of the topic of that name, whether or not there is any of these. Stored
    /// messages stay, though they may be more than the rules allow. → `Policy` as it is then;
    /// `Refused`
    ChangePolicy {
        /// The queue.
        queue: QueueName,
        /// How.
        change: Box<PolicyChange>,
    },
    /// Queues with rules of their own, by name. → `OwnPolicies`
    ListPolicies {
        /// Behind this one.
        after: Option<QueueName>,
        /// The most.
        max: usize,
    },
    /// Queues and their figures, by name. → `QueuePage`
    ListQueues {
        /// Behind this one.
        after: Option<QueueName>,
        /// The most.
        max: usize,
    },
    /// All subscriptions, by topic and name. → `Subscriptions`
    ListSubscriptions,
    /// The number that the next message will have. → `Stored` with that number
    NextMessage,
}

/// The end of a page of messages; the next page begins behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// The state of its last message.
    pub state: MessageState,
    /// Its priority if it is ready, else zero.
    pub priority: u32,
    /// Its place among those of its state and priority: bits that mean something to the engine.
    pub place: u64,
    /// Its number.
    pub message: MessageId,
}

/// Some messages of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// They.
    pub messages: Vec<BrowsedMessage>,
    /// The end to continue from; `None`: this was the last page.
    pub next: Option<PageEnd>,
}

/// A message that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowsedMessage {
    /// Its queue.
    pub queue: QueueName,
    /// Its state.
    pub state: MessageState,
    /// Until its delay or lease ends; zero in other states.
    pub time_left: Nanos,
    /// The session that has it, if it is leased.
    pub holder: Option<Box<Holder>>,
    /// All else, as a consumer would see it.
    pub delivery: Box<Delivery>,
}

/// The session that has a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The session.
    pub session: SessionId,
    /// The session's name: where its peer is.
    pub name: Option<Arc<str>>,
    /// The client that it said it is.
    pub client: Option<ClientName>,
    /// For how long it has had the message, if that has no certain end.
    pub held: Option<Nanos>,
}

/// A subscription and its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionStatistics {
    /// The subscription.
    pub subscription: Box<Subscription>,
    /// Subscriptions of one topic get its messages in the order of these.
    pub number: u64,
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages that consumers hold.
    pub leased: u64,
    /// Its consumers.
    pub consumers: u64,
}

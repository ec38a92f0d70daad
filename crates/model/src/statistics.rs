//! The engine's counts, per message, per queue and in all.

use crate::{MessageId, Nanos, QueueName};

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// Waits for a consumer.
    Ready,
    /// Hidden until its delay ends.
    Delayed,
    /// Held by a consumer until its lease ends.
    Leased,
    /// Set aside until it is kicked.
    Buried,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageStatistics {
    /// Which.
    pub message: MessageId,
    /// Its queue.
    pub queue: QueueName,
    /// Its state.
    pub state: MessageState,
    /// Smaller is more urgent.
    pub priority: u32,
    /// Since it was stored.
    pub age: Nanos,
    /// The delay that was last asked for it.
    pub delay: Nanos,
    /// How long a consumer may hold it.
    pub lease: Nanos,
    /// Until its delay or lease ends; zero in other states.
    pub time_left: Nanos,
    /// Deliveries so far.
    pub delivered: u32,
    /// Leases that ended by time.
    pub expired: u32,
    /// Times released.
    pub released: u32,
    /// Times buried.
    pub buried: u32,
    /// Times kicked.
    pub kicked: u32,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Which.
    pub queue: QueueName,
    /// Ready messages with a priority below 1024.
    pub urgent: u64,
    /// Ready messages.
    pub ready: u64,
    /// Leased messages.
    pub leased: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// Buried messages.
    pub buried: u64,
    /// Messages stored since the queue came to be in this process.
    pub messages_total: u64,
    /// Producers pointed at it.
    pub producers: u64,
    /// Consumers watching it.
    pub consumers: u64,
    /// Consumers waiting for a message of it.
    pub waiting: u64,
    /// Messages deleted since the queue came to be in this process.
    pub deleted_total: u64,
    /// Times paused.
    pub paused_total: u64,
    /// How long the present pause was asked for; zero when it is not paused.
    pub pause: Nanos,
    /// How much of it is left.
    pub pause_left: Nanos,
    /// Bytes of the bodies of all its messages.
    pub body_bytes: u64,
    /// Sends that wait for a place in it.
    pub blocked_sends: u64,
}

/// All queues together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerStatistics {
    /// Ready messages with a priority below 1024.
    pub urgent: u64,
    /// Ready messages.
    pub ready: u64,
    /// Leased messages.
    pub leased: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// Buried messages.
    pub buried: u64,
    /// Leases that ended by time, since the start of the process.
    pub expired_total: u64,
    /// Messages stored since the start of the process.
    pub messages_total: u64,
    /// Queues that exist.
    pub queues: u64,
    /// Consumers waiting for a message.
    pub waiting: u64,
    /// Commands that a user had no right to, since the start of the process.
    pub denied_total: u64,
    /// Commands that a quota of their user stood against, since the start of the process.
    pub over_quota_total: u64,
    /// Dead letters since the start of the process.
    pub dead_letters: DeadLetterStatistics,
}

/// Messages that expired or that no consumer could process, since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterStatistics {
    /// Those that became dead letters.
    pub parked_total: u64,
    /// Those that were deleted instead, as the rules of their queue say.
    pub dropped_total: u64,
    /// Dead letters that were deleted, the oldest, since their queue may hold no more.
    pub evicted_total: u64,
    /// Those of these that were durable.
    pub evicted_durable_total: u64,
}

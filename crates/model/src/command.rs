//! What a protocol session asks of the engine.

use crate::{LinkId, MessageId, Nanos, NewMessage, QueueName};

/// A wish of one session. Each is answered by exactly one [`crate::Reply`], at once, but for
/// [`Command::Receive`], whose answer may come later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Point a producer at a queue, creating both; points it elsewhere if it exists. → `Done`
    OpenProducer {
        /// The producer.
        link: LinkId,
        /// Where its messages go from now on.
        queue: QueueName,
    },
    /// Store a message in the queue of a producer. → `Stored`, `Refused`
    Put {
        /// A producer that was opened.
        link: LinkId,
        /// What to store.
        message: NewMessage,
    },
    /// Add a queue to those a consumer receives from; creates both. Idempotent. → `Done`, `Refused`
    Watch {
        /// The consumer.
        link: LinkId,
        /// The queue.
        queue: QueueName,
    },
    /// Take a queue from those a consumer receives from. → `Done`, also when it was not there
    Unwatch {
        /// The consumer.
        link: LinkId,
        /// The queue.
        queue: QueueName,
    },
    /// Lease the most urgent ready message of the watched, unpaused queues, waiting for one.
    /// At most one is outstanding a consumer. → `Delivered`, `TimedOut`, `LeaseEnding`
    Receive {
        /// The consumer.
        link: LinkId,
        /// How long to wait; zero: not at all, `None`: for ever.
        wait: Option<Nanos>,
        /// While nothing is ready: answer `LeaseEnding` once a lease of this session has no more
        /// than this left (beanstalkd's safety margin). Zero: never.
        margin: Nanos,
    },
    /// End a waiting `Receive` now. → nothing of its own: the `Receive` is answered `TimedOut`;
    /// no effect where none waits
    CancelReceive {
        /// The consumer.
        link: LinkId,
    },
    /// Lease this very message if it is ready, delayed or buried. → `Delivered`, `NotFound`
    Lease {
        /// The message.
        message: MessageId,
    },
    /// Delete a message that this session leases or nobody does. → `Done`, `NotFound`
    Delete {
        /// The message.
        message: MessageId,
    },
    /// Give a leased message back. → `Done`, `NotFound` unless leased by this session
    Release {
        /// The message.
        message: MessageId,
        /// Its new priority.
        priority: u32,
        /// How long it stays hidden; zero: ready at once.
        delay: Nanos,
    },
    /// Set a leased message aside until it is kicked. → `Done`, `NotFound` unless leased by this
    /// session
    Bury {
        /// The message.
        message: MessageId,
        /// Its new priority.
        priority: u32,
    },
    /// Start the lease's time anew. → `Done`, `NotFound` unless leased by this session
    Renew {
        /// The message.
        message: MessageId,
    },
    /// Make ready up to `max` buried messages of the producer's queue, oldest first, or, where
    /// none is buried, as many delayed ones, soonest first. One command changes so many that they
    /// fit into one frame. → `Count`; `CountSoFar` where it stopped for that
    Kick {
        /// A producer that was opened.
        link: LinkId,
        /// The most to make ready.
        max: u64,
    },
    /// Make this buried or delayed message ready. → `Done`, `NotFound`
    KickMessage {
        /// The message.
        message: MessageId,
    },
    /// Deliver nothing from a queue for a while. Zero ends a pause. → `Done`, `NotFound`
    Pause {
        /// The queue.
        queue: QueueName,
        /// How long from now.
        duration: Nanos,
    },
    /// Look at a message without touching it. → `Found`, `NotFound`
    Peek(Peek),
    /// → `MessageStatistics`, `NotFound`
    MessageStatistics {
        /// The message.
        message: MessageId,
    },
    /// → `QueueStatistics`, `NotFound`
    QueueStatistics {
        /// The queue.
        queue: QueueName,
    },
    /// → `BrokerStatistics`
    BrokerStatistics,
    /// → `Queues`, in the order of their names
    ListQueues,
}

/// Which message to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// This one, in any queue and state.
    Message(MessageId),
    /// The most urgent ready one of the producer's queue.
    Ready(LinkId),
    /// The one of the producer's queue whose delay ends first.
    Delayed(LinkId),
    /// The one of the producer's queue that was buried first.
    Buried(LinkId),
}

//! The rules of a queue, which its operator chooses.

use crate::{Bound, Nanos, Redelivery};

/// The rules of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    /// The place of a released message.
    pub release_order: ReleaseOrder,
    /// It stays, with its counts and its pause, though nothing points to it. Any other queue goes
    /// with its last message, producer and consumer.
    pub kept: bool,
    /// Failed deliveries that make a message a dead letter; zero: however many there are.
    pub max_delivery_attempts: u32,
    /// The fate of a dead letter.
    pub dead_letters: DeadLetters,
    /// A pop from the queue as a list is leased to the session for so long. Its next command says
    /// that the element has arrived, and so does the end of that time while the session lives. A
    /// session that ends before returns it. `None`: a popped element is gone at once.
    pub pop_lease: Option<Nanos>,
    /// How much it may hold.
    pub bounds: QueueBounds,
    /// How long a returned message is hidden.
    pub redelivery: Redelivery,
}

/// How much a queue may hold, or each subscription of a topic, and how it treats sends beyond that.
/// All stored messages count, in any state. Messages that the broker itself moves there (dead
/// letters, messages that a client gives back) are never held off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBounds {
    /// Messages; `None`: any number.
    pub messages_max: Option<u64>,
    /// Bytes of their bodies; `None`: any number.
    pub bytes_max: Option<u64>,
    /// The treatment of a message that does not fit.
    pub when_full: WhenFull,
    /// Senders are held off so that messages wait no longer than this, as far as can be foreseen.
    /// No more may be there than have left in that time, and nothing is taken while the oldest has
    /// waited longer. It means nothing if `when_full` is to shed; a server does not start so.
    pub target_age: Option<Nanos>,
}

impl QueueBounds {
    /// True if there is any.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        self.messages_max.is_some() || self.bytes_max.is_some() || self.target_age.is_some()
    }

    /// One that there is.
    #[must_use]
    pub fn first(&self) -> Option<Bound> {
        let messages = self.messages_max.map(Bound::Messages);
        let bytes = || self.bytes_max.map(Bound::Bytes);
        messages.or_else(bytes).or_else(|| self.target_age.map(Bound::Age))
    }

    /// True if they contradict each other: an age to be kept by holding off, and no sender held
    /// off.
    #[must_use]
    pub const fn are_at_odds(&self) -> bool {
        self.target_age.is_some() && !self.holds_off()
    }

    /// The same for a queue that is no subscription.
    #[must_use]
    pub const fn of_queue(self) -> Self {
        match self.when_full {
            WhenFull::Disconnect => Self { when_full: WhenFull::Reject, ..self },
            _ => self,
        }
    }

    /// True if they are kept by not storing messages.
    #[must_use]
    pub const fn holds_off(&self) -> bool {
        self.is_bounded() && matches!(self.when_full, WhenFull::Block | WhenFull::Reject)
    }
}

/// The treatment of a message for which a queue has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits for a place, in a line; a batch is refused.
    #[default]
    Block,
    /// It is refused.
    Reject,
    /// It is stored, and the oldest ready messages of the least urgent priority are deleted until
    /// it fits. The new one itself goes if all others are held, delayed or buried.
    DropOldest,
    /// The same, but that these become dead letters; if dead letters are dropped, and in the
    /// queue of dead letters itself, they are deleted.
    DeadLetter,
    /// It is stored, and the subscription's consumers are disconnected. A subscription that is not
    /// durable goes with its messages; a durable one stays, and so do its messages. A queue that is
    /// no subscription refuses, as by [`WhenFull::Reject`].
    Disconnect,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self {
            release_order: ReleaseOrder::default(),
            kept: false,
            max_delivery_attempts: MAX_DELIVERY_ATTEMPTS,
            dead_letters: DeadLetters::default(),
            pop_lease: None,
            bounds: QueueBounds::default(),
            redelivery: Redelivery::default(),
        }
    }
}

/// The treatment of a message that has expired or that no consumer can process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetters {
    /// It waits in the queue for these and says why, unless its sender asked that memory alone
    /// keeps it: then it is deleted, as in ActiveMQ. So short-lived messages fill nothing.
    #[default]
    ParkPersistent,
    /// It waits there, regardless of its sender's wish.
    Park,
    /// It is deleted.
    Drop,
}

/// The place of a released message among those of its priority. A lease that ends by time or with
/// its session is no release: such a message always keeps its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReleaseOrder {
    /// Its old place: in front of all that were stored after it.
    #[default]
    Front,
    /// Behind all that are ready now, so that workers that only release visit every message.
    Back,
}

/// As in Artemis.
const MAX_DELIVERY_ATTEMPTS: u32 = 10;

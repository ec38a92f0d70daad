//! The records of which frames and snapshots are made.

use alloc::vec::Vec;
use core::fmt;

use model::{Durability, Lsn, MessageId, Nanos};

/// Where a message stands as far as the log knows. Leases are not journalled: a leased message is
/// written as ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredState {
    /// Waits for a consumer.
    Ready,
    /// Hidden until then.
    Delayed {
        /// When its delay ends.
        until: Nanos,
    },
    /// Set aside.
    Buried {
        /// Its place among the buried messages of all queues: smaller was buried earlier.
        order: u64,
    },
}

/// What happened to a message so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Deliveries.
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

/// What can change about a message while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Smaller is more urgent.
    pub priority: u32,
    /// The delay that was last asked for it.
    pub delay: Nanos,
    /// Where it stands.
    pub state: StoredState,
    /// Its place among ready messages of its priority; its id unless it was released to the back.
    pub order: u64,
    /// What happened to it so far.
    pub counters: Counters,
}

/// One record, borrowed from the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordView<'a> {
    /// A message was stored, or is stored anew by compaction.
    Message {
        /// Which.
        message: MessageId,
        /// How it stands.
        standing: Standing,
        /// What it survives.
        durability: Durability,
        /// When it was stored.
        created: Nanos,
        /// How long a consumer may hold it.
        lease: Nanos,
        /// Its queue.
        queue: &'a str,
        /// Its body.
        body: &'a [u8],
    },
    /// A message was released, buried, kicked or taken out of its delay.
    Changed {
        /// Which.
        message: MessageId,
        /// How it stands now.
        standing: Standing,
    },
    /// A message is gone.
    Deleted {
        /// Which.
        message: MessageId,
    },
    /// In a snapshot: where the counters stood.
    Sequence {
        /// The next message's number.
        next_message: u64,
        /// The next buried message's place.
        next_buried: u64,
        /// The latest moment the engine knew.
        latest: Nanos,
    },
    /// In a snapshot: a message whose body is in the log.
    Located {
        /// Which.
        message: MessageId,
        /// How it stands.
        standing: Standing,
        /// What it survives.
        durability: Durability,
        /// When it was stored.
        created: Nanos,
        /// How long a consumer may hold it.
        lease: Nanos,
        /// Its queue.
        queue: &'a str,
        /// The frame with its Message record.
        location: Lsn,
        /// The size of that record.
        record_bytes: u32,
    },
}

/// Why bytes are not the records that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// They end inside a record.
    Truncated,
    /// A record begins with this unknown kind.
    UnknownKind(u8),
    /// A field holds what it cannot; names the field.
    Invalid(&'static str),
    /// The record is of a kind that does not belong here.
    Misplaced(&'static str),
    /// A change of a message that does not exist.
    UnknownMessage(MessageId),
    /// A snapshot holds this message twice.
    DuplicateMessage(MessageId),
    /// No frame brought the body of this message.
    MissingBody(MessageId),
    /// Frames were not replayed in ascending order.
    OutOfOrder(Lsn),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside a record"),
            Self::UnknownKind(kind) => write!(f, "unknown kind of record {kind}"),
            Self::Invalid(field) => write!(f, "a record's {field} is not valid"),
            Self::Misplaced(kind) => write!(f, "a {kind} record does not belong here"),
            Self::UnknownMessage(id) => write!(f, "message {id} is changed but does not exist"),
            Self::DuplicateMessage(id) => write!(f, "message {id} is there twice"),
            Self::MissingBody(id) => write!(f, "the body of message {id} is nowhere in the log"),
            Self::OutOfOrder(lsn) => write!(f, "frame {lsn} is not after the one before it"),
        }
    }
}

impl core::error::Error for RecordError {}

/// The records of a frame or of a snapshot's chunk, for people to look at. Ends after an error.
pub fn describe(payload: &[u8]) -> impl Iterator<Item = Result<RecordView<'_>, RecordError>> {
    let _ = payload;
    Vec::new().into_iter()
}

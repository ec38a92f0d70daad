//! Transactions: the parts of one wait in memory, unseen, until it commits. A commit is one frame,
//! or a chain of frames if it is larger than a frame may be.
//!
//! A message gets its number at the commit, so the order in a queue is the order of commits. A
//! message settled in a transaction stays held by its session, and nothing else can be done with
//! it. A part that is refused makes the transaction rollback-only: a commit rolls it back then.
//! Nothing of an open transaction is journalled; a session's end rolls back.

pub(crate) mod batches;
pub(crate) mod commit_waits;
mod parts;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use model::{MessageId, NewMessage, QueueName, Refusal, Settlement, TransactionId, limits};

use crate::admission::Tally;
use crate::directory::Target;
use crate::ids::SessionSlot;

/// The state that open transactions share; their parts are in their sessions.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Commits that wait for room, the first to come first.
    pub(crate) awaiting: VecDeque<(SessionSlot, TransactionId)>,
    /// Which sessions observe which keys.
    pub(crate) observed: BTreeMap<QueueName, BTreeSet<SessionSlot>>,
    /// Bytes that the parts of all open transactions count for.
    pub(crate) uncommitted_bytes: usize,
}

/// The parts of a transaction so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) puts: Vec<(Target, NewMessage)>,
    pub(crate) settled: Vec<(MessageId, Settlement)>,
    /// How many of the messages have a name of their sender's.
    pub(crate) named: usize,
    /// The bytes that its parts count for.
    pub(crate) bytes: usize,
    pub(crate) tally: Tally,
    /// A part was refused.
    pub(crate) rollback_only: bool,
    /// It was committed, and waits for room or for a place: nothing can be added to it.
    pub(crate) waits: bool,
    /// How many future parts of it wait for memory.
    pub(crate) parts_waiting: usize,
    /// It was committed, and waits for these: nothing more is to be a part of it.
    pub(crate) awaits_parts: bool,
    /// Its commit was said to wait, and is answered as the one of this ticket.
    pub(crate) ticket: Option<u64>,
}

/// The bytes and records that a part of a transaction counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) bytes: usize,
    pub(crate) records: usize,
}

/// How a commit lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Frame,
    Chain,
}

impl Transaction {
    /// One more part of so many bytes, with a record or two; an error when it is one too many.
    fn grow(&mut self, part: Part) -> Result<(), Refusal> {
        let Part { bytes, records } = part;
        let parts = self.puts.len() + self.settled.len() + self.named + records;
        if parts > limits::TRANSACTION_RECORDS_MAX
            || self.bytes + bytes > limits::TRANSACTION_BYTES_MAX
        {
            return Err(Refusal::TransactionTooLarge);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// The targets of the messages that it would put.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.puts.iter().map(|(target, _)| *target)
    }

    /// The messages that it would put, with their targets.
    pub(crate) fn puts(&self) -> impl Iterator<Item = (&Target, &NewMessage)> {
        self.puts.iter().map(|(target, message)| (target, message))
    }

    /// The settlements that it would perform.
    pub(crate) fn settlements(&self) -> impl Iterator<Item = &(MessageId, Settlement)> {
        self.settled.iter()
    }

    /// The messages that it would settle.
    pub(crate) fn settled(&self) -> impl Iterator<Item = MessageId> {
        self.settled.iter().map(|(id, _)| *id)
    }
}

/// The keys that a session observes.
#[derive(Debug, Default)]
pub(crate) struct Observing {
    pub(crate) names: BTreeSet<QueueName>,
    /// One of them has changed, and none matters any more.
    pub(crate) stale: bool,
}

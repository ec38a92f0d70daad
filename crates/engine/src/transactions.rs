//! Transactions: the parts of one wait in memory, unseen, until it commits. A commit is one frame,
//! or a chain of frames if it is larger than a frame may be.
//!
//! A message gets its number at the commit, so the order in a queue is the order of commits. A
//! message settled in a transaction stays held by its session, and nothing else can be done with
//! it. A part that is refused makes the transaction rollback-only: a commit rolls it back then.
//! Nothing of an open transaction is journalled; a session's end rolls back.

pub(crate) mod commit_waits;
mod parts;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use model::{MessageId, NewMessage, Refusal, Settlement, TableStep, TransactionId, limits};

use crate::admission::{Put, Tally};
use crate::directory::Target;
use crate::ids::SessionSlot;
use crate::keyspace::collections::{step_bytes_max, step_records_max};

/// The state that open transactions share; their parts are in their sessions.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Commits that wait for room, the first to come first.
    awaiting: VecDeque<(SessionSlot, TransactionId)>,
    /// Bytes that the parts of all open transactions count for.
    uncommitted_bytes: usize,
}

/// The open transactions of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionTransactions {
    open: BTreeMap<TransactionId, Transaction>,
}

/// The parts of a transaction so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    puts: Vec<(Target, NewMessage)>,
    settled: Vec<(MessageId, Settlement)>,
    tables: Vec<TableStep>,
    /// Records that the steps on tables come to, at most.
    table_records: usize,
    /// How many of the messages have a name of their sender's.
    named: usize,
    /// The bytes that its parts count for.
    bytes: usize,
    tally: Tally,
    /// A part was refused.
    rollback_only: bool,
    /// It was committed, and waits for room or for a place: nothing can be added to it.
    waits: bool,
    /// How many future parts of it wait for memory.
    parts_waiting: usize,
    /// It was committed, and waits for these: nothing more is to be a part of it.
    awaits_parts: bool,
    /// Its commit was said to wait, and is answered as the one of this ticket.
    ticket: Option<u64>,
}

/// The bytes and records that a part of a transaction counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    bytes: usize,
    records: usize,
}

impl Part {
    /// A message, which may have a name of its sender's.
    pub(crate) fn of_put(bytes: usize, is_named: bool) -> Self {
        Self { bytes, records: 1 + usize::from(is_named) }
    }

    pub(crate) const fn of_settlement(bytes: usize) -> Self {
        Self { bytes, records: 1 }
    }

    /// A step on a table, which is kept with all that it brings.
    pub(crate) fn of_table_step(step: &TableStep) -> Self {
        let bytes = size_of::<TableStep>() + step.table.as_str().len() + step.body_bytes();
        Self { bytes: bytes.max(step_bytes_max(step)), records: step_records_max(step).max(1) }
    }
}

/// How a commit lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Frame,
    Chain,
}

impl Transactions {
    pub(crate) const fn awaiting(&self) -> &VecDeque<(SessionSlot, TransactionId)> {
        &self.awaiting
    }

    pub(crate) const fn uncommitted_bytes(&self) -> usize {
        self.uncommitted_bytes
    }

    /// The first commit that waits for room waits no more.
    pub(crate) fn take_awaiting(&mut self) -> Option<(SessionSlot, TransactionId)> {
        self.awaiting.pop_front()
    }

    /// A transaction has ended, and no part of it waits.
    pub(crate) fn end(&mut self, transaction: &Transaction) {
        assert!(transaction.parts_waiting == 0, "no part waits for a transaction that has ended");
        assert!(self.uncommitted_bytes >= transaction.bytes, "open transactions are counted");
        self.uncommitted_bytes -= transaction.bytes;
    }
}

impl SessionTransactions {
    pub(crate) const fn open(&self) -> &BTreeMap<TransactionId, Transaction> {
        &self.open
    }

    /// The session closes, and rolls its transactions back.
    pub(crate) fn take_open(&mut self) -> BTreeMap<TransactionId, Transaction> {
        core::mem::take(&mut self.open)
    }

    /// The transaction with this number, which the caller has found to take parts.
    pub(crate) fn growing(&mut self, id: TransactionId) -> &mut Transaction {
        let transaction = self.open.get_mut(&id).expect("invariant: it has just grown");
        assert!(!transaction.waits, "nothing is added to a transaction after its commit");
        assert!(!transaction.rollback_only, "nothing is added to a transaction that rolls back");
        transaction
    }
}

impl Transaction {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) const fn rollback_only(&self) -> bool {
        self.rollback_only
    }

    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) const fn parts_waiting(&self) -> usize {
        self.parts_waiting
    }

    pub(crate) const fn awaits_parts(&self) -> bool {
        self.awaits_parts
    }

    pub(crate) const fn ticket(&self) -> Option<u64> {
        self.ticket
    }

    /// How many of the messages have a name of their sender's.
    pub(crate) const fn named(&self) -> usize {
        self.named
    }

    /// It puts one more message.
    pub(crate) fn add_put(&mut self, target: Target, new: NewMessage, put: &Put) {
        self.tally.add_put(target, put);
        self.named += usize::from(new.send_id.is_some());
        self.puts.push((target, new));
        assert!(self.named <= self.puts.len(), "each name is of a message");
    }

    /// It settles one more message, for which a record of so many bytes is written.
    pub(crate) fn add_settled(&mut self, id: MessageId, settlement: Settlement, bytes: usize) {
        self.tally.add_settled(bytes);
        self.settled.push((id, settlement));
    }

    /// It has one more step on a table, for which records of so many bytes are written.
    pub(crate) fn add_table_step(&mut self, step: TableStep, bytes: usize) {
        self.tally.add_written(bytes);
        self.table_records += step_records_max(&step).max(1);
        self.tables.push(step);
        assert!(self.table_records >= self.tables.len(), "each step is counted");
    }

    /// One more part of so many bytes, with a record or two; an error when it is one too many.
    fn grow(&mut self, part: Part) -> Result<(), Refusal> {
        let Part { bytes, records } = part;
        let parts = self.puts.len() + self.settled.len() + self.named + self.table_records;
        if parts + records > limits::TRANSACTION_RECORDS_MAX
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
    pub(crate) fn puts(&self) -> impl ExactSizeIterator<Item = (&Target, &NewMessage)> {
        self.puts.iter().map(|(target, message)| (target, message))
    }

    /// The settlements that it would perform.
    pub(crate) fn settlements(&self) -> impl ExactSizeIterator<Item = &(MessageId, Settlement)> {
        self.settled.iter()
    }

    /// Its steps on tables.
    pub(crate) fn table_steps(&self) -> &[TableStep] {
        &self.tables
    }

    /// The same, of a transaction that has ended.
    pub(crate) fn into_settlements(self) -> Vec<(MessageId, Settlement)> {
        self.settled
    }

    /// The messages that it would settle.
    pub(crate) fn settled(&self) -> impl Iterator<Item = MessageId> {
        self.settled.iter().map(|(id, _)| *id)
    }
}

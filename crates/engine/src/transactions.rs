//! Transactions: what is said in one waits in memory, unseen, until it commits as one frame.
//!
//! A message gets its number at the commit, so the order in a queue is the order of commits. What
//! was settled in a transaction stays held by its session, and nothing else can be done with it.
//! A part that is refused dooms the transaction: it can only be rolled back, and a commit does
//! that. Nothing of an open transaction is journalled; a session's end rolls back.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{After, MessageId, NewMessage, Refusal, Reply, Settlement, TransactionId, limits};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::log::{CHANGED_BYTES_MAX, NoRoom};
use crate::message::State;
use crate::producing::Drafted;
use crate::queue::QueueSlot;
use crate::session::SessionSlot;
use crate::targets::Target;

/// What was said in a transaction so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    puts: Vec<(Target, NewMessage)>,
    settled: Vec<(MessageId, Settlement)>,
    /// What its frame may take.
    bytes: usize,
    /// A part was refused.
    doomed: bool,
}

impl Transaction {
    /// One more part of so many bytes; an error when it is one too many.
    fn grow(&mut self, bytes: usize, bytes_max: usize) -> Result<(), Refusal> {
        let parts = self.puts.len() + self.settled.len() + 1;
        self.bytes += bytes;
        if parts > limits::TRANSACTION_RECORDS_MAX || self.bytes > bytes_max {
            return Err(Refusal::TransactionTooLarge);
        }
        Ok(())
    }

    /// Where it would put messages.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.puts.iter().map(|(target, _)| *target)
    }

    /// What it would settle.
    pub(crate) fn settled(&self) -> impl Iterator<Item = MessageId> {
        self.settled.iter().map(|(id, _)| *id)
    }
}

impl Engine {
    pub(crate) fn begin(&mut self, by: SessionSlot, id: TransactionId) -> Outcome {
        let transactions = &mut self.sessions.at_mut(by).transactions;
        if transactions.len() >= limits::SESSION_TRANSACTIONS_MAX || transactions.contains_key(&id)
        {
            return Outcome::refused(Refusal::TooManyTransactions);
        }
        transactions.insert(id, Transaction::default());
        Outcome::reply(After::NOTHING, Reply::Done)
    }

    pub(crate) fn commit(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(transaction) = self.sessions.at_mut(by).transactions.remove(&id) else {
            return Outcome::refused(Refusal::NoSuchTransaction);
        };
        self.took_steps(transaction.puts.len() + transaction.settled.len());
        if transaction.doomed {
            return self.undo(by, &transaction, Refusal::TransactionFailed, effects);
        }
        let drafted = match self.draft_all(by, &transaction, effects) {
            Ok(drafted) => drafted,
            Err(refusal) => return self.undo(by, &transaction, refusal, effects),
        };
        let mut woken = BTreeSet::new();
        let mut in_memory = Vec::new();
        for (id, message) in drafted {
            woken.insert(message.queue);
            in_memory.extend((!message.is_journalled()).then_some(id));
            self.admit(id, message);
        }
        self.end_transaction(by, &transaction);
        let has_gone = transaction.settled().any(|id| self.went_with_subscription(id));
        for (id, settlement) in transaction.settled {
            woken.extend(self.apply_settlement(by, id, settlement, effects));
        }
        self.bind(&in_memory);
        Outcome::reply(self.log.after_settling(has_gone), Reply::Done).waking_all(woken)
    }

    /// What is in no record shows a commit no sooner than what is: a crash may undo that.
    fn bind(&mut self, in_memory: &[MessageId]) {
        let after = self.log.after_open();
        for id in in_memory {
            if let Some(message) = self.messages.get_mut(id.0) {
                message.changed = after.lsn;
            }
        }
    }

    pub(crate) fn rollback(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(transaction) = self.sessions.at_mut(by).transactions.remove(&id) else {
            return Outcome::refused(Refusal::NoSuchTransaction);
        };
        self.took_steps(transaction.puts.len() + transaction.settled.len());
        let woken = self.undo_all(by, &transaction, effects);
        Outcome::reply(After::NOTHING, Reply::Done).waking_all(woken)
    }

    /// Ends all transactions of a session that closes. What they settled is still held, and
    /// returns with all else that the session holds.
    pub(crate) fn drop_transactions(&mut self, by: SessionSlot) {
        let transactions = core::mem::take(&mut self.sessions.at_mut(by).transactions);
        for transaction in transactions.values() {
            self.end_transaction(by, transaction);
        }
        assert!(self.sessions.at(by).settling.is_empty(), "only transactions hold what is settled");
    }

    /// A part that is refused dooms its transaction.
    pub(crate) fn refuse_part(
        &mut self,
        by: SessionSlot,
        transaction: Option<TransactionId>,
        refusal: Refusal,
    ) -> Outcome {
        self.doom(by, transaction);
        Outcome::refused(refusal)
    }

    pub(crate) fn put_in_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        target: Target,
        new: NewMessage,
    ) -> Outcome {
        let bytes = new.body.len() + PUT_BYTES_MAX;
        if let Err(refusal) = self.grow(by, id, bytes) {
            return Outcome::refused(refusal);
        }
        *self.uncommitted_of(target) += 1;
        let transactions = &mut self.sessions.at_mut(by).transactions;
        if let Some(transaction) = transactions.get_mut(&id) {
            transaction.puts.push((target, new));
        }
        Outcome::reply(After::NOTHING, Reply::Done)
    }

    pub(crate) fn settle_in_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        message: MessageId,
        settlement: Settlement,
    ) -> Outcome {
        if self.held_queue(by, message).is_none() {
            self.doom(by, Some(id));
            return self.not_found();
        }
        if let Err(refusal) = self.grow(by, id, settled_bytes_max(&settlement)) {
            return Outcome::refused(refusal);
        }
        self.hold_for_transaction(by, message);
        let session = self.sessions.at_mut(by);
        session.settling.insert(message);
        if let Some(transaction) = session.transactions.get_mut(&id) {
            transaction.settled.push((message, settlement));
        }
        Outcome::reply(After::NOTHING, Reply::Done)
    }

    /// Nobody else gets it until the transaction ends, however long that takes.
    fn hold_for_transaction(&mut self, by: SessionSlot, id: MessageId) {
        if let State::Leased { .. } = self.living(id).state() {
            self.leave(id);
            self.enter(id, State::Held { holder: by });
        }
    }

    fn doom(&mut self, by: SessionSlot, transaction: Option<TransactionId>) {
        let transactions = &mut self.sessions.at_mut(by).transactions;
        if let Some(transaction) = transaction.and_then(|id| transactions.get_mut(&id)) {
            transaction.doomed = true;
        }
    }

    fn grow(&mut self, by: SessionSlot, id: TransactionId, bytes: usize) -> Result<(), Refusal> {
        let bytes_max = self.log.frame_bytes_max.min(limits::TRANSACTION_BYTES_MAX);
        let transaction = self.sessions.at_mut(by).transactions.get_mut(&id);
        let transaction = transaction.ok_or(Refusal::NoSuchTransaction)?;
        if transaction.doomed {
            return Err(Refusal::TransactionFailed);
        }
        let grown = transaction.grow(bytes, bytes_max);
        transaction.doomed = grown.is_err();
        grown
    }

    /// Appends the records of all that it puts, and leaves room for those of what it settles. On
    /// error nothing is left of it.
    fn draft_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        effects: &mut Effects,
    ) -> Result<Vec<Drafted>, Refusal> {
        let settled_bytes = transaction.settled.iter().map(|(_, how)| settled_bytes_max(how)).sum();
        if !self.log.surely_takes(settled_bytes) {
            return Err(Refusal::StoreFull);
        }
        let draft = self.log.begin_transaction(settled_bytes, effects);
        let next = self.next.message;
        let mut drafted = Vec::with_capacity(transaction.puts.len());
        for (target, new) in &transaction.puts {
            // What was deleted meanwhile would have been deleted with the message, too.
            if self.is_gone(*target) {
                continue;
            }
            if let Err(no_room) = self.draft(by, *target, new, &mut drafted, effects) {
                self.log.take_back(&draft, effects);
                self.next.message = next;
                self.leave_groups(&drafted);
                return Err(match no_room {
                    NoRoom::InLog => Refusal::StoreFull,
                    NoRoom::InFrame => Refusal::TransactionTooLarge,
                });
            }
        }
        Ok(drafted)
    }

    /// What was drafted is not stored after all.
    fn leave_groups(&mut self, drafted: &[Drafted]) {
        for (_, message) in drafted {
            if message.group() != 0 {
                self.groups.part(message.group());
            }
        }
    }

    fn undo(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Outcome {
        let woken = self.undo_all(by, transaction, effects);
        Outcome::refused(refusal).waking_all(woken)
    }

    /// Nothing of it happens. What it settled is as after a delivery that failed; that need not be
    /// one frame.
    fn undo_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        effects: &mut Effects,
    ) -> BTreeSet<QueueSlot> {
        self.end_transaction(by, transaction);
        let mut woken = BTreeSet::new();
        // On a full device nothing is counted rather than no room found: a release is no record.
        let counts = self.log.surely_takes(transaction.settled.len() * CHANGED_BYTES_MAX);
        let settlement = if counts { Settlement::Fail } else { Settlement::Release };
        for id in transaction.settled() {
            self.log.make_way(CHANGED_BYTES_MAX, effects);
            woken.extend(self.apply_settlement(by, id, settlement, effects));
        }
        woken
    }

    /// Nothing points to what it was about any more.
    fn end_transaction(&mut self, by: SessionSlot, transaction: &Transaction) {
        for target in transaction.targets() {
            let uncommitted = self.uncommitted_of(target);
            assert!(*uncommitted > 0, "a destination knows its transactions");
            *uncommitted -= 1;
            self.remove_target_if_idle(target);
        }
        let session = self.sessions.at_mut(by);
        for id in transaction.settled() {
            let was_settling = session.settling.remove(&id);
            assert!(was_settling, "a message is settled in one transaction");
        }
    }
}

/// What the record of a settlement may take.
fn settled_bytes_max(settlement: &Settlement) -> usize {
    match settlement {
        Settlement::Accept => DELETED_BYTES_MAX,
        Settlement::Release | Settlement::Fail | Settlement::Park(_) => CHANGED_BYTES_MAX,
    }
}

/// A Message record without its body, and with one queue's name.
const PUT_BYTES_MAX: usize = 64 + limits::QUEUE_NAME_BYTES_MAX;

/// A Deleted record.
const DELETED_BYTES_MAX: usize = 16;

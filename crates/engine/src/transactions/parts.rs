//! The parts of open transactions: how they come, count and go.

use alloc::collections::BTreeSet;

use model::{Command, DependsOn, MessageId, Refusal, Reply, TableStep, TransactionId, limits};

use crate::admission::Records;
use crate::bodies::Bodies;
use crate::directory::{Directory, Target};
use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{check_step, step_bytes_max};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::drafting::Drafted;
use crate::store::message::State;
use crate::transactions::{Part, Transaction, Transactions};

impl Sessions {
    pub(crate) fn begin(&mut self, by: SessionSlot, id: TransactionId) -> Outcome {
        let transactions = &mut self.at_mut(by).transactions_mut().open;
        if transactions.len() >= limits::SESSION_TRANSACTIONS_MAX || transactions.contains_key(&id)
        {
            return Outcome::refused(Refusal::TooManyTransactions);
        }
        transactions.insert(id, Transaction::default());
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Notes if its commit waits for a place.
    pub(crate) fn set_waits(&mut self, by: SessionSlot, id: TransactionId, waits: bool) {
        if let Some(transaction) = self.at_mut(by).transactions_mut().open.get_mut(&id) {
            transaction.waits = waits;
        }
    }

    /// Counts a future part of a transaction that begins or ends to wait.
    pub(crate) fn count_waiting_part(
        &mut self,
        by: SessionSlot,
        id: Option<TransactionId>,
        waits: bool,
    ) {
        let transactions = &mut self.at_mut(by).transactions_mut().open;
        if let Some(transaction) = id.and_then(|id| transactions.get_mut(&id)) {
            let count = &mut transaction.parts_waiting;
            assert!(waits || *count > 0, "a part waits before it goes on");
            *count = if waits { *count + 1 } else { *count - 1 };
        }
    }

    /// Notes if its commit waits for its parts.
    pub(crate) fn set_awaits_parts(&mut self, by: SessionSlot, id: TransactionId, awaits: bool) {
        if let Some(transaction) = self.at_mut(by).transactions_mut().open.get_mut(&id) {
            transaction.awaits_parts = awaits;
        }
    }

    /// True if a command comes too late for its transaction. The commit came before it and waits
    /// for its parts: those go on, but this command does not.
    pub(crate) fn comes_too_late(&self, by: SessionSlot, command: &Command) -> bool {
        let transactions = &self.at(by).transactions().open;
        let about = command.transaction().and_then(|id| transactions.get(&id));
        about.is_some_and(|transaction| transaction.awaits_parts)
    }

    /// True if something that is to be a part of it waits.
    pub(crate) fn has_parts_waiting(&self, by: SessionSlot, id: TransactionId) -> bool {
        let transaction = self.at(by).transactions().open.get(&id);
        transaction.is_some_and(|transaction| transaction.parts_waiting > 0)
    }

    /// True if something could be added to it.
    pub(crate) fn takes_parts(&self, by: SessionSlot, id: TransactionId) -> bool {
        self.open_transaction(by, id).is_some_and(|transaction| !transaction.rollback_only)
    }

    /// If a commit that waited for a place waits for room now, it is answered as that.
    pub(crate) fn answer_late(&mut self, by: SessionSlot, id: TransactionId, ticket: u64) {
        if let Some(transaction) = self.at_mut(by).transactions_mut().open.get_mut(&id) {
            assert!(transaction.waits, "a commit that waited for a place waits for room now");
            transaction.ticket = Some(ticket);
        }
    }

    /// A part that is refused makes its transaction rollback-only.
    pub(crate) fn refuse_part(
        &mut self,
        by: SessionSlot,
        transaction: Option<TransactionId>,
        refusal: Refusal,
        log: &FrameWriter,
    ) -> Outcome {
        self.set_rollback_only(by, transaction);
        log.refuse(refusal)
    }

    pub(crate) fn set_rollback_only(
        &mut self,
        by: SessionSlot,
        transaction: Option<TransactionId>,
    ) {
        let transactions = &mut self.at_mut(by).transactions_mut().open;
        let open = transaction.and_then(|id| transactions.get_mut(&id));
        if let Some(transaction) = open.filter(|transaction| !transaction.waits) {
            transaction.rollback_only = true;
        }
    }

    /// Bytes that a transaction holds.
    pub(crate) fn transaction_bytes(&self, by: SessionSlot, id: TransactionId) -> usize {
        self.at(by).transactions().open.get(&id).map_or(0, |transaction| transaction.bytes)
    }

    /// A transaction to which something can still be added.
    pub(crate) fn open_transaction(
        &self,
        by: SessionSlot,
        id: TransactionId,
    ) -> Option<&Transaction> {
        self.at(by).transactions().open.get(&id).filter(|transaction| !transaction.waits)
    }

    pub(crate) fn take_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        store: &mut MessageStore,
    ) -> Transaction {
        let transaction = self.at_mut(by).transactions_mut().open.remove(&id);
        let transaction = transaction.expect("invariant: it was just found");
        let tables = transaction.tables.len();
        store.took_steps(transaction.puts.len() + transaction.settled.len() + tables);
        transaction
    }
}

impl MessageStore {
    pub(crate) fn is_hidden(&self, id: MessageId) -> bool {
        let message = self.messages.get(id.0);
        message.is_some_and(|message| matches!(message.state(), State::Delayed { .. }))
    }

    pub(crate) fn is_journalled(&self, id: MessageId) -> bool {
        self.messages.get(id.0).is_some_and(|message| message.is_journalled())
    }

    /// Makes answers about these messages wait until the whole commit is safe: a crash may undo
    /// it.
    pub(crate) fn bind(&mut self, ids: &[MessageId], after: DependsOn) {
        for id in ids {
            if let Some(message) = self.messages.get_mut(id.0) {
                message.set_changed(after.lsn);
            }
        }
    }
}

impl Transactions {
    /// One more step on a table. A refused one makes its transaction rollback-only.
    pub(crate) fn add_step(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        step: TableStep,
        (bodies, log): (&Bodies, &FrameWriter),
        sessions: &mut Sessions,
    ) -> Outcome {
        if let Err(refusal) = check_step(&step) {
            sessions.set_rollback_only(by, Some(id));
            return Outcome::refused(refusal);
        }
        if let Err(refusal) = self.grow(by, id, Part::of_table_step(&step), bodies, sessions) {
            return Outcome::refused(refusal);
        }
        let recorded = if log.keeps_nothing() { 0 } else { step_bytes_max(&step) };
        sessions.at_mut(by).transactions_mut().growing(id).add_table_step(step, recorded);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn grow(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        part: Part,
        bodies: &Bodies,
        sessions: &mut Sessions,
    ) -> Result<(), Refusal> {
        let transaction = sessions.at_mut(by).transactions_mut().open.get_mut(&id);
        let transaction = transaction.filter(|transaction| !transaction.waits);
        let transaction = transaction.ok_or(Refusal::NoSuchTransaction)?;
        if transaction.rollback_only {
            return Err(Refusal::TransactionFailed);
        }
        let all = self.uncommitted_bytes + part.bytes <= limits::UNCOMMITTED_BYTES_MAX;
        let fits = all && transaction.bytes + part.bytes <= bodies.uncommitted_max();
        let grown = if fits { transaction.grow(part) } else { Err(Refusal::TransactionTooLarge) };
        match grown {
            Ok(()) => self.uncommitted_bytes += part.bytes,
            Err(_) => transaction.rollback_only = true,
        }
        grown
    }
}

impl Directory {
    /// The most that the records of the commit of a transaction may take.
    pub(crate) fn records_of_transaction(
        &self,
        by: SessionSlot,
        id: TransactionId,
        sessions: &Sessions,
    ) -> Records {
        let transaction = sessions.at(by).transactions().open.get(&id);
        transaction.map_or_else(Records::default, |it| self.records_of(&it.tally))
    }
}

impl Bodies {
    /// Drafted messages are not stored after all: they leave their groups and shared bodies.
    pub(crate) fn leave_groups(&mut self, drafted: &[Drafted], store: &mut MessageStore) {
        for (_, message) in drafted {
            self.part_from_group(message);
            if let Some(name) = message.shared() {
                self.part_from_body(name, store);
            }
        }
    }
}

impl Keyspace {
    /// No other session gets the message until the transaction ends, however long that takes.
    pub(crate) fn hold_for_transaction(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        if let State::Leased { .. } = store.message(id).state() {
            self.unindex(id, sessions, store);
            let state = State::Held { holder: by, since: store.latest };
            sessions.index(id, state, store);
        }
    }

    /// The queues that a transaction puts into, if the log knows another lifetime of their lists.
    pub(crate) fn stale_targets(
        &self,
        by: SessionSlot,
        id: TransactionId,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> BTreeSet<QueueSlot> {
        let queue = |target| match target {
            Target::Queue(slot) => Some(slot).filter(|slot| store.queues.get(*slot).is_some()),
            Target::Topic(_) => None,
        };
        let targets = sessions.open_transaction(by, id).into_iter().flat_map(Transaction::targets);
        targets.filter_map(queue).filter(|slot| self.is_stale(*slot, store)).collect()
    }
}

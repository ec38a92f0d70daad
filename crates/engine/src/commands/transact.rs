//! Commands of transactions: begin, enlist, commit, roll back, and commits that wait for room.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::{
    Capacity, ChainRoom, Command, DependsOn, MessageId, Nanos, NewMessage, Refusal, Reply,
    Settlement, TransactionId, limits,
};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::admission::WaitListId;
use crate::dedup::{SendKey, Sent, SentBefore};
use crate::delivery::woken::Woken;
use crate::directory::Target;
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::keyspace::collections::TableChanges;
use crate::log::NoRoom;
use crate::outcome::Outcome;
use crate::store::drafting::Drafted;
use crate::transactions::{Part, Span, Transaction};

impl Engine {
    pub(crate) fn commit(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(transaction) = self.sessions.open_transaction(by, id) else {
            return Outcome::refused(Refusal::NoSuchTransaction);
        };
        let records = self.directory.records_of(transaction.tally());
        if transaction.rollback_only() {
            return self.refuse_commit(by, id, Refusal::TransactionFailed, effects);
        }
        if records.bytes > limits::TRANSACTION_BYTES_MAX
            || records.messages > limits::TRANSACTION_COPIES_MAX
        {
            return self.refuse_commit(by, id, Refusal::TransactionTooLarge, effects);
        }
        // Before the frame of the transaction, or the first of many.
        for slot in self.keyspace.stale_targets(by, id, &self.sessions, &self.store) {
            if !self.log.takes_change() {
                return self.refuse_commit(by, id, Refusal::StoreFull, effects);
            }
            self.keyspace.state_if_stale(slot, &mut self.store, &mut self.log, effects);
        }
        if records.bytes > self.log.frame_bytes_max() {
            return self.transactions.await_room(by, id, &mut self.sessions);
        }
        self.commit_now(by, id, Span::Frame, effects)
    }

    /// It takes effect, or is rolled back.
    pub(crate) fn commit_now(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        span: Span,
        effects: &mut Effects,
    ) -> Outcome {
        let transaction = self.sessions.take_transaction(by, id, &mut self.store);
        let (memory_max, steps) = (self.bodies.beside_messages_max(), transaction.table_steps());
        let tables = self.keyspace.table_changes(steps, memory_max, &mut self.store);
        let tables = tables.map_err(|refusal| (refusal, self.log.after_all()));
        let drafts = tables.and_then(|tables| {
            let drafts = self.draft_all(by, &transaction, &tables, span, effects)?;
            Ok((tables, drafts))
        });
        let (tables, Drafts { drafted, sent, repeated }) = match drafts {
            Ok(drafts) => drafts,
            Err((refusal, after)) => {
                let counts = !matches!(refusal, Refusal::TableConflict { .. });
                let woken = self.undo_all(by, &transaction, counts, effects);
                return Outcome::reply(after, Reply::Refused(refusal)).waking_just(woken);
            }
        };
        self.keyspace.apply_table_changes(&tables, &mut self.store);
        let (sums, has_steps) = (tables.into_sums(), !transaction.table_steps().is_empty());
        let mut woken = Woken::NONE;
        let mut ids = Vec::with_capacity(drafted.len());
        for (id, message) in drafted {
            woken.add(message.queue());
            // A frame is as durable as the message asks; of a chain not even the last is there yet.
            let is_bound = span == Span::Frame && message.is_journalled();
            ids.extend((!is_bound).then_some(id));
            self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        }
        self.end_transaction(by, &transaction);
        let has_gone = transaction.settled().any(|id| self.store.went_with_subscription(id));
        for (id, settlement) in transaction.into_settlements() {
            woken.extend(self.apply_settlement(by, id, settlement, effects));
            let is_told = !matches!(settlement, Settlement::Release | Settlement::Return);
            let is_changed = span == Span::Chain && (is_told || self.store.is_hidden(id));
            // The log says nothing of messages that memory alone keeps.
            ids.extend((is_changed && self.store.is_journalled(id)).then_some(id));
        }
        let (whole, after) = if self.log.end_chain(effects) {
            (self.log.after_all(), self.log.after_all())
        } else {
            (self.log.after_open(), self.log.after_settling(has_gone))
        };
        self.store.bind(&ids, whole);
        self.dedup.remember_all(sent, whole, &mut self.store);
        // The state that it has found in tables may be as young as the last frame.
        let found = if has_steps { self.log.after_all() } else { DependsOn::NOTHING };
        let reply = if sums.is_empty() { Reply::Done } else { Reply::Committed { sums } };
        Outcome::reply(after.and(repeated).and(found), reply).waking_just(woken)
    }

    /// Nothing of it happens.
    pub(crate) fn refuse_commit(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Outcome {
        self.give_up_parts(by, id, effects);
        let transaction = self.sessions.take_transaction(by, id, &mut self.store);
        let woken = self.undo_all(by, &transaction, true, effects);
        Outcome::refused(refusal).waking_just(woken)
    }

    pub(crate) fn rollback(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) -> Outcome {
        if self.sessions.open_transaction(by, id).is_none() {
            return Outcome::refused(Refusal::NoSuchTransaction);
        }
        self.give_up_parts(by, id, effects);
        let transaction = self.sessions.take_transaction(by, id, &mut self.store);
        let woken = self.undo_all(by, &transaction, true, effects);
        Outcome::reply(DependsOn::NOTHING, Reply::Done).waking_just(woken)
    }

    /// Ends all transactions of a session that closes. The deliveries that they settled are still
    /// held, and return with all else that the session holds.
    pub(crate) fn drop_transactions(&mut self, by: SessionSlot) {
        self.transactions.stop_awaiting(by);
        let transactions = self.sessions.at_mut(by).transactions_mut().take_open();
        for transaction in transactions.values() {
            self.end_transaction(by, transaction);
        }
        assert!(
            self.sessions.at(by).settling().is_empty(),
            "only transactions hold what is settled"
        );
    }

    pub(crate) fn put_in_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        target: Target,
        new: NewMessage,
    ) -> Outcome {
        let level = self.log.durability(new.persistence);
        let put = self.dedup.measure(target, &new, level, &self.directory, &self.store);
        let part = Part::of_put(put.bytes(), new.send_id.is_some());
        if let Err(refusal) = self.transactions.grow(by, id, part, &self.bodies, &mut self.sessions)
        {
            return Outcome::refused(refusal);
        }
        self.directory.begin_uncommitted(target, &mut self.store);
        self.sessions.at_mut(by).transactions_mut().growing(id).add_put(target, new, &put);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn settle_in_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        message: MessageId,
        settlement: Settlement,
    ) -> Outcome {
        let Some(queue) = self.sessions.held_queue(by, message, &self.store) else {
            self.sessions.set_rollback_only(by, Some(id));
            return self.log.not_found();
        };
        let bytes = self.directory.settled_bytes_max(queue, &settlement, &self.store);
        let part = Part::of_settlement(bytes);
        if let Err(refusal) = self.transactions.grow(by, id, part, &self.bodies, &mut self.sessions)
        {
            return Outcome::refused(refusal);
        }
        let is_journalled = self.store.message(message).is_journalled();
        self.keyspace.hold_for_transaction(by, message, &mut self.sessions, &mut self.store);
        self.store.began_settling(queue);
        let session = self.sessions.at_mut(by);
        session.begin_settling(message);
        let recorded = if is_journalled { bytes } else { 0 };
        session.transactions_mut().growing(id).add_settled(message, settlement, recorded);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Appends the records of all messages that it puts, and leaves room for the records of its
    /// settlements. On error nothing is left of it. An answer that tells of the error waits for the
    /// position beside it.
    fn draft_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        tables: &TableChanges<'_>,
        span: Span,
        effects: &mut Effects,
    ) -> Result<Drafts, (Refusal, DependsOn)> {
        let settled_bytes = transaction.tally().settled_bytes();
        let draft = match span {
            Span::Frame if !self.log.surely_takes(settled_bytes) => {
                return Err((Refusal::StoreFull, DependsOn::NOTHING));
            }
            Span::Frame => self.log.begin_transaction(settled_bytes, effects),
            Span::Chain => {
                // Grown by and by it would be copied as often as it doubles.
                effects.records.reserve(self.directory.records_of(transaction.tally()).bytes);
                self.log.begin_chain(effects)
            }
        };
        if let Err(no_room) = self.keyspace.log_table_changes(tables, &mut self.log, effects) {
            self.log.take_back(&draft, effects);
            return Err((refusal_of(no_room), DependsOn::NOTHING));
        }
        let next = self.store.next_message();
        let mut drafts = Drafts::new(transaction);
        let mut names = BTreeMap::new();
        for (target, new) in transaction.puts() {
            // A destination that was deleted meanwhile would have taken the message with it, too.
            if self.directory.is_gone(*target, &self.store) {
                continue;
            }
            let part = self.draft_part(by, *target, new, &mut names, &mut drafts, effects);
            if let Err(refused) = part {
                self.log.take_back(&draft, effects);
                self.store.take_back_numbers(next);
                self.bodies.leave_groups(&drafts.drafted, &mut self.store);
                return Err(refused);
            }
        }
        Ok(drafts)
    }

    /// One message of a transaction, unless it was sent before: in this transaction under one of
    /// these names, or by now otherwise.
    fn draft_part<'p>(
        &mut self,
        by: SessionSlot,
        target: Target,
        new: &'p NewMessage,
        names: &mut BTreeMap<SendKey, &'p NewMessage>,
        drafts: &mut Drafts,
        effects: &mut Effects,
    ) -> Result<(), (Refusal, DependsOn)> {
        if let Some(name) = self.dedup.send_key(target, new, &self.directory, &self.store) {
            match self.dedup.sent_before(Some(&name), new, &self.bodies, &mut self.store) {
                Some(SentBefore::Same(first)) => {
                    drafts.repeated = drafts.repeated.and(first.after());
                    return Ok(());
                }
                Some(SentBefore::Other(after)) => return Err((Refusal::SendIdReused, after)),
                None => {}
            }
            match names.get(&name) {
                Some(other) if self.bodies.fingerprint(other) != self.bodies.fingerprint(new) => {
                    return Err((Refusal::SendIdReused, DependsOn::NOTHING));
                }
                Some(_) => return Ok(()),
                None => drop(names.insert(name, new)),
            }
        }
        match self.draft(by, target, new, &mut drafts.drafted, effects) {
            Ok(sent) => drafts.sent.extend(sent),
            Err(no_room) => return Err((refusal_of(no_room), DependsOn::NOTHING)),
        }
        Ok(())
    }

    /// Nothing of it happens. The deliveries that it settled are as after a delivery that failed,
    /// or, where that does not count, as if they had been released. Their records need not be one
    /// frame.
    fn undo_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        counts: bool,
        effects: &mut Effects,
    ) -> Woken {
        self.end_transaction(by, transaction);
        let mut woken = Woken::NONE;
        // On a full device nothing is counted rather than no room found: a release is no record.
        let counts =
            counts && self.log.surely_takes(transaction.settlements().len() * CHANGED_BYTES_MAX);
        let settlement = if counts { Settlement::Fail } else { Settlement::Release };
        for id in transaction.settled() {
            self.log.make_way(CHANGED_BYTES_MAX, effects);
            woken.extend(self.apply_settlement(by, id, settlement, effects));
        }
        woken
    }

    /// Its destinations and the messages that it settled know it no more.
    fn end_transaction(&mut self, by: SessionSlot, transaction: &Transaction) {
        self.transactions.end(transaction);
        self.admission.may_go_on(WaitListId::Transactions, &mut self.store);
        for target in transaction.targets() {
            self.directory.end_uncommitted(target, &mut self.store);
            self.directory.remove_target_if_idle(target, &mut self.sessions, &mut self.store);
        }
        for id in transaction.settled() {
            self.sessions.at_mut(by).end_settling(id);
            self.store.ended_settling(self.store.message(id).queue());
        }
    }
}

impl Engine {
    /// Room that the first waiting commit needs, at most. Have it made ready, then call
    /// [`Engine::commit_awaiting`].
    #[must_use]
    pub fn awaited_room(&self) -> Option<ChainRoom> {
        let &(by, id) = self.transactions.awaiting().front()?;
        let records = self.directory.records_of_transaction(by, id, &self.sessions);
        let cut_at = self.log.chain_frame_bytes();
        // Of any two neighbours the first ended since it and a record of the second are more.
        let frames = 2 * (records.bytes / (cut_at - 2 * HEAD_BYTES_MAX)) + 2;
        let bytes = records.bytes + frames * HEAD_BYTES_MAX;
        Some(ChainRoom {
            bytes: bytes as u64,
            frames: frames as u64,
            frame_bytes: cut_at.max(records.largest_bytes + HEAD_BYTES_MAX),
            snapshot_bytes: records.snapshot_bytes,
        })
    }

    /// There is room for the first of the commits that wait: it takes effect. Or there will be
    /// none: it is refused and rolled back. No effect when none waits.
    pub fn commit_awaiting(
        &mut self,
        now: Nanos,
        has_room: bool,
        capacity: Capacity,
        effects: &mut Effects,
    ) {
        self.begin_call(now, capacity);
        let Some((by, id)) = self.transactions.take_awaiting() else { return };
        let ticket =
            self.sessions.at(by).transactions().open().get(&id).and_then(Transaction::ticket);
        self.act_as(by);
        let session = self.sessions.at(by).id();
        // Commits of the same user that waited beside it may have taken what it may have.
        let over_quota = self.over_quota(by, &Command::Commit { transaction: id });
        let refusal = if has_room { over_quota } else { Some(Refusal::StoreFull) };
        let outcome = match refusal {
            Some(refusal) => self.refuse_commit(by, id, refusal, effects),
            None => self.commit_now(by, id, Span::Chain, effects),
        };
        let outcome = match ticket {
            Some(ticket) => outcome.late(ticket, DependsOn::NOTHING),
            None => outcome,
        };
        self.conclude(session, outcome, effects);
    }
}

/// The drafts of a transaction's messages.
#[derive(Debug)]
struct Drafts {
    drafted: Vec<Drafted>,
    sent: Vec<Sent>,
    /// The position that answers about messages sent before wait for.
    repeated: DependsOn,
}

impl Drafts {
    fn new(transaction: &Transaction) -> Self {
        let drafted = Vec::with_capacity(transaction.puts().len());
        let sent = Vec::with_capacity(transaction.named());
        Self { drafted, sent, repeated: DependsOn::NOTHING }
    }
}

fn refusal_of(no_room: NoRoom) -> Refusal {
    match no_room {
        NoRoom::InLog => Refusal::StoreFull,
        NoRoom::InFrame => Refusal::TransactionTooLarge,
    }
}

/// A Chained record.
const HEAD_BYTES_MAX: usize = 12;

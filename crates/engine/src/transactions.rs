//! Transactions: what is said in one waits in memory, unseen, until it commits as one frame, or as
//! a chain of frames where it is larger than a frame may be.
//!
//! A message gets its number at the commit, so the order in a queue is the order of commits. What
//! was settled in a transaction stays held by its session, and nothing else can be done with it.
//! A part that is refused dooms the transaction: it can only be rolled back, and a commit does
//! that. Nothing of an open transaction is journalled; a session's end rolls back.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use model::{
    Command, DependsOn, MessageId, NewMessage, Refusal, Reply, Settlement, TransactionId, limits,
};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::{Bodies, Directory, Engine, MessageStore, Outcome, Transactions};
use crate::log::{Log, NoRoom};
use crate::message::State;
use crate::producing::Drafted;
use crate::send_ids::{SendKey, Sent, SentBefore};
use crate::session::{SessionSlot, Sessions};
use crate::tally::{Records, Tally};
use crate::targets::Target;
use crate::wait_lists::WaitListId;
use crate::woken::Woken;

/// What was said in a transaction so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    puts: Vec<(Target, NewMessage)>,
    settled: Vec<(MessageId, Settlement)>,
    /// How many of the messages have a name of their sender's.
    named: usize,
    /// What its parts count for.
    pub(crate) bytes: usize,
    tally: Tally,
    /// A part was refused.
    doomed: bool,
    /// It was committed, and waits for room or for a place: nothing can be added to it.
    pub(crate) waits: bool,
    /// How many of what is to be a part of it wait for memory.
    pub(crate) parts_waiting: usize,
    /// It was committed, and waits for these: nothing more is to be a part of it.
    pub(crate) awaits_parts: bool,
    /// Its commit was said to wait, and is answered as the one of this ticket.
    pub(crate) ticket: Option<u64>,
}

/// What a part of a transaction counts for.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: usize,
    records: usize,
}

/// What comes of a transaction's messages.
#[derive(Debug)]
struct Drafts {
    drafted: Vec<Drafted>,
    sent: Vec<Sent>,
    /// What waits for those that were sent before.
    repeated: DependsOn,
}

impl Drafts {
    fn new(transaction: &Transaction) -> Self {
        let drafted = Vec::with_capacity(transaction.puts.len());
        let sent = Vec::with_capacity(transaction.named);
        Self { drafted, sent, repeated: DependsOn::NOTHING }
    }
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

    /// Where it would put messages.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.puts.iter().map(|(target, _)| *target)
    }

    /// What it would put.
    pub(crate) fn puts(&self) -> impl Iterator<Item = (&Target, &NewMessage)> {
        self.puts.iter().map(|(target, message)| (target, message))
    }

    /// What it would say of what it settles.
    pub(crate) fn settlements(&self) -> impl Iterator<Item = &(MessageId, Settlement)> {
        self.settled.iter()
    }

    /// What it would settle.
    pub(crate) fn settled(&self) -> impl Iterator<Item = MessageId> {
        self.settled.iter().map(|(id, _)| *id)
    }
}

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
        let records = self.directory.records_of(&transaction.tally);
        if transaction.doomed {
            return self.refuse_commit(by, id, Refusal::TransactionFailed, effects);
        }
        if records.bytes > limits::TRANSACTION_BYTES_MAX
            || records.messages > limits::TRANSACTION_COPIES_MAX
        {
            return self.refuse_commit(by, id, Refusal::TransactionTooLarge, effects);
        }
        if !self.state_stale_targets(by, id, effects) {
            return self.refuse_commit(by, id, Refusal::StoreFull, effects);
        }
        if records.bytes > self.log.frame_bytes_max {
            return self.transactions.await_room(by, id, &mut self.sessions);
        }
        self.commit_now(by, id, Span::Frame, effects)
    }

    /// Before the frame of a transaction, or the first of many. False where there is no room.
    fn state_stale_targets(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) -> bool {
        let queue = |target| match target {
            Target::Queue(slot) => Some(slot).filter(|slot| self.store.queues.get(*slot).is_some()),
            Target::Topic(_) => None,
        };
        let targets =
            self.sessions.open_transaction(by, id).into_iter().flat_map(Transaction::targets);
        let stale =
            targets.filter_map(queue).filter(|slot| self.keyspace.is_stale(*slot, &self.store));
        for slot in stale.collect::<BTreeSet<_>>() {
            if !self.log.takes_change() {
                return false;
            }
            self.state_if_stale(slot, effects);
        }
        true
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
        let Drafts { drafted, sent, repeated } =
            match self.draft_all(by, &transaction, span, effects) {
                Ok(drafts) => drafts,
                Err((refusal, after)) => {
                    return self.undo(by, &transaction, refusal, effects).waiting_for(after);
                }
            };
        let mut woken = Woken::NONE;
        let mut ids = Vec::with_capacity(drafted.len());
        for (id, message) in drafted {
            woken.add(message.queue);
            // A frame is as durable as the message asks; of a chain not even the last is there yet.
            let is_bound = span == Span::Frame && message.is_journalled();
            ids.extend((!is_bound).then_some(id));
            self.admit(id, message);
        }
        self.end_transaction(by, &transaction);
        let has_gone = transaction.settled().any(|id| self.store.went_with_subscription(id));
        for (id, settlement) in transaction.settled {
            woken.extend(self.apply_settlement(by, id, settlement, effects));
            let is_told = !matches!(settlement, Settlement::Release | Settlement::Return);
            let is_changed = span == Span::Chain && (is_told || self.store.is_hidden(id));
            // Of what memory alone keeps the log says nothing.
            ids.extend((is_changed && self.store.is_journalled(id)).then_some(id));
        }
        let (whole, after) = if self.log.end_chain(effects) {
            (self.log.after_all(), self.log.after_all())
        } else {
            (self.log.after_open(), self.log.after_settling(has_gone))
        };
        self.store.bind(&ids, whole);
        self.remember_all(sent, whole);
        Outcome::reply(after.and(repeated), Reply::Done).waking_just(woken)
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
        self.undo(by, &transaction, refusal, effects)
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
        let woken = self.undo_all(by, &transaction, effects);
        Outcome::reply(DependsOn::NOTHING, Reply::Done).waking_just(woken)
    }

    /// Ends all transactions of a session that closes. What they settled is still held, and
    /// returns with all else that the session holds.
    pub(crate) fn drop_transactions(&mut self, by: SessionSlot) {
        self.transactions.stop_awaiting(by);
        let transactions = core::mem::take(&mut self.sessions.at_mut(by).transactions.open);
        for transaction in transactions.values() {
            self.end_transaction(by, transaction);
        }
        assert!(
            self.sessions.at(by).holdings.settling.is_empty(),
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
        let put = self.measure(target, &new);
        let is_named = new.send_id.is_some();
        let part = Part { bytes: put.bytes(), records: 1 + usize::from(is_named) };
        if let Err(refusal) = self.transactions.grow(by, id, part, &self.bodies, &mut self.sessions)
        {
            return Outcome::refused(refusal);
        }
        *self.directory.uncommitted_of(target, &mut self.store) += 1;
        let transactions = &mut self.sessions.at_mut(by).transactions.open;
        if let Some(transaction) = transactions.get_mut(&id) {
            transaction.tally.add_put(target, &put);
            transaction.puts.push((target, new));
            transaction.named += usize::from(is_named);
        }
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
            self.sessions.doom(by, Some(id));
            return self.log.not_found();
        };
        let bytes = self.directory.settled_bytes_max(queue, &settlement, &self.store);
        if let Err(refusal) = self.transactions.grow(
            by,
            id,
            Part { bytes, records: 1 },
            &self.bodies,
            &mut self.sessions,
        ) {
            return Outcome::refused(refusal);
        }
        let is_journalled = self.store.living(message).is_journalled();
        self.hold_for_transaction(by, message);
        self.admission.began_settling(queue, &mut self.store);
        let session = self.sessions.at_mut(by);
        session.holdings.settling.insert(message);
        if let Some(transaction) = session.transactions.open.get_mut(&id) {
            transaction.tally.add_settled(if is_journalled { bytes } else { 0 });
            transaction.settled.push((message, settlement));
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Nobody else gets it until the transaction ends, however long that takes.
    fn hold_for_transaction(&mut self, by: SessionSlot, id: MessageId) {
        if let State::Leased { .. } = self.store.living(id).state() {
            self.leave(id);
            self.enter(id, State::Held { holder: by, since: self.store.latest });
        }
    }

    /// Appends the records of all that it puts, and leaves room for those of what it settles. On
    /// error nothing is left of it; who is told of that waits for what it tells.
    fn draft_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        span: Span,
        effects: &mut Effects,
    ) -> Result<Drafts, (Refusal, DependsOn)> {
        let settled_bytes = transaction.tally.settled_bytes();
        let draft = match span {
            Span::Frame if !self.log.surely_takes(settled_bytes) => {
                return Err((Refusal::StoreFull, DependsOn::NOTHING));
            }
            Span::Frame => self.log.begin_transaction(settled_bytes, effects),
            Span::Chain => {
                // Grown by and by it would be copied as often as it doubles.
                effects.records.reserve(self.directory.records_of(&transaction.tally).bytes);
                self.log.begin_chain(effects)
            }
        };
        let next = self.store.next.message;
        let mut drafts = Drafts::new(transaction);
        let mut names = BTreeMap::new();
        for (target, new) in &transaction.puts {
            // What was deleted meanwhile would have been deleted with the message, too.
            if self.directory.is_gone(*target, &self.store) {
                continue;
            }
            let part = self.draft_part(by, *target, new, &mut names, &mut drafts, effects);
            if let Err(refused) = part {
                self.log.take_back(&draft, effects);
                self.store.next.message = next;
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
            match self.dedup.sent_before(Some(&name), new, &mut self.store, &self.context) {
                Some(SentBefore::Same(first)) => {
                    drafts.repeated = drafts.repeated.and(first.after);
                    return Ok(());
                }
                Some(SentBefore::Other(after)) => return Err((Refusal::SendIdReused, after)),
                None => {}
            }
            match names.get(&name) {
                Some(other) if self.context.fingerprint(other) != self.context.fingerprint(new) => {
                    return Err((Refusal::SendIdReused, DependsOn::NOTHING));
                }
                Some(_) => return Ok(()),
                None => drop(names.insert(name, new)),
            }
        }
        match self.draft(by, target, new, &mut drafts.drafted, effects) {
            Ok(sent) => drafts.sent.extend(sent),
            Err(NoRoom::InLog) => return Err((Refusal::StoreFull, DependsOn::NOTHING)),
            Err(NoRoom::InFrame) => return Err((Refusal::TransactionTooLarge, DependsOn::NOTHING)),
        }
        Ok(())
    }

    fn undo(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Outcome {
        let woken = self.undo_all(by, transaction, effects);
        Outcome::refused(refusal).waking_just(woken)
    }

    /// Nothing of it happens. What it settled is as after a delivery that failed; that need not be
    /// one frame.
    fn undo_all(
        &mut self,
        by: SessionSlot,
        transaction: &Transaction,
        effects: &mut Effects,
    ) -> Woken {
        self.end_transaction(by, transaction);
        let mut woken = Woken::NONE;
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
        assert!(
            self.transactions.uncommitted_bytes >= transaction.bytes,
            "what is open is counted"
        );
        assert!(transaction.parts_waiting == 0, "nothing is to be a part of what has ended");
        self.transactions.uncommitted_bytes -= transaction.bytes;
        self.admission.may_go_on(WaitListId::Transactions, &mut self.store);
        for target in transaction.targets() {
            let uncommitted = self.directory.uncommitted_of(target, &mut self.store);
            assert!(*uncommitted > 0, "a destination knows its transactions");
            *uncommitted -= 1;
            self.remove_target_if_idle(target);
        }
        for id in transaction.settled() {
            let was_settling = self.sessions.at_mut(by).holdings.settling.remove(&id);
            assert!(was_settling, "a message is settled in one transaction");
            self.store.ended_settling(self.store.living(id).queue);
        }
    }
}

impl Sessions {
    pub(crate) fn begin(&mut self, by: SessionSlot, id: TransactionId) -> Outcome {
        let transactions = &mut self.at_mut(by).transactions.open;
        if transactions.len() >= limits::SESSION_TRANSACTIONS_MAX || transactions.contains_key(&id)
        {
            return Outcome::refused(Refusal::TooManyTransactions);
        }
        transactions.insert(id, Transaction::default());
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Whether its commit waits for a place.
    pub(crate) fn set_waits(&mut self, by: SessionSlot, id: TransactionId, waits: bool) {
        if let Some(transaction) = self.at_mut(by).transactions.open.get_mut(&id) {
            transaction.waits = waits;
        }
    }

    /// What is to be a part of a transaction begins or ends to wait.
    pub(crate) fn count_waiting_part(
        &mut self,
        by: SessionSlot,
        id: Option<TransactionId>,
        waits: bool,
    ) {
        let transactions = &mut self.at_mut(by).transactions.open;
        if let Some(transaction) = id.and_then(|id| transactions.get_mut(&id)) {
            let count = &mut transaction.parts_waiting;
            *count = if waits { *count + 1 } else { *count - 1 };
        }
    }

    /// Whether its commit waits for its parts.
    pub(crate) fn set_awaits_parts(&mut self, by: SessionSlot, id: TransactionId, awaits: bool) {
        if let Some(transaction) = self.at_mut(by).transactions.open.get_mut(&id) {
            transaction.awaits_parts = awaits;
        }
    }

    /// Whether a command that has just come is about a transaction whose commit came before it and
    /// waits for its parts: those go on, but this comes too late.
    pub(crate) fn comes_too_late(&self, by: SessionSlot, command: &Command) -> bool {
        let transactions = &self.at(by).transactions.open;
        let about = command.transaction().and_then(|id| transactions.get(&id));
        about.is_some_and(|transaction| transaction.awaits_parts)
    }

    /// Whether something that is to be a part of it waits.
    pub(crate) fn has_parts_waiting(&self, by: SessionSlot, id: TransactionId) -> bool {
        let transaction = self.at(by).transactions.open.get(&id);
        transaction.is_some_and(|transaction| transaction.parts_waiting > 0)
    }

    /// Whether something could be added to it.
    pub(crate) fn takes_parts(&self, by: SessionSlot, id: TransactionId) -> bool {
        self.open_transaction(by, id).is_some_and(|transaction| !transaction.doomed)
    }

    /// If a commit that waited for a place waits for room now, it is answered as that.
    pub(crate) fn answer_late(&mut self, by: SessionSlot, id: TransactionId, ticket: u64) {
        if let Some(transaction) = self.at_mut(by).transactions.open.get_mut(&id) {
            transaction.ticket = Some(ticket);
        }
    }

    /// A part that is refused dooms its transaction.
    pub(crate) fn refuse_part(
        &mut self,
        by: SessionSlot,
        transaction: Option<TransactionId>,
        refusal: Refusal,
        log: &Log,
    ) -> Outcome {
        self.doom(by, transaction);
        log.refuse(refusal)
    }

    fn doom(&mut self, by: SessionSlot, transaction: Option<TransactionId>) {
        let transactions = &mut self.at_mut(by).transactions.open;
        let open = transaction.and_then(|id| transactions.get_mut(&id));
        if let Some(transaction) = open.filter(|transaction| !transaction.waits) {
            transaction.doomed = true;
        }
    }

    /// Bytes that a transaction holds.
    pub(crate) fn transaction_bytes(&self, by: SessionSlot, id: TransactionId) -> usize {
        self.at(by).transactions.open.get(&id).map_or(0, |transaction| transaction.bytes)
    }

    /// A transaction to which something can still be added.
    fn open_transaction(&self, by: SessionSlot, id: TransactionId) -> Option<&Transaction> {
        self.at(by).transactions.open.get(&id).filter(|transaction| !transaction.waits)
    }

    fn take_transaction(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        store: &mut MessageStore,
    ) -> Transaction {
        let transaction = self.at_mut(by).transactions.open.remove(&id);
        let transaction = transaction.expect("invariant: it was just found");
        store.took_steps(transaction.puts.len() + transaction.settled.len());
        transaction
    }
}

impl MessageStore {
    fn is_hidden(&self, id: MessageId) -> bool {
        let message = self.messages.get(id.0);
        message.is_some_and(|message| matches!(message.state(), State::Delayed { .. }))
    }

    fn is_journalled(&self, id: MessageId) -> bool {
        self.messages.get(id.0).is_some_and(|message| message.is_journalled())
    }

    /// What was said about these is seen no sooner than the whole commit is safe: a crash may undo
    /// that.
    fn bind(&mut self, ids: &[MessageId], after: DependsOn) {
        for id in ids {
            if let Some(message) = self.messages.get_mut(id.0) {
                message.changed = after.lsn;
            }
        }
    }
}

impl Transactions {
    fn grow(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        part: Part,
        bodies: &Bodies,
        sessions: &mut Sessions,
    ) -> Result<(), Refusal> {
        let transaction = sessions.at_mut(by).transactions.open.get_mut(&id);
        let transaction = transaction.filter(|transaction| !transaction.waits);
        let transaction = transaction.ok_or(Refusal::NoSuchTransaction)?;
        if transaction.doomed {
            return Err(Refusal::TransactionFailed);
        }
        let all = self.uncommitted_bytes + part.bytes <= limits::UNCOMMITTED_BYTES_MAX;
        let fits = all && transaction.bytes + part.bytes <= bodies.memory.uncommitted_max();
        let grown = if fits { transaction.grow(part) } else { Err(Refusal::TransactionTooLarge) };
        match grown {
            Ok(()) => self.uncommitted_bytes += part.bytes,
            Err(_) => transaction.doomed = true,
        }
        grown
    }
}

impl Directory {
    /// What the commit of a transaction may take.
    pub(crate) fn records_of_transaction(
        &self,
        by: SessionSlot,
        id: TransactionId,
        sessions: &Sessions,
    ) -> Records {
        let transaction = sessions.at(by).transactions.open.get(&id);
        transaction.map_or_else(Records::default, |it| self.records_of(&it.tally))
    }
}

impl Bodies {
    /// What was drafted is not stored after all, and has nothing in common with others.
    fn leave_groups(&mut self, drafted: &[Drafted], store: &mut MessageStore) {
        for (_, message) in drafted {
            if message.group() != 0 {
                self.groups.part(message.group());
            }
            if let Some(name) = message.shared() {
                self.part_from_body(name, store);
            }
        }
    }
}

//! The lists in which sends wait: one a queue, for a place in it, and two for memory.
//!
//! A part of a transaction waits apart from other sends, since it may lack what they do not: the
//! share of memory that open transactions have ([`Memory::uncommitted_max`]). One that fits
//! overtakes one that does not. A part that waits holds up its commit, which waits behind it, so
//! that a transaction is whole when it commits. A send that waits takes memory as well; those that
//! wait for it take a part that nothing else may use, so that they never wait for each other.

use alloc::collections::BTreeSet;

use model::{Bound, Command, Nanos, Refusal, TransactionId};

use crate::Effects;
use crate::bounds::Shortage;
use crate::engine::{Admission, Bodies, Engine, MessageStore, Transactions};
use crate::memory::{adds, transaction_of, waiting_bytes};
use crate::queue::{Queue, QueueSlot};
use crate::session::{SessionSlot, Sessions};
use crate::timers::Timer;

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitListId {
    /// Memory for what a command brings.
    Memory,
    /// Memory for a part of a transaction; a commit waits there behind its own parts.
    Transactions,
    /// A place in this queue.
    Queue(QueueSlot),
}

/// Who waits for one thing.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    pub(crate) tickets: BTreeSet<u64>,
    /// When it went on last.
    pub(crate) moved: Nanos,
    /// When its timer is due; set while somebody waits.
    pub(crate) due: Option<Nanos>,
    /// What it is for, where the rules of the queue have changed since.
    pub(crate) bound: Option<Bound>,
    /// There is a place for the first, but it looks into bodies that left memory: its turn comes
    /// when they are here. Nobody overtakes it meanwhile.
    pub(crate) looks: bool,
}

impl Queue {
    /// Somebody waits for a place who came before this one.
    pub(crate) fn is_waited_for(&self, ticket: u64) -> bool {
        self.admission.line.tickets.first().is_some_and(|first| *first < ticket)
    }

    /// What those in its line wait for.
    pub(crate) fn bound_of_line(&self) -> Option<Bound> {
        self.policy.bounds.first().or(self.admission.line.bound)
    }
}

impl Engine {
    /// How many commands wait until there is memory for what they bring.
    #[must_use]
    pub fn memory_waits(&self) -> u64 {
        (self.admission.pacing.for_memory.tickets.len()
            + self.admission.pacing.for_parts.tickets.len()) as u64
    }

    /// Why a command that has just come may not be done now: memory is full, or others wait for it.
    pub(crate) fn shortage_of_memory_for(
        &self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        let lacks = match (command, transaction_of(command)) {
            (Command::Commit { transaction }, _) => {
                self.sessions.has_parts_waiting(by, *transaction)
            }
            (_, Some(_)) => self.sessions.brings(by, command) && self.part_has_to_wait(by, command),
            (_, None) => {
                // What costs least is asked first, for nearly all commands end there.
                let is_full = || {
                    !self.admission.pacing.for_memory.tickets.is_empty() || self.is_memory_full()
                };
                adds(command) && is_full() && self.sessions.brings(by, command)
            }
        };
        lacks.then(|| Shortage::of_memory(command))
    }

    /// Whether a part that has just come waits: it does not fit, or an earlier one of its
    /// transaction waits, or the first that waits fits as well.
    fn part_has_to_wait(&self, by: SessionSlot, part: &Command) -> bool {
        if transaction_of(part).is_some_and(|id| self.sessions.has_parts_waiting(by, id)) {
            return true;
        }
        let first = self.admission.pacing.for_parts.tickets.first();
        let first = first.and_then(|first| self.admission.pacing.sends.get(first));
        let may_overtake = first.is_none_or(|it| self.part_lacks_memory(it.by, &it.command));
        !may_overtake
            || self.is_memory_full()
            || self.transactions.exceeds_share(by, part, &self.bodies, &self.sessions)
    }

    /// Whether a part that waits goes on waiting.
    fn part_lacks_memory(&self, by: SessionSlot, part: &Command) -> bool {
        self.sessions.brings(by, part)
            && (self.is_memory_short()
                || self.transactions.exceeds_share(by, part, &self.bodies, &self.sessions))
    }

    /// Of the parts that wait, the one that goes on next: the first, or one close behind it that
    /// fits where the first does not, and no part of the same transaction waits before it.
    pub(crate) fn next_in_line(&self, of: WaitListId) -> Option<u64> {
        let tickets = &self.admission.line(of, &self.store).tickets;
        let first = tickets.first().copied();
        if of != WaitListId::Transactions {
            return first;
        }
        let mut passed = BTreeSet::new();
        let fits = tickets.iter().take(OVERTAKING_MAX).copied().find(|ticket| {
            let paced =
                self.admission.pacing.sends.get(ticket).expect("invariant: who is in a line waits");
            let is_first_of_its = passed.insert((paced.by, paced.command.transaction()));
            is_first_of_its && !self.part_lacks_memory(paced.by, &paced.command)
        });
        fits.or(first)
    }

    /// The same of one that waits, where it is the first.
    pub(crate) fn still_lacks_memory(
        &self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        let lacks = match transaction_of(command) {
            Some(_) => self.part_lacks_memory(by, command),
            None => self.is_memory_short() && self.sessions.brings(by, command),
        };
        lacks.then(|| Shortage::of_memory(command))
    }

    /// Whether a send that waits for memory may find some, though nothing is due.
    pub(crate) fn is_memory_to_be_had(&self) -> bool {
        let waits = MEMORY_LINES.iter().any(|of| self.rests(*of));
        waits && (!self.is_memory_short() || self.may_trim())
    }

    /// Whether the next in a line for memory waits for nothing else than that. A part that exceeds
    /// the share of its like waits for the end of a transaction.
    fn rests(&self, of: WaitListId) -> bool {
        let WaitList { due, looks, .. } = self.admission.line(of, &self.store);
        let Some(next) = self.next_in_line(of) else { return false };
        let goes_on_otherwise = *looks || self.admission.pacing.held_back.contains(&of);
        let paced =
            self.admission.pacing.sends.get(&next).expect("invariant: who is in a line waits");
        let exceeds = of == WaitListId::Transactions
            && self.transactions.exceeds_share(
                paced.by,
                &paced.command,
                &self.bodies,
                &self.sessions,
            );
        !goes_on_otherwise && !exceeds && due.is_some_and(|due| due > self.store.latest)
    }

    /// Sees to it that the first who waits for memory goes on where there is some.
    pub(crate) fn notice_memory(&mut self) {
        if !self.is_memory_to_be_had() {
            return;
        }
        self.trim();
        if !self.is_memory_short() {
            MEMORY_LINES.into_iter().for_each(|of| self.admission.may_go_on(of, &mut self.store));
        }
    }

    /// What of a transaction waits for memory will be no part of it.
    pub(crate) fn give_up_parts(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) {
        if !self.sessions.has_parts_waiting(by, id) {
            return;
        }
        let paced = self.sessions.at(by).owned.paced.clone();
        self.store.took_steps(paced.len());
        for ticket in paced {
            let command = self.admission.pacing.sends.get(&ticket).map(|paced| &paced.command);
            if command.and_then(transaction_of) == Some(id) {
                self.give_up_send(ticket, Refusal::TransactionFailed, effects);
            }
        }
    }

    /// Nobody waits there any more, and perhaps nothing else keeps it.
    pub(crate) fn remove_if_unused(&mut self, of: WaitListId) {
        if let WaitListId::Queue(slot) = of {
            self.remove_if_idle(slot);
        }
    }
}

impl Transactions {
    /// Whether open transactions would have more than their share of memory with this part. One
    /// that has more by itself does not wait: it is refused.
    fn exceeds_share(
        &self,
        by: SessionSlot,
        part: &Command,
        bodies: &Bodies,
        sessions: &Sessions,
    ) -> bool {
        let (most, bytes) = (bodies.uncommitted_max(), part_bytes(part));
        let own = transaction_of(part).map_or(0, |id| sessions.transaction_bytes(by, id));
        own + bytes <= most && self.uncommitted_bytes + bytes > most
    }
}

impl Admission {
    /// Whether so much more may wait there. A commit brings nothing itself, and what it waits for
    /// is there.
    pub(crate) fn may_wait(
        &self,
        at: WaitListId,
        command: &Command,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> bool {
        if matches!(command, Command::Commit { .. }) {
            return true;
        }
        let bytes = self.pacing.for_memory_bytes + waiting_bytes(command);
        let is_first = self.line(at, store).tickets.is_empty();
        !at.is_for_memory() || is_first || bytes <= bodies.memory.awaiting_bytes_max()
    }

    /// The first in a line may find what it waits for.
    pub(crate) fn may_go_on(&mut self, of: WaitListId, store: &mut MessageStore) {
        let line = self.line(of, store);
        if !line.tickets.is_empty() && line.due.is_some_and(|due| due > store.latest) {
            self.set_due(of, Some(store.latest), store);
        }
    }

    pub(crate) fn line<'e>(&'e self, of: WaitListId, store: &'e MessageStore) -> &'e WaitList {
        match of {
            WaitListId::Memory => &self.pacing.for_memory,
            WaitListId::Transactions => &self.pacing.for_parts,
            WaitListId::Queue(slot) => &store.queues.at(slot).admission.line,
        }
    }

    pub(crate) fn line_mut<'e>(
        &'e mut self,
        of: WaitListId,
        store: &'e mut MessageStore,
    ) -> &'e mut WaitList {
        match of {
            WaitListId::Memory => &mut self.pacing.for_memory,
            WaitListId::Transactions => &mut self.pacing.for_parts,
            WaitListId::Queue(slot) => &mut store.queues.at_mut(slot).admission.line,
        }
    }

    /// The same, where its queue may be gone.
    pub(crate) fn find_line<'e>(
        &'e self,
        of: WaitListId,
        store: &'e MessageStore,
    ) -> Option<&'e WaitList> {
        match of {
            WaitListId::Memory | WaitListId::Transactions => Some(self.line(of, store)),
            WaitListId::Queue(slot) => store.queues.get(slot).map(|queue| &queue.admission.line),
        }
    }

    /// A send lines up where it waits.
    pub(crate) fn enter_line(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let of = self.note_waiting(ticket, true, sessions);
        let line = self.line_mut(of, store);
        let is_first = line.tickets.first().is_none_or(|first| *first > ticket);
        line.tickets.insert(ticket);
        if is_first {
            self.set_due(of, Some(self.deadline(of, store)), store);
        }
    }

    /// It waits there no more, and the next one has its turn at once.
    pub(crate) fn leave_line(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let of = self.note_waiting(ticket, false, sessions);
        let now = store.latest;
        let line = self.line_mut(of, store);
        let was_there = line.tickets.remove(&ticket);
        assert!(was_there, "who waits is in the line");
        let due = (!line.tickets.is_empty()).then_some(now);
        self.pacing.held_back.remove(&of);
        if let (None, WaitListId::Queue(slot)) = (due, of) {
            self.pacing.leaving.remove(&slot);
        }
        self.set_due(of, due, store);
    }

    /// When the first in the line has waited long enough while nobody went on.
    pub(crate) fn deadline(&self, of: WaitListId, store: &MessageStore) -> Nanos {
        let line = self.line(of, store);
        let first = line.tickets.first().and_then(|first| self.pacing.sends.get(first));
        first.map_or(store.latest, |first| first.since.max(line.moved) + self.pacing.still_max)
    }

    pub(crate) fn set_due(&mut self, of: WaitListId, due: Option<Nanos>, store: &mut MessageStore) {
        let before = core::mem::replace(&mut self.line_mut(of, store).due, due);
        store.timers.change(Timer::Admit(of), before, due);
    }

    /// A send begins or ends to wait; says where.
    fn note_waiting(&mut self, ticket: u64, waits: bool, sessions: &mut Sessions) -> WaitListId {
        let paced = self.pacing.sends.get(&ticket).expect("invariant: who has a ticket waits");
        let (by, of) = (paced.by, paced.at);
        let commits = match paced.command {
            Command::Commit { transaction } => Some(transaction),
            _ => None,
        };
        if of.is_for_memory() {
            let (bytes, part_of) = (waiting_bytes(&paced.command), transaction_of(&paced.command));
            let sum = &mut self.pacing.for_memory_bytes;
            *sum = if waits { *sum + bytes } else { *sum - bytes };
            sessions.count_waiting_part(by, part_of, waits);
        }
        match (of, commits) {
            (WaitListId::Memory | WaitListId::Transactions, Some(id)) => {
                sessions.set_awaits_parts(by, id, waits);
            }
            (WaitListId::Queue(_), Some(id)) => sessions.set_waits(by, id, waits),
            (_, None) => {}
        }
        of
    }
}

impl Sessions {
    /// Whether it brings something that memory is to keep: not where that is refused anyway, or
    /// what its session observes has changed.
    fn brings(&self, by: SessionSlot, command: &Command) -> bool {
        let observing = self.at(by).transactions.observing.as_ref();
        let is_stale = || observing.is_some_and(|observing| observing.stale);
        match command {
            Command::Batch { .. } if is_stale() => false,
            command => {
                adds(command) && transaction_of(command).is_none_or(|id| self.takes_parts(by, id))
            }
        }
    }
}

impl Shortage {
    fn of_memory(command: &Command) -> Self {
        let is_of_transaction = command.transaction().is_some();
        let at = if is_of_transaction { WaitListId::Transactions } else { WaitListId::Memory };
        let bytes = waiting_bytes(command);
        Self { refusal: Refusal::MemoryFull, waits_at: Some(at), bytes }
    }
}

impl WaitListId {
    /// Whether sends wait there for memory.
    pub(crate) const fn is_for_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Transactions)
    }
}

/// What a part of a transaction takes of the share that open transactions have, about.
fn part_bytes(part: &Command) -> usize {
    match part {
        Command::Put { message, .. } | Command::PutTo { message, .. } => {
            message.body.len() + PART_BYTES_BESIDE
        }
        _ => 0,
    }
}

/// Where sends wait for memory.
const MEMORY_LINES: [WaitListId; 2] = [WaitListId::Memory, WaitListId::Transactions];

/// Parts among which one that fits is looked for while the first does not.
const OVERTAKING_MAX: usize = 16;

/// Of a message, beside its body, with its properties in the usual case.
const PART_BYTES_BESIDE: usize = 256;

//! The lists in which sends wait: one a queue, for a place in it, and two for memory.
//!
//! A part of a transaction waits apart from other sends. It may lack a resource that they do not
//! need: the share of memory of open transactions ([`Bodies::uncommitted_max`]). One that fits
//! overtakes one that does not. A part that waits holds up its commit, which waits behind it, so
//! that a transaction is whole when it commits. A send that waits takes memory as well; the sends
//! that wait for memory take a part that nothing else may use, so that they never wait for each
//! other.

use alloc::collections::BTreeSet;

use model::{Bound, Command, Nanos, Refusal};

use crate::admission::{Admission, Shortage, WaitList, WaitListId};
use crate::bodies::Bodies;
use crate::demand::{Demand, Stores};
use crate::directory::Directory;
use crate::ids::SessionSlot;
use crate::keyspace::{Keyspace, Observing};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::Queue;
use crate::store::timers::Timer;
use crate::transactions::Transactions;

impl Queue {
    /// True if an earlier send than this one waits for a place.
    pub(crate) fn is_waited_for(&self, ticket: u64) -> bool {
        self.admission.line.tickets.first().is_some_and(|first| *first < ticket)
    }

    /// The bound that the sends in its list wait for.
    pub(crate) fn bound_of_line(&self) -> Option<Bound> {
        self.policy.bounds.first().or(self.admission.line.bound)
    }
}

impl WaitList {
    /// The first send may go on now. Returns when its timer was due, if that was later.
    pub(crate) fn bring_forward(&mut self, now: Nanos) -> Option<Nanos> {
        if self.tickets.is_empty() || self.due.is_none_or(|due| due <= now) {
            return None;
        }
        self.due.replace(now)
    }
}

impl Transactions {
    /// True if open transactions would have more than their share of memory with this part. One
    /// that has more by itself does not wait: it is refused.
    pub(crate) fn exceeds_share(
        &self,
        by: SessionSlot,
        part: &Command,
        bodies: &Bodies,
        sessions: &Sessions,
    ) -> bool {
        let stores = Demand::of(part).stores;
        let bytes = match stores {
            Stores::Message { message, .. } => message.body.len() + PART_BYTES_BESIDE,
            _ => 0,
        };
        let most = bodies.uncommitted_max();
        let own = stores.part_of().map_or(0, |id| sessions.transaction_bytes(by, id));
        own + bytes <= most && self.uncommitted_bytes() + bytes > most
    }
}

impl Admission {
    /// True if so much more may wait there. A commit may always wait: it brings nothing itself, and
    /// the messages that it waits for are there.
    pub(crate) fn may_wait(
        &self,
        at: WaitListId,
        command: &Command,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> bool {
        let demand = Demand::of(command);
        if matches!(demand.stores, Stores::Transaction(_)) {
            return true;
        }
        let bytes = self.blocked_sends.for_memory_bytes + demand.waiting_bytes();
        let is_first = self.line(at, store).tickets.is_empty();
        !at.is_for_memory() || is_first || bytes <= bodies.awaiting_bytes_max()
    }

    /// The first send in a line may find the place or memory that it waits for.
    pub(crate) fn may_go_on(&mut self, of: WaitListId, store: &mut MessageStore) {
        let now = store.latest;
        if let Some(before) = self.line_mut(of, store).bring_forward(now) {
            store.timers.change(Timer::Admit(of), Some(before), Some(now));
        }
    }

    pub(crate) fn line<'e>(&'e self, of: WaitListId, store: &'e MessageStore) -> &'e WaitList {
        match of {
            WaitListId::Memory => &self.blocked_sends.for_memory,
            WaitListId::Transactions => &self.blocked_sends.for_parts,
            WaitListId::Queue(slot) => &store.queues.at(slot).admission.line,
        }
    }

    pub(crate) fn line_mut<'e>(
        &'e mut self,
        of: WaitListId,
        store: &'e mut MessageStore,
    ) -> &'e mut WaitList {
        match of {
            WaitListId::Memory => &mut self.blocked_sends.for_memory,
            WaitListId::Transactions => &mut self.blocked_sends.for_parts,
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
        self.blocked_sends.held_back.remove(&of);
        if let (None, WaitListId::Queue(slot)) = (due, of) {
            store.admission.leaving.remove(&slot);
        }
        self.set_due(of, due, store);
    }

    /// When the first in the line has waited long enough while no send went on.
    pub(crate) fn deadline(&self, of: WaitListId, store: &MessageStore) -> Nanos {
        let line = self.line(of, store);
        let first = line.tickets.first().and_then(|first| self.blocked_sends.sends.get(first));
        first.map_or(store.latest, |first| {
            first.since.max(line.moved) + self.blocked_sends.still_max
        })
    }

    pub(crate) fn set_due(&mut self, of: WaitListId, due: Option<Nanos>, store: &mut MessageStore) {
        let before = core::mem::replace(&mut self.line_mut(of, store).due, due);
        store.timers.change(Timer::Admit(of), before, due);
    }

    /// A send begins or ends to wait; says where.
    fn note_waiting(&mut self, ticket: u64, waits: bool, sessions: &mut Sessions) -> WaitListId {
        let sends = &self.blocked_sends.sends;
        let blocked = sends.get(&ticket).expect("invariant: a send with a ticket waits");
        let (by, of) = (blocked.by, blocked.at);
        let demand = Demand::of(&blocked.command);
        let stores = demand.stores;
        if of.is_for_memory() {
            let bytes = demand.waiting_bytes();
            let part_of = stores.part_of();
            let sum = &mut self.blocked_sends.for_memory_bytes;
            *sum = if waits { *sum + bytes } else { *sum - bytes };
            sessions.count_waiting_part(by, part_of, waits);
        }
        match stores {
            Stores::Transaction(id) if of.is_for_memory() => {
                sessions.set_awaits_parts(by, id, waits);
            }
            Stores::Transaction(id) => sessions.set_waits(by, id, waits),
            _ => {}
        }
        of
    }
}

impl Keyspace {
    /// True if it brings something that memory is to keep. False if that is refused anyway, or if a
    /// key that its session observes has changed.
    pub(crate) fn brings(&self, by: SessionSlot, command: &Command, sessions: &Sessions) -> bool {
        let is_stale = || self.observing(by).is_some_and(Observing::is_stale);
        match Demand::of(command).stores {
            Stores::Batch(_) if is_stale() => false,
            stores => {
                let takes = |id| sessions.takes_parts(by, id);
                stores.adds_to_memory() && stores.part_of().is_none_or(takes)
            }
        }
    }
}

impl Shortage {
    pub(crate) fn of_memory(command: &Command) -> Self {
        let is_of_transaction = command.transaction().is_some();
        let at = if is_of_transaction { WaitListId::Transactions } else { WaitListId::Memory };
        let bytes = Demand::of(command).waiting_bytes();
        Self { refusal: Refusal::MemoryFull, waits_at: Some(at), bytes }
    }
}

impl WaitList {
    pub(crate) const EMPTY: Self =
        Self { tickets: BTreeSet::new(), moved: Nanos::ZERO, due: None, bound: None, looks: false };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }

    /// The send that came first.
    pub(crate) fn first(&self) -> Option<u64> {
        self.tickets.first().copied()
    }

    /// The sends that wait, the first to come first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.tickets.iter().copied()
    }

    /// When its timer is due.
    pub(crate) const fn due(&self) -> Option<Nanos> {
        self.due
    }

    /// True if the first waits for bodies that it looks into.
    pub(crate) const fn looks(&self) -> bool {
        self.looks
    }

    pub(crate) const fn set_looks(&mut self, looks: bool) {
        self.looks = looks;
    }

    /// The sends that wait do so for this bound, though the queue may have another one by now.
    pub(crate) const fn set_bound(&mut self, bound: Option<Bound>) {
        self.bound = bound;
    }

    /// It has gone on.
    pub(crate) const fn set_moved(&mut self, now: Nanos) {
        self.moved = now;
    }
}

impl WaitListId {
    /// True if sends wait there for memory.
    pub(crate) const fn is_for_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Transactions)
    }
}

impl Directory {
    /// No send waits there any more, and perhaps nothing else keeps the queue.
    pub(crate) fn remove_if_unused(
        &mut self,
        of: WaitListId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        if let WaitListId::Queue(slot) = of {
            self.remove_if_idle(slot, sessions, store);
        }
    }
}

/// About the bytes that a part of a transaction takes of the share of open transactions, beside its
/// body: with its properties in the usual case.
const PART_BYTES_BESIDE: usize = 256;

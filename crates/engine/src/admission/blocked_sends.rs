//! Sends that wait for a place in a queue, or for memory, in the order in which they came.
//!
//! The engine answers each at once that it waits, and later with its result. A send is stored and
//! counted when its turn comes; until then it is known only here. FIFO: a send queues behind
//! earlier waiting sends even if the queue has room. So no sender overtakes itself or another. A
//! send that waited for memory may then wait for a place. A send that waited for a place needs no
//! more memory.
//!
//! A line goes on by its timer, one send a time. The timer is due as soon as a message has left the
//! line's queue, or there is memory. So other commands are served in between, consumers before
//! senders. As long as a line goes on, every send in it waits. If it has not gone on for as long as
//! the operator says, each send that has waited so long is refused. A session that ends takes its
//! sends out of all lines.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{Command, DependsOn, Destination, Nanos, Reply, limits};

use crate::admission::send_timeouts::{shorten_wait, wait_of};
use crate::admission::{
    Admission, BlockedSend, BlockedSends, Shortage, SourceWaits, StoreAdmission, WaitList,
    WaitListId,
};
use crate::bodies::Bodies;
use crate::demand::Demand;
use crate::directory::{Directory, Target};
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl BlockedSends {
    const fn new(still_max: Nanos) -> Self {
        Self {
            sends: BTreeMap::new(),
            bytes: 0,
            memory_bytes: 0,
            for_memory_bytes: 0,
            for_memory: WaitList::EMPTY,
            for_parts: WaitList::EMPTY,
            held_back: BTreeSet::new(),
            is_log_behind: false,
            is_closed: false,
            next: 1,
            still_max,
        }
    }

    fn takes(&self, bytes: u64) -> bool {
        !self.is_closed
            && self.sends.len() < limits::BLOCKED_SENDS_MAX
            && self.bytes + bytes <= limits::BLOCKED_BYTES_MAX as u64
    }
}

impl Admission {
    pub(crate) const fn new(still_max: Nanos) -> Self {
        Self {
            blocked_sends: BlockedSends::new(still_max),
            overfull: BTreeSet::new(),
            has_to_evict: false,
        }
    }

    /// The send with this ticket, which waits.
    pub(crate) fn blocked(&self, ticket: u64) -> &BlockedSend {
        self.find_blocked(ticket).expect("invariant: a send with a ticket waits")
    }

    pub(crate) fn find_blocked(&self, ticket: u64) -> Option<&BlockedSend> {
        self.blocked_sends.sends.get(&ticket)
    }

    pub(crate) fn first_blocked(
        &self,
        of: WaitListId,
        store: &MessageStore,
    ) -> Option<&BlockedSend> {
        self.find_blocked(self.find_line(of, store)?.first()?)
    }

    #[inline]
    pub(crate) fn has_blocked_sends(&self) -> bool {
        !self.blocked_sends.sends.is_empty()
    }

    /// How many commands wait for memory.
    pub(crate) fn memory_waits(&self) -> usize {
        self.blocked_sends.for_memory.len() + self.blocked_sends.for_parts.len()
    }

    /// Bytes of memory that all waiting sends take.
    pub(crate) const fn waiting_bytes(&self) -> u64 {
        self.blocked_sends.memory_bytes
    }

    /// The part of these bytes that belongs to sends that wait for memory.
    pub(crate) const fn for_memory_bytes(&self) -> u64 {
        self.blocked_sends.for_memory_bytes
    }

    /// No send may begin to wait any more, and each that waits is given up.
    pub(crate) fn close(&mut self, store: &mut MessageStore) {
        self.blocked_sends.is_closed = true;
        let lines: BTreeSet<_> = self.blocked_sends.sends.values().map(|it| it.at).collect();
        lines.into_iter().for_each(|of| self.may_go_on(of, store));
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.blocked_sends.is_closed
    }

    /// Sets whether the log is behind. While it is, sends that add to the log stop: those in a line
    /// and new ones. The room that is left then serves settlements.
    #[inline]
    pub(crate) fn set_log_behind(&mut self, is_behind: bool, store: &mut MessageStore) {
        self.blocked_sends.is_log_behind = is_behind;
        if !is_behind && self.waits_for_log() {
            self.go_on_held_back(store);
        }
    }

    fn go_on_held_back(&mut self, store: &mut MessageStore) {
        for of in core::mem::take(&mut self.blocked_sends.held_back) {
            if self.find_line(of, store).is_some() {
                self.may_go_on(of, store);
            }
        }
    }

    /// True if the first send of a line would go on if the log was not behind.
    pub(crate) fn waits_for_log(&self) -> bool {
        !self.blocked_sends.held_back.is_empty()
    }

    /// True if the first send of this line would go on if the log was not behind.
    pub(crate) fn holds_back(&self, of: WaitListId) -> bool {
        self.blocked_sends.held_back.contains(&of)
    }

    /// The first send of a line waits until the log is not behind.
    pub(crate) fn hold_back(&mut self, of: WaitListId, store: &mut MessageStore) {
        assert!(self.blocked_sends.is_log_behind, "only a log that is behind holds sends back");
        self.blocked_sends.held_back.insert(of);
        self.look_later(of, store);
    }

    /// The timer of a line looks again, though nothing else lets it go on.
    pub(crate) fn look_later(&mut self, of: WaitListId, store: &mut MessageStore) {
        let later = store.latest + self.blocked_sends.still_max;
        self.set_due(of, Some(later), store);
    }

    /// True if a command may wait for what it lacks.
    pub(crate) fn lets_wait(
        &self,
        lack: &Shortage,
        command: &Command,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> bool {
        let may_wait = |at| self.may_wait(at, command, bodies, store);
        self.blocked_sends.takes(lack.bytes) && lack.waits_at.is_some_and(may_wait)
    }

    /// A command begins to wait; gives its ticket.
    pub(crate) fn block(
        &mut self,
        by: SessionSlot,
        command: Command,
        (at, bytes): (WaitListId, u64),
        floor: DependsOn,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> u64 {
        assert!(!self.is_closed(), "a send begins to wait only before the end");
        let ticket = self.blocked_sends.next;
        self.blocked_sends.next += 1;
        let since = store.latest;
        let wait = wait_of(&command).filter(|wait| *wait > Nanos::ZERO);
        let until = wait.map(|wait| since + wait);
        store.timers.change(Timer::GiveUp(ticket), None, until);
        self.blocked_sends.bytes += bytes;
        self.blocked_sends.memory_bytes += Demand::of(&command).waiting_bytes();
        store.admission.sources.insert(&command, ticket);
        let blocked = BlockedSend { by, command, bytes, at, since, until, floor };
        let before = self.blocked_sends.sends.insert(ticket, blocked);
        assert!(before.is_none(), "a ticket is given once");
        sessions.at_mut(by).note_blocked(ticket);
        self.enter_line(ticket, sessions, store);
        ticket
    }

    /// One that waited in one line waits in another.
    pub(crate) fn change_lines(
        &mut self,
        ticket: u64,
        to: WaitListId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let from = self.blocked(ticket).at;
        assert!(from != to, "a send that changes lines goes to another");
        self.leave_line(ticket, sessions, store);
        if let Some(blocked) = self.blocked_sends.sends.get_mut(&ticket) {
            blocked.at = to;
            // It has got on, though this line has not.
            blocked.since = store.latest;
        }
        if from.is_for_memory() {
            // There was memory for it.
            self.line_mut(from, store).moved = store.latest;
        }
        self.enter_line(ticket, sessions, store);
    }

    /// True if the log is behind and the waiting send would add to it.
    pub(crate) fn is_held_back(&self, ticket: u64, sessions: &Sessions, log: &FrameWriter) -> bool {
        let blocked = self.blocked(ticket);
        self.blocked_sends.is_log_behind
            && sessions.bytes_added(blocked.by, &blocked.command, log).is_some()
    }

    pub(crate) fn unblock(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> BlockedSend {
        let mut blocked = self.take_blocked(ticket, sessions, store);
        shorten_wait(&mut blocked.command, store.latest, blocked.until);
        sessions.at_mut(blocked.by).end_blocked(ticket);
        blocked
    }

    pub(crate) fn take_blocked(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> BlockedSend {
        self.leave_line(ticket, sessions, store);
        let blocked = self.blocked_sends.sends.remove(&ticket);
        let blocked = blocked.expect("invariant: who is in a line waits");
        self.blocked_sends.bytes -= blocked.bytes;
        self.blocked_sends.memory_bytes -= Demand::of(&blocked.command).waiting_bytes();
        store.admission.sources.remove(&blocked.command, ticket);
        store.set_sources_due();
        store.timers.change(Timer::GiveUp(ticket), blocked.until, None);
        blocked
    }
}

impl StoreAdmission {
    pub(crate) const fn new(is_bounded: bool) -> Self {
        Self { is_bounded, leaving: BTreeSet::new(), sources: SourceWaits::EMPTY }
    }
}

impl MessageStore {
    /// Queues that no client finds any more, with a line in which sends still wait.
    pub(crate) const fn leaving_queues(&self) -> &BTreeSet<QueueSlot> {
        &self.admission.leaving
    }

    /// No client finds a queue any more: sends that wait for a place there go on.
    pub(crate) fn let_leaving_go_on(&mut self, slot: QueueSlot) {
        if !self.queues.at(slot).admission.line.is_empty() {
            self.admission.leaving.insert(slot);
        }
        self.made_place(slot);
    }

    /// A message has left a queue, or the queue is about to go: sends that wait for a place may go
    /// on.
    pub(crate) fn made_place(&mut self, slot: QueueSlot) {
        let now = self.latest;
        if let Some(before) = self.queues.at_mut(slot).admission.line.bring_forward(now) {
            self.timers.change(Timer::Admit(WaitListId::Queue(slot)), Some(before), Some(now));
        }
    }
}

impl Directory {
    /// The same command, named by its target: it does not depend on the link that it came by.
    pub(crate) fn addressed(
        &self,
        by: SessionSlot,
        command: Command,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> Command {
        let Command::Put { link, message, transaction } = command else { return command };
        let to = match sessions.at(by).producers().get(&link) {
            Some(Target::Queue(slot)) => Destination::Queue(store.queues.at(*slot).name.clone()),
            Some(Target::Topic(slot)) => Destination::Topic(self.topics().at(*slot).name().clone()),
            None => return Command::Put { link, message, transaction },
        };
        Command::PutTo { to, message, transaction }
    }
}

impl Outcome {
    /// Turns the answer, if there is one now, into the late answer of the send that was told to
    /// wait.
    pub(crate) fn late(mut self, ticket: u64, floor: DependsOn) -> Self {
        if let Some((after, reply)) = self.take_answer() {
            let reply = Reply::Late { ticket, reply: Box::new(reply) };
            return self.answering(after.and(floor), reply);
        }
        self
    }
}

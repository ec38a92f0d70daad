//! Sends that wait for room: how they begin to wait, go on, and give up.

use alloc::collections::BTreeSet;
use core::slice;

use model::{Command, DependsOn, Nanos, Refusal, Reply, TransactionId};

use crate::Effects;
use crate::admission::send_timeouts::wait_of;
use crate::admission::{BlockedSend, Shortage, WaitList, WaitListId};
use crate::demand::{Demand, Stores};
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::keyspace::lists::as_run;
use crate::outcome::Outcome;
use crate::store::timers::Timer;

impl Engine {
    /// Sets whether the log is behind. While it is, sends that add to the log stop: those in a line
    /// and new ones. The room that is left then serves settlements.
    pub(crate) fn set_log_behind(&mut self, is_behind: bool) {
        self.admission.blocked_sends.is_log_behind = is_behind;
        if is_behind {
            return;
        }
        for of in core::mem::take(&mut self.admission.blocked_sends.held_back) {
            if self.admission.find_line(of, &self.store).is_some() {
                self.admission.may_go_on(of, &mut self.store);
            }
        }
    }

    /// True if a send in a line would go on if the log was not behind. The caller tells the engine
    /// as soon as it is not.
    #[must_use]
    pub fn waits_for_log(&self) -> bool {
        !self.admission.blocked_sends.held_back.is_empty()
    }

    /// A command that there is no place or no memory for waits, or is refused.
    pub(crate) fn block_or_refuse(
        &mut self,
        by: SessionSlot,
        command: Command,
        lack: Shortage,
        floor: DependsOn,
        effects: &mut Effects,
    ) -> Outcome {
        let command = match as_run(command) {
            Ok(run) => return Outcome::apart(run),
            Err(command) => command,
        };
        let may_wait = |at: &WaitListId| {
            self.admission.blocked_sends.takes(lack.bytes)
                && self.admission.may_wait(*at, &command, &self.bodies, &self.store)
        };
        let Some(at) = lack.waits_at.filter(may_wait) else {
            let refusal = if self.admission.blocked_sends.is_closed {
                Refusal::Draining
            } else {
                lack.refusal
            };
            return self.refuse_send(by, &command, refusal, effects);
        };
        let ticket = self.admission.blocked_sends.next;
        self.admission.blocked_sends.next += 1;
        let command = self.directory.addressed(by, command, &self.sessions, &self.store);
        let since = self.store.latest;
        let wait = wait_of(&command).filter(|wait| *wait > Nanos::ZERO);
        let until = wait.map(|wait| since + wait);
        self.store.timers.change(Timer::GiveUp(ticket), None, until);
        let blocked = BlockedSend { by, command, bytes: lack.bytes, at, since, until, floor };
        self.admission.blocked_sends.bytes += blocked.bytes;
        self.admission.blocked_sends.memory_bytes += Demand::of(&blocked.command).waiting_bytes();
        self.admission.blocked_sends.sources.insert(&blocked.command, ticket);
        self.admission.blocked_sends.sends.insert(ticket, blocked);
        self.sessions.at_mut(by).owned.blocked.insert(ticket);
        self.admission.enter_line(ticket, &mut self.sessions, &mut self.store);
        Outcome::reply(DependsOn::NOTHING, Reply::Waits { ticket })
    }

    /// The first send of a line goes on, or is refused, or goes on waiting, by time.
    pub(crate) fn admit_next(&mut self, of: WaitListId, effects: &mut Effects) {
        let (next, looks) = (self.next_in_line(of), self.admission.line(of, &self.store).looks);
        let ticket = next.expect("invariant: the timer is set while somebody waits");
        if looks && !self.admission.blocked_sends.is_closed {
            let later = self.store.latest + self.admission.blocked_sends.still_max;
            return self.admission.set_due(of, Some(later), &mut self.store);
        }
        let lack = self.lack_of(ticket);
        self.admit_unless(lack, ticket, of, effects);
    }

    /// The first goes on where it lacks nothing.
    fn admit_unless(
        &mut self,
        lack: Option<Shortage>,
        ticket: u64,
        of: WaitListId,
        effects: &mut Effects,
    ) {
        // The send that goes on may have to be a frame of its own.
        self.end_frame(effects);
        if self.admission.blocked_sends.is_closed {
            return self.give_up_send(ticket, Refusal::Draining, effects);
        }
        let later = self.store.latest + self.admission.blocked_sends.still_max;
        match lack {
            None if self.admission.is_held_back(ticket, &self.sessions, &self.context) => {
                self.admission.blocked_sends.held_back.insert(of);
                self.admission.set_due(of, Some(later), &mut self.store);
            }
            None if self.is_line_awaiting(of) => {
                self.admission.set_due(of, Some(later), &mut self.store)
            }
            None if !self.fits_into_call(ticket) => {
                self.admission.set_due(of, Some(self.store.latest), &mut self.store);
                self.log.defer();
            }
            None => self.go_on(ticket, effects),
            Some(Shortage { waits_at: Some(at), .. }) if at != of => {
                self.change_lines(ticket, of, at)
            }
            Some(lack)
                if lack.waits_at.is_none()
                    || self.admission.deadline(of, &self.store) <= self.store.latest =>
            {
                self.give_up_send(ticket, lack.refusal, effects);
            }
            Some(_) => self.admission.set_due(
                of,
                Some(self.admission.deadline(of, &self.store)),
                &mut self.store,
            ),
        }
    }

    /// The first in the line has the bodies that it looks into, or they are too many.
    pub(crate) fn admit_looked(&mut self, of: WaitListId, too_many: bool, effects: &mut Effects) {
        if self.admission.find_line(of, &self.store).is_none() {
            return;
        }
        let line = self.admission.line_mut(of, &mut self.store);
        line.looks = false;
        match line.tickets.first().copied() {
            Some(ticket) if too_many => {
                self.give_up_send(ticket, self.replies.refusal(), effects);
            }
            Some(ticket) => {
                // There was memory for it. The bodies that came for its sake may take all of that,
                // and leave again once it has looked. If it waited for that, they would come again.
                let lack = self.lack_of_place(ticket);
                self.admit_unless(lack, ticket, of, effects);
            }
            None => {}
        }
    }

    /// The commands that a closing session has waiting never happen.
    pub(crate) fn forget_blocked_sends(&mut self, by: SessionSlot) {
        for ticket in core::mem::take(&mut self.sessions.at_mut(by).owned.blocked) {
            let blocked = self.admission.take_blocked(ticket, &mut self.sessions, &mut self.store);
            self.remove_if_unused(blocked.at);
        }
    }

    /// One that waited in one line waits in another.
    fn change_lines(&mut self, ticket: u64, from: WaitListId, to: WaitListId) {
        self.admission.leave_line(ticket, &mut self.sessions, &mut self.store);
        if let Some(blocked) = self.admission.blocked_sends.sends.get_mut(&ticket) {
            blocked.at = to;
            // It has got on, though this line has not.
            blocked.since = self.store.latest;
        }
        if from.is_for_memory() {
            // There was memory for it.
            self.admission.line_mut(from, &mut self.store).moved = self.store.latest;
        }
        self.admission.enter_line(ticket, &mut self.sessions, &mut self.store);
        self.remove_if_unused(from);
    }

    fn lack_of(&mut self, ticket: u64) -> Option<Shortage> {
        let blocked = self
            .admission
            .blocked_sends
            .sends
            .get(&ticket)
            .expect("invariant: who is in a line waits");
        if blocked.at.is_for_memory()
            && let Some(lack) = self.still_lacks_memory(blocked.by, &blocked.command)
        {
            return Some(lack);
        }
        self.lack_of_place(ticket)
    }

    fn lack_of_place(&mut self, ticket: u64) -> Option<Shortage> {
        let blocked = self
            .admission
            .blocked_sends
            .sends
            .get(&ticket)
            .expect("invariant: who is in a line waits");
        let demand = self.places_for(blocked.by, slice::from_ref(&blocked.command));
        let steps = demand.steps;
        let lack = self.directory.shortage_of_place(&demand, ticket, &self.store, &self.log);
        self.store.took_steps(steps);
        lack
    }

    /// True if this call may append the bytes that the send adds. The first send of a call always
    /// finds its room.
    fn fits_into_call(&self, ticket: u64) -> bool {
        let blocked = self
            .admission
            .blocked_sends
            .sends
            .get(&ticket)
            .expect("invariant: who is in a line waits");
        self.log.is_unspent() || {
            let bytes =
                self.sessions.bytes_added(blocked.by, &blocked.command, &self.context).unwrap_or(0);
            bytes <= self.log.bytes_left_in_call()
        }
    }

    fn go_on(&mut self, ticket: u64, effects: &mut Effects) {
        let blocked = self.admission.unblock(ticket, &mut self.sessions, &mut self.store);
        let BlockedSend { by, command, at, floor, .. } = blocked;
        self.admission.line_mut(at, &mut self.store).moved = self.store.latest;
        let session = self.sessions.at(by).identity.id;
        let outcome = if let Command::Commit { transaction } = command {
            let outcome = self.commit(by, transaction, effects);
            self.sessions.answer_late(by, transaction, ticket);
            outcome
        } else {
            self.do_now(by, command, effects)
        };
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.remove_if_unused(at);
    }

    pub(crate) fn give_up_send(&mut self, ticket: u64, refusal: Refusal, effects: &mut Effects) {
        let BlockedSend { by, command, at, floor, .. } =
            self.admission.unblock(ticket, &mut self.sessions, &mut self.store);
        let session = self.sessions.at(by).identity.id;
        let outcome = self.refuse_send(by, &command, refusal, effects);
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.remove_if_unused(at);
    }
}

impl Engine {
    /// How many commands wait until there is memory for the bytes they bring.
    #[must_use]
    pub fn memory_waits(&self) -> u64 {
        (self.admission.blocked_sends.for_memory.tickets.len()
            + self.admission.blocked_sends.for_parts.tickets.len()) as u64
    }

    /// Why a command that has just come may not be done now: memory is full, or others wait for it.
    pub(crate) fn shortage_of_memory_for(
        &self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        let lacks = match Demand::of(command).stores {
            Stores::Transaction(id) => self.sessions.has_parts_waiting(by, id),
            Stores::Message { part_of: Some(_), .. } => {
                self.sessions.brings(by, command) && self.part_has_to_wait(by, command)
            }
            stores => {
                // Ask the cheapest question first: nearly all commands end there.
                let is_full = || {
                    !self.admission.blocked_sends.for_memory.tickets.is_empty()
                        || self.is_memory_full()
                };
                stores.adds_to_memory() && is_full() && self.sessions.brings(by, command)
            }
        };
        lacks.then(|| Shortage::of_memory(command))
    }

    /// True if a part that has just come waits: it does not fit, or an earlier one of its
    /// transaction waits, or the first that waits fits as well.
    fn part_has_to_wait(&self, by: SessionSlot, part: &Command) -> bool {
        let part_of = Demand::of(part).stores.part_of();
        if part_of.is_some_and(|id| self.sessions.has_parts_waiting(by, id)) {
            return true;
        }
        let first = self.admission.blocked_sends.for_parts.tickets.first();
        let first = first.and_then(|first| self.admission.blocked_sends.sends.get(first));
        let may_overtake = first.is_none_or(|it| self.part_lacks_memory(it.by, &it.command));
        !may_overtake
            || self.is_memory_full()
            || self.transactions.exceeds_share(by, part, &self.bodies, &self.sessions)
    }

    /// True if a part that waits goes on waiting.
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
            let blocked = self
                .admission
                .blocked_sends
                .sends
                .get(ticket)
                .expect("invariant: who is in a line waits");
            let is_first_of_its = passed.insert((blocked.by, blocked.command.transaction()));
            is_first_of_its && !self.part_lacks_memory(blocked.by, &blocked.command)
        });
        fits.or(first)
    }

    /// The same of one that waits, where it is the first.
    pub(crate) fn still_lacks_memory(
        &self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        let lacks = match Demand::of(command).stores.part_of() {
            Some(_) => self.part_lacks_memory(by, command),
            None => self.is_memory_short() && self.sessions.brings(by, command),
        };
        lacks.then(|| Shortage::of_memory(command))
    }

    /// True if a send that waits for memory may find some, though nothing is due.
    pub(crate) fn is_memory_to_be_had(&self) -> bool {
        let waits = MEMORY_LINES.iter().any(|of| self.rests(*of));
        waits && (!self.is_memory_short() || self.may_trim())
    }

    /// True if the next in a line for memory waits for nothing else than that. A part that exceeds
    /// the share of its like waits for the end of a transaction.
    fn rests(&self, of: WaitListId) -> bool {
        let WaitList { due, looks, .. } = self.admission.line(of, &self.store);
        let Some(next) = self.next_in_line(of) else { return false };
        let goes_on_otherwise = *looks || self.admission.blocked_sends.held_back.contains(&of);
        let blocked = self
            .admission
            .blocked_sends
            .sends
            .get(&next)
            .expect("invariant: who is in a line waits");
        let exceeds = of == WaitListId::Transactions
            && self.transactions.exceeds_share(
                blocked.by,
                &blocked.command,
                &self.bodies,
                &self.sessions,
            );
        !goes_on_otherwise && !exceeds && due.is_some_and(|due| due > self.store.latest)
    }

    /// Lets the first command that waits for memory go on if there is memory.
    pub(crate) fn notice_memory(&mut self) {
        if !self.is_memory_to_be_had() {
            return;
        }
        self.trim();
        if !self.is_memory_short() {
            MEMORY_LINES.into_iter().for_each(|of| self.admission.may_go_on(of, &mut self.store));
        }
    }

    /// Gives up the parts of a transaction that wait for memory: they will be no part of it.
    pub(crate) fn give_up_parts(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) {
        if !self.sessions.has_parts_waiting(by, id) {
            return;
        }
        let blocked = self.sessions.at(by).owned.blocked.clone();
        self.store.took_steps(blocked.len());
        for ticket in blocked {
            let blocked = self.admission.blocked_sends.sends.get(&ticket);
            let part_of = |it: &BlockedSend| Demand::of(&it.command).stores.part_of();
            if blocked.and_then(part_of) == Some(id) {
                self.give_up_send(ticket, Refusal::TransactionFailed, effects);
            }
        }
    }

    /// No send waits there any more, and perhaps nothing else keeps the queue.
    pub(crate) fn remove_if_unused(&mut self, of: WaitListId) {
        if let WaitListId::Queue(slot) = of {
            self.remove_if_idle(slot);
        }
    }
}

impl Engine {
    /// From now on nothing waits for a place or for memory. The next calls of
    /// [`Engine::handle_timeout`] refuse each waiting command ([`Refusal::Draining`]). A new
    /// command that would wait is refused at once. There is no way back.
    pub fn refuse_waiting(&mut self) {
        self.admission.blocked_sends.is_closed = true;
        let lines: BTreeSet<WaitListId> =
            self.admission.blocked_sends.sends.values().map(|it| it.at).collect();
        lines.into_iter().for_each(|of| self.admission.may_go_on(of, &mut self.store));
    }

    /// Gives up the waiting commands of a session, which no longer wants a place for them.
    pub(crate) fn cancel_sends(&mut self, by: SessionSlot, effects: &mut Effects) -> Outcome {
        for ticket in self.sessions.at(by).owned.blocked.clone() {
            self.give_up_waiting(ticket, effects);
        }
        Outcome::NOTHING
    }

    /// The same of one of them.
    pub(crate) fn cancel_send(
        &mut self,
        by: SessionSlot,
        ticket: u64,
        effects: &mut Effects,
    ) -> Outcome {
        if self.sessions.at(by).owned.blocked.contains(&ticket) {
            self.give_up_waiting(ticket, effects);
        }
        Outcome::NOTHING
    }

    /// It is not done: as if nothing had come in time, where it might have waited for that too.
    pub(crate) fn give_up_waiting(&mut self, ticket: u64, effects: &mut Effects) {
        let blocked = self
            .admission
            .blocked_sends
            .sends
            .get(&ticket)
            .expect("invariant: who has a ticket waits");
        if wait_of(&blocked.command) != Some(Nanos::ZERO) {
            return self.time_out_send(ticket, effects);
        }
        let refusal = match blocked.at {
            WaitListId::Memory | WaitListId::Transactions => Refusal::MemoryFull,
            WaitListId::Queue(slot) => self.store.queue_full(slot),
        };
        self.give_up_send(ticket, refusal, effects);
    }

    fn time_out_send(&mut self, ticket: u64, effects: &mut Effects) {
        let BlockedSend { by, at, floor, .. } =
            self.admission.unblock(ticket, &mut self.sessions, &mut self.store);
        let session = self.sessions.at(by).identity.id;
        let outcome = Outcome::reply(self.log.after_all(), Reply::TimedOut { link: None });
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.remove_if_unused(at);
    }
}

/// The lists in which sends wait for memory.
const MEMORY_LINES: [WaitListId; 2] = [WaitListId::Memory, WaitListId::Transactions];

/// Parts among which one that fits is looked for while the first does not.
const OVERTAKING_MAX: usize = 16;

//! Sends that wait for room: how they begin to wait, go on, and give up.

use alloc::collections::BTreeSet;
use core::slice;

use model::{Command, DependsOn, Nanos, Refusal, Reply, TransactionId};

use crate::Effects;
use crate::admission::send_timeouts::wait_of;
use crate::admission::{BlockedSend, Shortage, WaitListId};
use crate::demand::{Demand, Stores};
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::keyspace::lists::as_run;
use crate::outcome::Outcome;

impl Engine {
    /// True if a send in a line would go on if the log was not behind. The caller tells the engine
    /// as soon as it is not.
    #[must_use]
    pub fn waits_for_log(&self) -> bool {
        self.admission.waits_for_log()
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
        let lets_wait =
            |_: &_| self.admission.lets_wait(&lack, &command, &self.bodies, &self.store);
        let Some(at) = lack.waits_at.filter(lets_wait) else {
            let is_closed = self.admission.is_closed();
            let refusal = if is_closed { Refusal::Draining } else { lack.refusal };
            return self.refuse_send(by, &command, refusal, effects);
        };
        let command = self.directory.addressed(by, command, &self.sessions, &self.store);
        let Self { admission, sessions, store, .. } = self;
        let ticket = admission.block(by, command, (at, lack.bytes), floor, sessions, store);
        Outcome::reply(DependsOn::NOTHING, Reply::Waits { ticket })
    }

    /// The first send of a line goes on, or is refused, or goes on waiting, by time.
    pub(crate) fn admit_next(&mut self, of: WaitListId, effects: &mut Effects) {
        let (next, looks) = (self.next_in_line(of), self.admission.line(of, &self.store).looks());
        let ticket = next.expect("invariant: the timer is set while a send waits");
        if looks && !self.admission.is_closed() {
            return self.admission.look_later(of, &mut self.store);
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
        if self.admission.is_closed() {
            return self.give_up_send(ticket, Refusal::Draining, effects);
        }
        match lack {
            None if self.admission.is_held_back(ticket, &self.sessions, &self.log) => {
                self.admission.hold_back(of, &mut self.store);
            }
            None if self.admission.is_line_awaiting(of, &mut self.bodies, &mut self.store) => {
                self.admission.look_later(of, &mut self.store);
            }
            None if !self.admission.fits_into_call(ticket, &self.sessions, &self.log) => {
                self.admission.set_due(of, Some(self.store.latest), &mut self.store);
                self.log.defer();
            }
            None => self.go_on_within_quotas(ticket, effects),
            Some(Shortage { waits_at: Some(at), .. }) if at != of => {
                let Self { admission, sessions, store, .. } = self;
                admission.change_lines(ticket, at, sessions, store);
                self.directory.remove_if_unused(of, &mut self.sessions, &mut self.store);
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
        line.set_looks(false);
        match line.first() {
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
        for ticket in self.sessions.at_mut(by).take_blocked() {
            let blocked = self.admission.take_blocked(ticket, &mut self.sessions, &mut self.store);
            self.directory.remove_if_unused(blocked.at, &mut self.sessions, &mut self.store);
        }
    }

    fn lack_of(&mut self, ticket: u64) -> Option<Shortage> {
        let blocked = self.admission.blocked(ticket);
        if blocked.at.is_for_memory()
            && let Some(lack) = self.still_lacks_memory(blocked.by, &blocked.command)
        {
            return Some(lack);
        }
        self.lack_of_place(ticket)
    }

    fn lack_of_place(&mut self, ticket: u64) -> Option<Shortage> {
        let blocked = self.admission.blocked(ticket);
        let demand = self.places_for(blocked.by, slice::from_ref(&blocked.command));
        let steps = demand.steps;
        let lack = self.directory.shortage_of_place(&demand, ticket, &self.store, &self.log);
        self.store.took_steps(steps);
        lack
    }

    /// Sends of the same user that waited beside it may have taken what it may have.
    fn go_on_within_quotas(&mut self, ticket: u64, effects: &mut Effects) {
        self.act_as(self.admission.blocked(ticket).by);
        let blocked = self.admission.blocked(ticket);
        match self.over_quota(blocked.by, &blocked.command) {
            Some(refusal) => self.give_up_send(ticket, refusal, effects),
            None => self.go_on(ticket, effects),
        }
    }

    fn go_on(&mut self, ticket: u64, effects: &mut Effects) {
        let blocked = self.admission.unblock(ticket, &mut self.sessions, &mut self.store);
        let BlockedSend { by, command, at, floor, .. } = blocked;
        let now = self.store.latest;
        self.admission.line_mut(at, &mut self.store).set_moved(now);
        let session = self.sessions.at(by).id();
        let outcome = if let Command::Commit { transaction } = command {
            let outcome = self.commit(by, transaction, effects);
            self.sessions.answer_late(by, transaction, ticket);
            outcome
        } else {
            self.do_now(by, command, effects)
        };
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.directory.remove_if_unused(at, &mut self.sessions, &mut self.store);
    }

    pub(crate) fn give_up_send(&mut self, ticket: u64, refusal: Refusal, effects: &mut Effects) {
        let BlockedSend { by, command, at, floor, .. } =
            self.admission.unblock(ticket, &mut self.sessions, &mut self.store);
        let session = self.sessions.at(by).id();
        let outcome = self.refuse_send(by, &command, refusal, effects);
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.directory.remove_if_unused(at, &mut self.sessions, &mut self.store);
    }
}

impl Engine {
    /// How many commands wait until there is memory for the bytes they bring.
    #[must_use]
    pub fn memory_waits(&self) -> u64 {
        self.admission.memory_waits() as u64
    }

    /// Why a command that has just come may not be done now: memory is full, or others wait for it.
    pub(crate) fn shortage_of_memory_for(
        &self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        // The cheapest questions first: nearly all commands end there.
        let line = self.admission.line(WaitListId::Memory, &self.store);
        let is_full = || !line.is_empty() || self.is_memory_full();
        if command.transaction().is_none() && !is_full() {
            return None;
        }
        let lacks = match Demand::of(command).stores {
            Stores::Transaction(id) => self.sessions.has_parts_waiting(by, id),
            Stores::Message { part_of: Some(_), .. } => {
                self.keyspace.brings(by, command, &self.sessions)
                    && self.part_has_to_wait(by, command)
            }
            stores => {
                stores.adds_to_memory()
                    && is_full()
                    && self.keyspace.brings(by, command, &self.sessions)
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
        let first = self.admission.first_blocked(WaitListId::Transactions, &self.store);
        let may_overtake = first.is_none_or(|it| self.part_lacks_memory(it.by, &it.command));
        !may_overtake
            || self.is_memory_full()
            || self.transactions.exceeds_share(by, part, &self.bodies, &self.sessions)
    }

    /// True if a part that waits goes on waiting.
    fn part_lacks_memory(&self, by: SessionSlot, part: &Command) -> bool {
        self.keyspace.brings(by, part, &self.sessions)
            && (self.is_memory_short()
                || self.transactions.exceeds_share(by, part, &self.bodies, &self.sessions))
    }

    /// Of the parts that wait, the one that goes on next: the first, or one close behind it that
    /// fits where the first does not, and no part of the same transaction waits before it.
    pub(crate) fn next_in_line(&self, of: WaitListId) -> Option<u64> {
        let line = self.admission.line(of, &self.store);
        let first = line.first();
        if of != WaitListId::Transactions {
            return first;
        }
        let mut passed = BTreeSet::new();
        let fits = line.iter().take(OVERTAKING_MAX).find(|&ticket| {
            let blocked = self.admission.blocked(ticket);
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
            None => self.is_memory_short() && self.keyspace.brings(by, command, &self.sessions),
        };
        lacks.then(|| Shortage::of_memory(command))
    }

    /// True if a send that waits for memory may find some, though nothing is due.
    pub(crate) fn is_memory_to_be_had(&self) -> bool {
        let waits = MEMORY_LINES.iter().any(|of| self.rests(*of));
        waits && (!self.is_memory_short() || self.bodies.may_trim(self.resting_bytes()))
    }

    /// True if the next in a line for memory waits for nothing else than that. A part that exceeds
    /// the share of its like waits for the end of a transaction.
    fn rests(&self, of: WaitListId) -> bool {
        let line = self.admission.line(of, &self.store);
        let Some(next) = self.next_in_line(of) else { return false };
        let goes_on_otherwise = line.looks() || self.admission.holds_back(of);
        let blocked = self.admission.blocked(next);
        let exceeds = of == WaitListId::Transactions
            && self.transactions.exceeds_share(
                blocked.by,
                &blocked.command,
                &self.bodies,
                &self.sessions,
            );
        !goes_on_otherwise && !exceeds && line.due().is_some_and(|due| due > self.store.latest)
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
        let blocked = self.sessions.at(by).blocked().clone();
        self.store.took_steps(blocked.len());
        for ticket in blocked {
            let blocked = self.admission.find_blocked(ticket);
            let part_of = |it: &BlockedSend| Demand::of(&it.command).stores.part_of();
            if blocked.and_then(part_of) == Some(id) {
                self.give_up_send(ticket, Refusal::TransactionFailed, effects);
            }
        }
    }
}

impl Engine {
    /// From now on nothing waits for a place or for memory. The next calls of
    /// [`Engine::handle_timeout`] refuse each waiting command ([`Refusal::Draining`]). A new
    /// command that would wait is refused at once. There is no way back.
    pub fn refuse_waiting(&mut self) {
        self.admission.close(&mut self.store);
    }

    /// Gives up the waiting commands of a session, which no longer wants a place for them.
    pub(crate) fn cancel_sends(&mut self, by: SessionSlot, effects: &mut Effects) -> Outcome {
        for ticket in self.sessions.at(by).blocked().clone() {
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
        if self.sessions.at(by).blocked().contains(&ticket) {
            self.give_up_waiting(ticket, effects);
        }
        Outcome::NOTHING
    }

    /// It is not done: as if nothing had come in time, where it might have waited for that too.
    pub(crate) fn give_up_waiting(&mut self, ticket: u64, effects: &mut Effects) {
        let blocked = self.admission.blocked(ticket);
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
        let session = self.sessions.at(by).id();
        let outcome = Outcome::reply(self.log.after_all(), Reply::TimedOut { link: None });
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.directory.remove_if_unused(at, &mut self.sessions, &mut self.store);
    }
}

/// The lists in which sends wait for memory.
const MEMORY_LINES: [WaitListId; 2] = [WaitListId::Memory, WaitListId::Transactions];

/// Parts among which one that fits is looked for while the first does not.
const OVERTAKING_MAX: usize = 16;

//! Sends that wait for a place in a queue, or for memory, in the order in which they came.
//!
//! Each is answered at once that it waits, and later with what came of it. It is stored, and
//! counts, when its turn comes; until then nothing is known of it but here. Who comes while others
//! wait goes behind them, though there be a place, so that no sender overtakes itself or another.
//! Who waited for memory may wait for a place then; who waited for a place needs no more memory.
//!
//! A line goes on by its timer, which is due as soon as a message has left its queue, or there is
//! memory, a send a time: so others are served in between, those who take before those who bring.
//! As long as a line goes on everybody in it waits; when it has not for as long as the operator
//! says, whoever has waited so long is refused. A session that ends takes its sends out of all.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{Command, DependsOn, Destination, Nanos, Refusal, Reply, limits};

use crate::Effects;
use crate::bounds::Shortage;
use crate::engine::{Admission, Context, Directory, Engine, MessageStore, Outcome};
use crate::lists::as_run;
use crate::memory::waiting_bytes;
use crate::queue::QueueSlot;
use crate::send_timeouts::{shorten_wait, wait_of};
use crate::session::{SessionSlot, Sessions};
use crate::source_waits::SourceWaits;
use crate::targets::Target;
use crate::timers::Timer;
use crate::wait_lists::{WaitList, WaitListId};

/// All sends that wait, by ticket: the first to come first.
#[derive(Debug)]
pub(crate) struct Pacing {
    pub(crate) sends: BTreeMap<u64, Paced>,
    /// Bytes that all of them store.
    pub(crate) bytes: u64,
    /// What all of them take in memory.
    pub(crate) memory_bytes: u64,
    /// Of these, what those take that wait for memory.
    pub(crate) for_memory_bytes: u64,
    /// Who waits for memory, but for those of the next.
    pub(crate) for_memory: WaitList,
    /// Parts of transactions that wait for memory, and commits behind their own parts.
    pub(crate) for_parts: WaitList,
    /// Queues that nobody finds any more, with a line in which somebody waits still.
    pub(crate) leaving: BTreeSet<QueueSlot>,
    /// Which of them depend on what is in a list.
    pub(crate) sources: SourceWaits,
    /// Lines whose first would go on if the log was not behind.
    pub(crate) held_back: BTreeSet<WaitListId>,
    /// The log takes no more than what settles.
    is_log_behind: bool,
    /// Nobody may wait any more.
    pub(crate) is_closed: bool,
    next: u64,
    /// How long a line may stand still.
    pub(crate) still_max: Nanos,
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct Paced {
    pub(crate) by: SessionSlot,
    pub(crate) command: Command,
    pub(crate) bytes: u64,
    /// Where it waits.
    pub(crate) at: WaitListId,
    pub(crate) since: Nanos,
    /// When it is given up, if it said how long it waits.
    pub(crate) until: Option<Nanos>,
    /// What its answer waits for besides.
    pub(crate) floor: DependsOn,
}

impl Pacing {
    pub(crate) fn new(still_max: Nanos) -> Self {
        Self {
            sends: BTreeMap::new(),
            bytes: 0,
            memory_bytes: 0,
            for_memory_bytes: 0,
            for_memory: WaitList::default(),
            for_parts: WaitList::default(),
            leaving: BTreeSet::new(),
            sources: SourceWaits::default(),
            held_back: BTreeSet::new(),
            is_log_behind: false,
            is_closed: false,
            next: 1,
            still_max,
        }
    }

    fn takes(&self, bytes: u64) -> bool {
        !self.is_closed
            && self.sends.len() < limits::PACED_SENDS_MAX
            && self.bytes + bytes <= limits::PACED_BYTES_MAX as u64
    }
}

impl Engine {
    /// Tells whether the log is behind: what adds to it and waits in a line does not go on then, as
    /// little as what comes, so that what is left is for settling.
    pub fn set_log_behind(&mut self, is_behind: bool) {
        self.admission.pacing.is_log_behind = is_behind;
        if is_behind {
            return;
        }
        for of in core::mem::take(&mut self.admission.pacing.held_back) {
            if self.admission.find_line(of, &self.store).is_some() {
                self.admission.may_go_on(of, &mut self.store);
            }
        }
    }

    /// Whether somebody in a line would go on if the log was not behind: tell as soon as it is not.
    #[must_use]
    pub fn waits_for_log(&self) -> bool {
        !self.admission.pacing.held_back.is_empty()
    }

    /// A command that there is no place or no memory for waits, or is refused.
    pub(crate) fn pace(
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
            self.admission.pacing.takes(lack.bytes)
                && self.admission.may_wait(*at, &command, &self.bodies, &self.store)
        };
        let Some(at) = lack.waits_at.filter(may_wait) else {
            let refusal =
                if self.admission.pacing.is_closed { Refusal::Draining } else { lack.refusal };
            return self.refuse_send(by, &command, refusal, effects);
        };
        let ticket = self.admission.pacing.next;
        self.admission.pacing.next += 1;
        let command = self.directory.addressed(by, command, &self.sessions, &self.store);
        let since = self.store.latest;
        let wait = wait_of(&command).filter(|wait| *wait > Nanos::ZERO);
        let until = wait.map(|wait| since + wait);
        self.store.timers.change(Timer::GiveUp(ticket), None, until);
        let paced = Paced { by, command, bytes: lack.bytes, at, since, until, floor };
        self.admission.pacing.bytes += paced.bytes;
        self.admission.pacing.memory_bytes += waiting_bytes(&paced.command);
        self.admission.pacing.sources.insert(&paced.command, ticket);
        self.admission.pacing.sends.insert(ticket, paced);
        self.sessions.at_mut(by).owned.paced.insert(ticket);
        self.admission.enter_line(ticket, &mut self.sessions, &mut self.store);
        Outcome::reply(DependsOn::NOTHING, Reply::Waits { ticket })
    }

    /// The first of those who wait goes on, or is refused; or goes on waiting, by time.
    pub(crate) fn admit_next(&mut self, of: WaitListId, effects: &mut Effects) {
        let (next, looks) = (self.next_in_line(of), self.admission.line(of, &self.store).looks);
        let ticket = next.expect("invariant: the timer is set while somebody waits");
        if looks && !self.admission.pacing.is_closed {
            let later = self.store.latest + self.admission.pacing.still_max;
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
        // What goes on may have to be a frame of its own.
        self.end_frame(effects);
        if self.admission.pacing.is_closed {
            return self.give_up_send(ticket, Refusal::Draining, effects);
        }
        let later = self.store.latest + self.admission.pacing.still_max;
        match lack {
            None if self.admission.is_held_back(ticket, &self.sessions, &self.context) => {
                self.admission.pacing.held_back.insert(of);
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
                // There was memory for it. What has come for its sake may take all of that, and
                // leaves again once it has looked: to wait for that would have it come again.
                let lack = self.lack_of_place(ticket);
                self.admit_unless(lack, ticket, of, effects);
            }
            None => {}
        }
    }

    /// What a session that closes has waiting never happens.
    pub(crate) fn stop_pacing(&mut self, by: SessionSlot) {
        for ticket in core::mem::take(&mut self.sessions.at_mut(by).owned.paced) {
            let paced = self.admission.take_paced(ticket, &mut self.sessions, &mut self.store);
            self.remove_if_unused(paced.at);
        }
    }

    /// One that waited in one line waits in another.
    fn change_lines(&mut self, ticket: u64, from: WaitListId, to: WaitListId) {
        self.admission.leave_line(ticket, &mut self.sessions, &mut self.store);
        if let Some(paced) = self.admission.pacing.sends.get_mut(&ticket) {
            paced.at = to;
            // It has got on, though this line has not.
            paced.since = self.store.latest;
        }
        if from.is_for_memory() {
            // There was memory for it.
            self.admission.line_mut(from, &mut self.store).moved = self.store.latest;
        }
        self.admission.enter_line(ticket, &mut self.sessions, &mut self.store);
        self.remove_if_unused(from);
    }

    fn lack_of(&mut self, ticket: u64) -> Option<Shortage> {
        let paced =
            self.admission.pacing.sends.get(&ticket).expect("invariant: who is in a line waits");
        if paced.at.is_for_memory()
            && let Some(lack) = self.still_lacks_memory(paced.by, &paced.command)
        {
            return Some(lack);
        }
        self.lack_of_place(ticket)
    }

    fn lack_of_place(&mut self, ticket: u64) -> Option<Shortage> {
        let paced =
            self.admission.pacing.sends.get(&ticket).expect("invariant: who is in a line waits");
        let demand = self.demand_of(paced.by, &paced.command);
        let steps = demand.steps;
        let lack = self.directory.shortage_of_place(&demand, ticket, &self.store, &self.log);
        self.store.took_steps(steps);
        lack
    }

    /// Whether this call may append what it adds: the first of a call always finds its room.
    fn fits_into_call(&self, ticket: u64) -> bool {
        let paced =
            self.admission.pacing.sends.get(&ticket).expect("invariant: who is in a line waits");
        self.log.is_unspent() || {
            let bytes =
                self.sessions.bytes_added(paced.by, &paced.command, &self.context).unwrap_or(0);
            bytes <= self.log.bytes_left_in_call()
        }
    }

    fn go_on(&mut self, ticket: u64, effects: &mut Effects) {
        let paced = self.admission.leave_pacing(ticket, &mut self.sessions, &mut self.store);
        let Paced { by, command, at, floor, .. } = paced;
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
        let Paced { by, command, at, floor, .. } =
            self.admission.leave_pacing(ticket, &mut self.sessions, &mut self.store);
        let session = self.sessions.at(by).identity.id;
        let outcome = self.refuse_send(by, &command, refusal, effects);
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.remove_if_unused(at);
    }
}

impl Admission {
    /// A message has left a queue, or the queue is about to go: who waits for a place may go on.
    pub(crate) fn made_place(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        self.may_go_on(WaitListId::Queue(slot), store);
    }

    /// Whether the log is to take no more of what adds to it.
    fn is_held_back(&self, ticket: u64, sessions: &Sessions, context: &Context) -> bool {
        let paced = self.pacing.sends.get(&ticket).expect("invariant: who is in a line waits");
        self.pacing.is_log_behind
            && sessions.bytes_added(paced.by, &paced.command, context).is_some()
    }

    pub(crate) fn leave_pacing(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Paced {
        let mut paced = self.take_paced(ticket, sessions, store);
        shorten_wait(&mut paced.command, store.latest, paced.until);
        sessions.at_mut(paced.by).owned.paced.remove(&ticket);
        paced
    }

    fn take_paced(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Paced {
        self.leave_line(ticket, sessions, store);
        let paced = self.pacing.sends.remove(&ticket);
        let paced = paced.expect("invariant: who is in a line waits");
        self.pacing.bytes -= paced.bytes;
        self.pacing.memory_bytes -= waiting_bytes(&paced.command);
        self.pacing.sources.remove(&paced.command, ticket);
        self.set_sources_due(store);
        store.timers.change(Timer::GiveUp(ticket), paced.until, None);
        paced
    }
}

impl Directory {
    /// The same command, whatever becomes of the link that it came by.
    fn addressed(
        &self,
        by: SessionSlot,
        command: Command,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> Command {
        let Command::Put { link, message, transaction } = command else { return command };
        let to = match sessions.at(by).links.producers.get(&link) {
            Some(Target::Queue(slot)) => Destination::Queue(store.queues.at(*slot).name.clone()),
            Some(Target::Topic(slot)) => Destination::Topic(self.topics.at(*slot).name.clone()),
            None => return Command::Put { link, message, transaction },
        };
        Command::PutTo { to, message, transaction }
    }
}

impl Outcome {
    /// It answers what was said to wait, if it answers now.
    pub(crate) fn late(mut self, ticket: u64, floor: DependsOn) -> Self {
        if let Some((after, reply)) = self.take_answer() {
            let reply = Reply::Late { ticket, reply: Box::new(reply) };
            return self.answering(after.and(floor), reply);
        }
        self
    }
}

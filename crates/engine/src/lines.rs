//! The lines in which sends wait: one a queue, for a place in it, and one for memory.
//!
//! Who waits for memory and is a part of a transaction holds up its commit, which lines up behind
//! it: so a transaction is whole when it commits. Who waits takes memory as well; those who wait
//! for it take a part that nothing else may use, so that they never wait for each other.

use alloc::collections::BTreeSet;

use model::{Bound, Command, Nanos, Refusal, TransactionId};

use crate::Effects;
use crate::bounds::Lack;
use crate::engine::Engine;
use crate::memory::{adds, transaction_of, waiting_bytes};
use crate::queue::{Queue, QueueSlot};
use crate::session::SessionSlot;
use crate::timers::Timer;

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LineOf {
    /// Memory for what a command brings.
    Memory,
    /// A place in this queue.
    Queue(QueueSlot),
}

/// Who waits for one thing.
#[derive(Debug, Default)]
pub(crate) struct Line {
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
        self.line.tickets.first().is_some_and(|first| *first < ticket)
    }

    /// What those in its line wait for.
    pub(crate) fn bound_of_line(&self) -> Option<Bound> {
        self.policy.bounds.first().or(self.line.bound)
    }
}

impl Engine {
    /// How many commands wait until there is memory for what they bring.
    #[must_use]
    pub fn memory_waits(&self) -> u64 {
        self.pacing.for_memory.tickets.len() as u64
    }

    /// Why a command that has just come may not be done now: memory is full, or others wait for it.
    pub(crate) fn lacks_memory_for(&self, by: SessionSlot, command: &Command) -> Option<Lack> {
        let is_awaited = !self.pacing.for_memory.tickets.is_empty();
        let lacks = match command {
            Command::Commit { .. } if !is_awaited => false,
            Command::Commit { transaction } => self.has_parts_waiting(by, *transaction),
            command => self.brings(by, command) && (is_awaited || self.is_memory_full()),
        };
        lacks.then(|| Lack::of_memory(command))
    }

    /// The same of one that waits, where it is the first.
    pub(crate) fn still_lacks_memory(&self, by: SessionSlot, command: &Command) -> Option<Lack> {
        let lacks = self.is_memory_short() && self.brings(by, command);
        lacks.then(|| Lack::of_memory(command))
    }

    /// Whether so much more may wait there. A commit brings nothing itself, and what it waits for
    /// is there.
    pub(crate) fn may_wait(&self, at: LineOf, command: &Command) -> bool {
        if matches!(command, Command::Commit { .. }) {
            return true;
        }
        let bytes = self.pacing.for_memory_bytes + waiting_bytes(command);
        let is_first = self.pacing.for_memory.tickets.is_empty();
        at != LineOf::Memory || is_first || bytes <= self.memory.awaiting_bytes_max()
    }

    /// Whether the first who waits for memory may find some, though nothing is due.
    pub(crate) fn is_memory_to_be_had(&self) -> bool {
        let Line { tickets, due, looks, .. } = &self.pacing.for_memory;
        let goes_on_otherwise = *looks || self.pacing.held_back.contains(&LineOf::Memory);
        let rests =
            !tickets.is_empty() && !goes_on_otherwise && due.is_some_and(|due| due > self.latest);
        rests && (!self.is_memory_short() || self.may_trim())
    }

    /// Sees to it that the first who waits for memory goes on where there is some.
    pub(crate) fn notice_memory(&mut self) {
        if !self.is_memory_to_be_had() {
            return;
        }
        self.trim();
        if !self.is_memory_short() {
            self.may_go_on(LineOf::Memory);
        }
    }

    /// The first in a line may find what it waits for.
    pub(crate) fn may_go_on(&mut self, of: LineOf) {
        let line = self.line(of);
        if !line.tickets.is_empty() && line.due.is_some_and(|due| due > self.latest) {
            self.set_due(of, Some(self.latest));
        }
    }

    /// What of a transaction waits for memory will be no part of it.
    pub(crate) fn give_up_parts(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        effects: &mut Effects,
    ) {
        if !self.has_parts_waiting(by, id) {
            return;
        }
        let paced = self.sessions.at(by).paced.clone();
        self.took_steps(paced.len());
        for ticket in paced {
            let command = self.pacing.sends.get(&ticket).map(|paced| &paced.command);
            if command.and_then(transaction_of) == Some(id) {
                self.give_up_send(ticket, Refusal::TransactionFailed, effects);
            }
        }
    }

    pub(crate) fn line(&self, of: LineOf) -> &Line {
        match of {
            LineOf::Memory => &self.pacing.for_memory,
            LineOf::Queue(slot) => &self.queues.at(slot).line,
        }
    }

    pub(crate) fn line_mut(&mut self, of: LineOf) -> &mut Line {
        match of {
            LineOf::Memory => &mut self.pacing.for_memory,
            LineOf::Queue(slot) => &mut self.queues.at_mut(slot).line,
        }
    }

    /// The same, where its queue may be gone.
    pub(crate) fn find_line(&self, of: LineOf) -> Option<&Line> {
        match of {
            LineOf::Memory => Some(&self.pacing.for_memory),
            LineOf::Queue(slot) => self.queues.get(slot).map(|queue| &queue.line),
        }
    }

    /// A send lines up where it waits.
    pub(crate) fn enter_line(&mut self, ticket: u64) {
        let of = self.note_waiting(ticket, true);
        let line = self.line_mut(of);
        let is_first = line.tickets.first().is_none_or(|first| *first > ticket);
        line.tickets.insert(ticket);
        if is_first {
            self.set_due(of, Some(self.deadline(of)));
        }
    }

    /// It waits there no more, and the next one has its turn at once.
    pub(crate) fn leave_line(&mut self, ticket: u64) {
        let of = self.note_waiting(ticket, false);
        let now = self.latest;
        let line = self.line_mut(of);
        let was_there = line.tickets.remove(&ticket);
        assert!(was_there, "who waits is in the line");
        let due = (!line.tickets.is_empty()).then_some(now);
        self.pacing.held_back.remove(&of);
        if let (None, LineOf::Queue(slot)) = (due, of) {
            self.pacing.leaving.remove(&slot);
        }
        self.set_due(of, due);
    }

    /// When the first in the line has waited long enough while nobody went on.
    pub(crate) fn deadline(&self, of: LineOf) -> Nanos {
        let line = self.line(of);
        let first = line.tickets.first().and_then(|first| self.pacing.sends.get(first));
        first.map_or(self.latest, |first| first.since.max(line.moved) + self.pacing.still_max)
    }

    pub(crate) fn set_due(&mut self, of: LineOf, due: Option<Nanos>) {
        let before = core::mem::replace(&mut self.line_mut(of).due, due);
        self.timers.change(Timer::Admit(of), before, due);
    }

    /// Nobody waits there any more, and perhaps nothing else keeps it.
    pub(crate) fn remove_if_unused(&mut self, of: LineOf) {
        if let LineOf::Queue(slot) = of {
            self.remove_if_idle(slot);
        }
    }

    /// A send begins or ends to wait; says where.
    fn note_waiting(&mut self, ticket: u64, waits: bool) -> LineOf {
        let paced = self.pacing.sends.get(&ticket).expect("invariant: who has a ticket waits");
        let (by, of) = (paced.by, paced.at);
        let commits = match paced.command {
            Command::Commit { transaction } => Some(transaction),
            _ => None,
        };
        if of == LineOf::Memory {
            let (bytes, part_of) = (waiting_bytes(&paced.command), transaction_of(&paced.command));
            let sum = &mut self.pacing.for_memory_bytes;
            *sum = if waits { *sum + bytes } else { *sum - bytes };
            self.count_waiting_part(by, part_of, waits);
        }
        match (of, commits) {
            (LineOf::Memory, Some(id)) => self.set_awaits_parts(by, id, waits),
            (LineOf::Queue(_), Some(id)) => self.set_waits(by, id, waits),
            (_, None) => {}
        }
        of
    }

    /// Whether it brings something that memory is to keep: not where that is refused anyway, or
    /// what its session observes has changed.
    fn brings(&self, by: SessionSlot, command: &Command) -> bool {
        let observing = self.sessions.at(by).observing.as_ref();
        let is_stale = || observing.is_some_and(|observing| observing.stale);
        match command {
            Command::Batch { .. } if is_stale() => false,
            command => {
                adds(command) && transaction_of(command).is_none_or(|id| self.takes_parts(by, id))
            }
        }
    }
}

impl Lack {
    fn of_memory(command: &Command) -> Self {
        let (refusal, waits_at) = (Refusal::MemoryFull, Some(LineOf::Memory));
        Self { refusal, waits_at, bytes: waiting_bytes(command) }
    }
}

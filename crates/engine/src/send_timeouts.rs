//! Sends that wait for a place or for memory and are given up before their line has stood still for
//! too long: by who sent them, by their own time, or because nothing is stored any more.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use model::{Command, ListCommand, Nanos, QueueFull, Refusal, Reply};

use crate::Effects;
use crate::engine::{Engine, MessageStore, Outcome};
use crate::pacing::Paced;
use crate::queue::QueueSlot;
use crate::session::SessionSlot;
use crate::wait_lists::WaitListId;

impl Engine {
    /// From now on nothing waits for a place or for memory: who does is refused
    /// ([`Refusal::Draining`]) in the next calls of [`Engine::handle_timeout`], and who would is so
    /// at once. There is no way back.
    pub fn refuse_waiting(&mut self) {
        self.admission.pacing.is_closed = true;
        let lines: BTreeSet<WaitListId> =
            self.admission.pacing.sends.values().map(|it| it.at).collect();
        lines.into_iter().for_each(|of| self.admission.may_go_on(of, &mut self.store));
    }

    /// What a session has waiting for a place it no longer wants.
    pub(crate) fn cancel_sends(&mut self, by: SessionSlot, effects: &mut Effects) -> Outcome {
        for ticket in self.sessions.at(by).owned.paced.clone() {
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
        if self.sessions.at(by).owned.paced.contains(&ticket) {
            self.give_up_waiting(ticket, effects);
        }
        Outcome::NOTHING
    }

    /// It is not done: as if nothing had come in time, where it might have waited for that too.
    pub(crate) fn give_up_waiting(&mut self, ticket: u64, effects: &mut Effects) {
        let paced =
            self.admission.pacing.sends.get(&ticket).expect("invariant: who has a ticket waits");
        if wait_of(&paced.command) != Some(Nanos::ZERO) {
            return self.time_out_send(ticket, effects);
        }
        let refusal = match paced.at {
            WaitListId::Memory | WaitListId::Transactions => Refusal::MemoryFull,
            WaitListId::Queue(slot) => self.store.queue_full(slot),
        };
        self.give_up_send(ticket, refusal, effects);
    }

    fn time_out_send(&mut self, ticket: u64, effects: &mut Effects) {
        let Paced { by, at, floor, .. } =
            self.admission.leave_pacing(ticket, &mut self.sessions, &mut self.store);
        let session = self.sessions.at(by).identity.id;
        let outcome = Outcome::reply(self.log.after_all(), Reply::TimedOut { link: None });
        self.conclude(session, outcome.late(ticket, floor), effects);
        self.remove_if_unused(at);
    }
}

impl MessageStore {
    fn queue_full(&self, slot: QueueSlot) -> Refusal {
        let queue = self.queues.at(slot);
        let bound = queue.bound_of_line();
        let bound = bound.expect("invariant: only queues that had bounds have lines");
        Refusal::QueueFull(Box::new(QueueFull { queue: queue.name.clone(), bound }))
    }
}

/// How long a command may wait for what it takes, and therefore for a place; `None`: for ever.
/// What only stores has no time of its own.
pub(crate) fn wait_of(command: &Command) -> Option<Nanos> {
    match command {
        Command::List(ListCommand::Move { wait, .. }) => *wait,
        _ => Some(Nanos::ZERO),
    }
}

/// What is left of that time at a later moment.
pub(crate) fn shorten_wait(command: &mut Command, now: Nanos, until: Option<Nanos>) {
    if let Command::List(ListCommand::Move { wait, .. }) = command
        && let Some(until) = until
    {
        *wait = Some(until.since(now));
    }
}

//! Runs: what a client asked several times, one behind the other, done as one command and one frame
//! where that comes to the same.
//!
//! It does where nothing could come between: nobody consumes from the queue or waits for its
//! elements, nothing bounds it or protects what is popped, and all finds its room. Anything else is
//! asked for command by command.

use alloc::boxed::Box;
use alloc::sync::Arc;

use model::{Command, DependsOn, ListCommand, OneOrMany, QueueName, Refusal, Reply, limits};

use crate::Effects;
use crate::batch_load::RECORD_BYTES_MAX;
use crate::engine::{Admission, Engine, MessageStore, Outcome};
use crate::lists::{PopArgs, Push};
use crate::queue::Queue;
use crate::session::SessionSlot;

/// What each command of a run costs of [`limits::COMMAND_STEPS`], which is about what it takes.
pub(crate) const STEPS: usize = limits::COMMAND_STEPS / 2;

/// Bytes that a run takes or looks at, with what exceeds them: so many may be added to what a peer
/// has not read yet before that is looked at again.
pub(crate) const SHOWN_BYTES_MAX: usize = 64 * 1024;

impl Engine {
    pub(crate) fn push_each(
        &mut self,
        name: QueueName,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if !self.admission.is_quiet(&name, &self.store) || !self.has_room_for(&name, &elements) {
            let Push { end, persistence, .. } = *push;
            let run = ListCommand::PushEach { queue: name, end, elements, persistence };
            return Ok(Outcome::apart(run));
        }
        self.store.took_steps(STEPS * elements.len());
        self.push(name, push, elements, effects)
    }

    pub(crate) fn pop_each(
        &mut self,
        by: SessionSlot,
        name: QueueName,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if !self.admission.is_quiet(&name, &self.store) || self.store.protects_popped(&name) {
            let PopArgs { end, max, .. } = hand;
            return Ok(Outcome::apart(ListCommand::PopEach { queue: name, end, max }));
        }
        self.store
            .took_steps(STEPS.saturating_mul(usize::try_from(hand.max).unwrap_or(usize::MAX)));
        self.pop(by, &name, PopArgs { bytes_max: SHOWN_BYTES_MAX, ..hand }, effects)
    }

    /// Whether one frame, the log and memory surely take all of these.
    fn has_room_for(&self, name: &QueueName, elements: &[Arc<[u8]>]) -> bool {
        let around = RECORD_BYTES_MAX + name.as_str().len();
        let bytes: usize = elements.iter().map(|element| around + element.len()).sum();
        let has_room = !self.log.is_scarce() && bytes <= self.log.frame_bytes_max;
        has_room && self.surely_keeps(elements)
    }
}

impl Admission {
    /// Whether nobody but who asks has to do with the elements of a list.
    fn is_quiet(&self, name: &QueueName, store: &MessageStore) -> bool {
        match store.queues.find(name.as_str()) {
            Some(slot) => store.queues.at(slot).is_quiet(),
            None => !self.is_bounded,
        }
    }
}

impl MessageStore {
    fn protects_popped(&self, name: &QueueName) -> bool {
        let slot = self.queues.find(name.as_str());
        slot.is_some_and(|slot| self.queues.at(slot).policy.pop_lease.is_some())
    }
}

impl Queue {
    fn is_quiet(&self) -> bool {
        let is_consumed = !self.delivery.consumers.is_empty() || self.waiting_count() > 0;
        !self.policy.bounds.is_bounded() && !is_consumed && self.admission.line.tickets.is_empty()
    }
}

impl Outcome {
    /// Nothing is done of a run.
    pub(crate) fn apart(run: ListCommand) -> Self {
        Self::reply(DependsOn::NOTHING, Reply::Apart(Box::new(run)))
    }
}

/// A command that is a run, or the command.
pub(crate) fn as_run(command: Command) -> Result<ListCommand, Command> {
    match command {
        Command::List(run @ (ListCommand::PushEach { .. } | ListCommand::PopEach { .. })) => {
            Ok(run)
        }
        command => Err(command),
    }
}

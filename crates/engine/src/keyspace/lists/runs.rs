//! Runs: pipelined commands of one kind from one client, done as one command and one frame if that
//! comes to the same.
//!
//! It does if nothing can come between. No client consumes from the queue or waits for its
//! elements, nothing bounds it or protects popped elements, and all finds its room. Any other run
//! is asked for command by command.

use alloc::boxed::Box;

use model::{Command, DependsOn, ListCommand, QueueName, Reply, limits};

use crate::demand::{Batching, Demand};
use crate::outcome::Outcome;
use crate::store::MessageStore;
use crate::store::queue::Queue;

/// Steps that are counted for each command of a run, which is about the time it takes.
pub(crate) const STEPS: usize = limits::COMMAND_STEPS / 2;

/// Bytes that a run takes or looks at, with the element that exceeds them. So many may be added to
/// the replies that a peer has not read yet before their size is looked at again.
pub(crate) const SHOWN_BYTES_MAX: usize = 64 * 1024;

impl MessageStore {
    /// True if only the asking client has to do with the elements of a list.
    pub(crate) fn is_quiet(&self, name: &QueueName) -> bool {
        match self.queues.find(name.as_str()) {
            Some(slot) => self.queues.at(slot).is_quiet(),
            None => !self.is_bounded(),
        }
    }

    pub(crate) fn protects_popped(&self, name: &QueueName) -> bool {
        let slot = self.queues.find(name.as_str());
        slot.is_some_and(|slot| self.queues.at(slot).policy.pop_lease.is_some())
    }
}

impl Queue {
    fn is_quiet(&self) -> bool {
        let is_consumed = !self.delivery.consumers.is_empty() || self.waiting_count() > 0;
        !self.policy.bounds.is_bounded() && !is_consumed && self.admission.line.is_empty()
    }
}

impl Outcome {
    /// Nothing is done of a run.
    pub(crate) fn apart(run: ListCommand) -> Self {
        Self::reply(DependsOn::NOTHING, Reply::NotBatchable(Box::new(run)))
    }
}

/// A command that is a run, or the command.
pub(crate) fn as_run(command: Command) -> Result<ListCommand, Command> {
    match command {
        Command::List(run) if Demand::of_list(&run).batching == Batching::Run => Ok(run),
        command => Err(command),
    }
}

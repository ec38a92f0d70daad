//! Sends that wait for a place or for memory and are given up before their line has stood still for
//! too long. Their sender gives them up, or their own time ends, or nothing is stored any more.

use alloc::boxed::Box;

use model::{Command, Nanos, QueueFull, Refusal};

use crate::demand::{Changes, Demand};
use crate::ids::QueueSlot;
use crate::store::MessageStore;

impl MessageStore {
    pub(crate) fn queue_full(&self, slot: QueueSlot) -> Refusal {
        let queue = self.queues.at(slot);
        let bound = queue.bound_of_line();
        let bound = bound.expect("invariant: only queues that had bounds have lines");
        Refusal::QueueFull(Box::new(QueueFull { queue: queue.name.clone(), bound }))
    }
}

/// The longest time that a command may wait for its element, and therefore for a place; `None`: for
/// ever. A command that only stores has no time of its own.
pub(crate) fn wait_of(command: &Command) -> Option<Nanos> {
    match Demand::of(command).changes {
        Changes::Moved { wait, .. } => wait,
        _ => Some(Nanos::ZERO),
    }
}

/// Sets the wait of a command to the time that is left at a later moment.
pub(crate) fn shorten_wait(command: &mut Command, now: Nanos, until: Option<Nanos>) {
    if let (Command::List(command), Some(until)) = (command, until) {
        command.set_wait(until.since(now));
    }
}

//! Deleting keys: values, and the ready messages of queues.

use alloc::vec::Vec;

use model::{Reply, limits};

use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;

/// The deletions of one command.
#[derive(Debug)]
pub(crate) struct Deletion {
    /// How many messages and values it may still delete.
    left: usize,
    /// Keys that are gone.
    keys: u64,
    /// Queues of which it deleted something.
    lists: Vec<QueueSlot>,
}

impl MessageStore {
    /// How many ready messages there are.
    pub(crate) fn ready_count(&self, slot: QueueSlot) -> usize {
        usize::try_from(self.queues.at(slot).counts().ready()).unwrap_or(usize::MAX)
    }
}

impl FrameWriter {
    pub(crate) fn deleted(&self, reply: Reply, deletion: Deletion) -> Outcome {
        Outcome::reply(self.after_all(), reply).waking_all(deletion.lists)
    }
}

impl Deletion {
    pub(crate) const fn begin() -> Self {
        Self { left: limits::FRAME_RECORDS_MAX, keys: 0, lists: Vec::new() }
    }

    /// How many messages and values it may still delete.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// How many keys are gone.
    pub(crate) const fn keys(&self) -> u64 {
        self.keys
    }

    /// A client that drains the list is to hear that nothing is left.
    pub(crate) fn touch(&mut self, list: QueueSlot) {
        self.lists.push(list);
    }

    /// All of a key is gone.
    pub(crate) fn count_key(&mut self) {
        self.keys += 1;
        let deleted = (limits::FRAME_RECORDS_MAX - self.left) as u64;
        assert!(self.keys <= deleted, "a key is a value, or a list with elements");
    }

    pub(crate) fn takes_one(&mut self) -> bool {
        let may = self.left > 0;
        self.left -= usize::from(may);
        may
    }
}

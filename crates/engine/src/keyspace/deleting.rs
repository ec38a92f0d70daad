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
    pub(crate) left: usize,
    /// Keys that are gone.
    pub(crate) keys: u64,
    /// Queues of which it deleted something.
    pub(crate) lists: Vec<QueueSlot>,
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

    pub(crate) fn takes_one(&mut self) -> bool {
        let may = self.left > 0;
        self.left -= usize::from(may);
        may
    }
}

//! The effects of a step of the engine, left for its caller: frames for the journal, places in the
//! log that are dead, and answers for sessions. The caller drains and reuses one [`Effects`], so
//! that steps allocate nothing for it.

use alloc::vec::Vec;

use model::{DependsOn, Durability, LiveRecords, Lsn, Output, Reply, SessionId};

/// The effects of one or several steps, in order.
#[derive(Debug, Default)]
pub struct Effects {
    /// The records of all frames, one after another.
    pub records: Vec<u8>,
    /// The end of each frame in `records`. The first begins at 0, each other at the end of the one
    /// before it.
    pub frames: Vec<FrameEnd>,
    /// Message records in the log that would take more if they were stored anew.
    pub grown: Vec<Grown>,
    /// Message records in the log that are not needed any more.
    pub freed: Vec<Freed>,
    /// Answers, each with the position that must be durable before it may leave.
    pub outputs: Vec<Output>,
}

/// One frame: the atomic unit of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEnd {
    /// The end of its records, in bytes of [`Effects::records`].
    pub end: usize,
    /// Its position; each frame has the one after the frame before it.
    pub lsn: Lsn,
    /// The highest durability of the messages that it is about; never [`Durability::None`].
    pub level: Durability,
    /// The Message records in it, which live until they are reported as [`Freed`].
    pub live: LiveRecords,
}

/// A Message record in the frame at `lsn` would take so many bytes more than was reported before.
/// The state in later records of its message is stored with it when it is stored anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The frame.
    pub lsn: Lsn,
    /// How many more.
    pub bytes: u64,
}

/// The Message record of `bytes` bytes in the frame at `lsn` is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The frame.
    pub lsn: Lsn,
    /// The bytes that were counted for the record in [`FrameEnd::live`] and as [`Grown`].
    pub bytes: u64,
}

impl Effects {
    /// Forgets everything and keeps the memory, but for that of a large commit.
    pub fn clear(&mut self) {
        self.records.clear();
        self.records.shrink_to(RECORDS_BYTES_KEPT);
        self.frames.clear();
        self.grown.clear();
        self.freed.clear();
        self.outputs.clear();
    }

    /// True when there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.frames.is_empty()
            && self.grown.is_empty()
            && self.freed.is_empty()
            && self.outputs.is_empty()
    }

    pub(crate) fn reply(&mut self, session: SessionId, after: DependsOn, reply: Reply) {
        self.outputs.push(Output { session, after, reply });
    }
}

/// Enough for the frames of most steps.
const RECORDS_BYTES_KEPT: usize = 1024 * 1024;

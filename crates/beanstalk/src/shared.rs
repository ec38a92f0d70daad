//! The state that all connections of a listener share.

use alloc::boxed::Box;
use core::fmt;

use model::{Draining, Nanos};

use crate::verb::Counts;

/// Counters and settings of one listener; lives under the broker's lock.
pub struct ListenerState {
    /// Refuses every put with `DRAINING` while it is set.
    pub draining: Draining,
    pub(crate) body_bytes_max: usize,
    pub(crate) counts: Counts,
    pub(crate) connections: Population,
    pub(crate) facts: Box<dyn StatsFacts + Send>,
}

/// How many connections there are.
#[derive(Debug, Default)]
pub(crate) struct Population {
    pub(crate) open: u64,
    /// Open ones that have put.
    pub(crate) producers: u64,
    /// Open ones that have reserved.
    pub(crate) workers: u64,
    /// Opened ever.
    pub(crate) total: u64,
}

impl ListenerState {
    /// Nothing counted yet. Larger bodies than `max_message_bytes` are refused.
    #[must_use]
    pub fn new(max_message_bytes: usize, facts: Box<dyn StatsFacts + Send>) -> Self {
        Self {
            draining: Draining::default(),
            body_bytes_max: max_message_bytes,
            counts: Counts::default(),
            connections: Population::default(),
            facts,
        }
    }
}

impl fmt::Debug for ListenerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerState")
            .field("draining", &self.draining)
            .field("body_bytes_max", &self.body_bytes_max)
            .field("counts", &self.counts)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// The facts of `stats` about the process and its machine. Asked for nothing else.
pub trait StatsFacts {
    /// The process id.
    fn pid(&self) -> u32;
    /// The server's version, such as `dunlin 0.1.0`.
    fn version(&self) -> &str;
    /// Processor time spent outside the kernel.
    fn user_time(&self) -> Nanos;
    /// Processor time spent in the kernel.
    fn system_time(&self) -> Nanos;
    /// Since the process started.
    fn uptime(&self) -> Nanos;
    /// A random number that tells this run of the process from every other; shown in hex.
    fn instance_id(&self) -> u64;
    /// The machine's name.
    fn hostname(&self) -> &str;
    /// The version of its operating system, as `uname -v` shows it.
    fn os(&self) -> &str;
    /// Its architecture, as `uname -m` shows it.
    fn platform(&self) -> &str;
    /// For the `binlog-` keys; all zero without a journal.
    fn journal(&self) -> JournalFacts;
}

/// The facts of `stats` about the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalFacts {
    /// The number of the oldest segment that is needed.
    pub oldest_segment: u64,
    /// The number of the segment that is being written.
    pub current_segment: u64,
    /// Records copied forward by compaction.
    pub records_migrated: u64,
    /// Records written in all.
    pub records_written: u64,
    /// Bytes of one segment.
    pub segment_bytes: u64,
}

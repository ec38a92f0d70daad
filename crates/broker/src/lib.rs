//! Engine and journal joined: one turn.
//!
//! A [`Broker`] steps the engine, appends its changes as frames, and passes on its outputs with the
//! log position they depend on. It holds no thread and calls no disk once it is open; the server
//! and the simulation drive it alike:
//!
//! ```text
//! handle / handle_timeout -> outputs          (wait at the gate for durable())
//! poll_write -> Write::perform  -> handle_write   moves durable()
//! poll_chore -> Chore::perform  -> handle_chore   keeps room and bounds space; bodies leave memory
//! poll_fetch -> Fetch::perform  -> handle_fetch   brings back bodies that left memory, and outputs
//! ```
//! Feed no command while [`Broker::stalled`].

mod broker;
mod explain;
mod fetching;
mod log;
mod recovery;
mod returning;
mod salvage;
mod spilling;
mod work;
mod write_scheduler;

pub use broker::{Broker, BrokerOptions};
pub use explain::{Explained, Explaining, QUEUES_EXPLAINED_MAX, QueueShare, explain};
pub use journal::{
    Durable, Gate, JournalCounters, JournalFailed, OpenError, SpillCounters, Unwritten, Write,
};
pub use recovery::{Recovery, Repaired, repair, verify};
pub use salvage::{SalvageError, Salvaged, salvage};
pub use spilling::SPILL_FILE_BYTES;
pub use work::{Chore, ChoreDone, Fetch, FetchDone};
pub use write_scheduler::{IDLE_WRITE_DELAY, ScheduledWrite, WriteScheduler};

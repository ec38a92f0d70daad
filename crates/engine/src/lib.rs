//! Queues, leases and timers as a pure state machine.
#![no_std]

extern crate alloc;

mod effects;
mod engine;
mod policy;
mod record;
mod snapshot;

pub use effects::{Effects, FrameEnd, Freed};
pub use engine::Engine;
pub use policy::{EngineOptions, QueuePolicies, QueuePolicy, ReleaseOrder};
pub use record::{Counters, RecordError, RecordView, Standing, StoredState, describe};
pub use snapshot::SnapshotCursor;

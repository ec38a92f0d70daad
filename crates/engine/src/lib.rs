//! Queues, leases and timers as a pure state machine.
#![no_std]

extern crate alloc;

mod check;
mod codec;
mod compaction;
mod effects;
mod engine;
mod log;
mod looking;
mod message;
mod moving;
mod order_set;
mod pages;
mod policy;
mod producing;
mod queue;
mod receiving;
mod record;
mod recovery;
mod session;
mod settling;
mod slab;
mod snapshot;
mod timers;
mod wire;

pub use codec::describe;
pub use effects::{Effects, FrameEnd, Freed};
pub use engine::Engine;
pub use policy::{EngineOptions, QueuePolicies, QueuePolicy, ReleaseOrder};
pub use record::{Counters, Envelope, FieldValue, RecordError, RecordView, Standing, StoredState};
pub use snapshot::SnapshotCursor;

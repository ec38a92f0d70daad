//! Queues, topics, leases and transactions as a pure state machine: commands and the time go in,
//! frames for a journal and answers for sessions come out.
//!
//! It contains no clock, file, socket, thread, randomness or hash order, and knows no protocol.
//! The same calls always have the same effects. No input panics; a panic is a broken invariant.
//!
//! # How to drive it
//!
//! ```
//! use engine::{Effects, Engine, EngineOptions, QueuePolicies};
//! use model::{Capacity, Command, Destination, LinkId, Nanos, NewMessage};
//! use model::{QueueName, Reply, SessionId};
//!
//! let policy = model::StorePolicy::Always;
//! let queue_policies = QueuePolicies::default();
//! let mut engine = Engine::new(EngineOptions { queue_policies, ..EngineOptions::new(policy) });
//! let (session, link, now) = (SessionId(1), LinkId(0), Nanos::SECOND);
//! let capacity = Capacity::UNBOUNDED;
//! let mut effects = Effects::default();
//!
//! engine.open_session(session);
//! let to = Destination::Queue(QueueName::new("mail")?);
//! engine.handle(now, session, Command::OpenProducer { link, to }, capacity, &mut effects);
//! effects.clear();
//!
//! let message = NewMessage {
//!     priority: 10,
//!     ..NewMessage::new((*b"hello").into())
//! };
//! let put = Command::Put { link, message, transaction: None };
//! engine.handle(now, session, put, capacity, &mut effects);
//! let output = &effects.outputs[0];
//! assert!(matches!(output.reply, Reply::Stored { .. }));
//! // The answer may leave once this frame is durable:
//! assert_eq!(output.after.lsn, effects.frames[0].lsn);
//! # Ok::<(), model::NameError>(())
//! ```
//!
//! - [`Engine::open_session`] before a session's first command, [`Engine::close_session`] at its
//!   end. Each command is answered by one [`model::Output`] of its session; a receive that waits
//!   is answered by a later call, whichever that is. The answers to a consumer with credit are
//!   its deliveries, in this call or any later one.
//! - After each call, before the next frame is made durable elsewhere: append the new
//!   [`Effects::frames`] to the journal in their order, tell it the [`Effects::freed`] places,
//!   and hold each of [`Effects::outputs`] back until the position it
//!   [depends on](model::DependsOn) is durable. Several calls may share one [`Effects`].
//! - While [`Engine::poll_timeout`] is not after the present, call [`Engine::handle_timeout`].
//! - A commit larger than a frame may be is answered later: while there is
//!   [`Engine::awaited_room`], have it made ready and call [`Engine::commit_awaiting`].
//! - Each call is given the journal's [`model::Capacity`] of that moment;
//!   [`Engine::handle_capacity`] tells it between calls.
//!
//! # Recovery, snapshots, compaction
//!
//! In this order: [`Engine::load`] the chunks of a snapshot, [`Engine::replay`] the frames after
//! its begin, [`Engine::restore_body`] those before it that are still there, and
//! [`Engine::finish_recovery`]. Messages come back, leases, pauses, sessions and totals do not: a
//! message that was leased or held is ready. Messages and keys that memory alone keeps
//! ([`model::Durability::None`]) are gone.
//!
//! [`Engine::snapshot_begin`] and [`Engine::snapshot_chunk`] make a snapshot in small steps between
//! commands. [`Engine::restate`] stores anew the living messages of an old frame.
//!
//! # Costs
//!
//! Every command takes time logarithmic in the number of messages, whichever states they are in,
//! plus time for the messages it delivers. A receive looks once at each queue its consumer watches.
//! [`Engine::steps`] counts the cost. A message that becomes ready is held against each selector of
//! its queue's consumers.
//!
//! Work that may be much is done in steps, the rest by timers that are due at once: giving a
//! queue's messages to consumers with credit, looking through them for a selector or a browser,
//! returning the messages that a session held, forgetting the messages of a queue that is gone.
//!
//! A kick moves all that one frame takes in one call: about 0.3 µs a message. A command on a list
//! counts the elements it looks at, at most [`model::limits::LIST_SCAN_MAX`]. A place in the middle
//! is found by counting 64 neighbours at once, from the nearer end. A ready message of 100 bytes
//! takes 233 bytes of memory in all.
#![no_std]

extern crate alloc;

mod admission;
mod bodies;
mod check;
mod collections;
mod commands;
mod consequences;
mod dedup;
mod delivery;
mod demand;
mod directory;
mod engine;
mod ids;
mod keyspace;
mod log;
mod outcome;
mod recovery;
mod replies;
mod rights;
mod sessions;
mod store;
mod transactions;

pub use bodies::waits::{StoredBody, stored_bodies};
pub use bodies::{Bodies, Spilled};
pub use demand::adds_to_memory;
pub use directory::policy::{DeadLettersMax, EngineOptions, QueuePolicies};
pub use engine::Engine;
pub use log::effects::{Effects, FrameEnd, Freed, Grown};
pub use log::usage::Logged;
pub use model::{DeadLetters, QueueBounds, QueuePolicy, ReleaseOrder, WhenFull};
pub use records::{
    Copies, DeadView, DeadlineView, ExpiredList, FieldValue, MessageCounters, OwnPolicyView, Place,
    RecordError, RecordView, SendIdView, Standing, StoredEnvelope, StoredState, SubscriptionView,
    ValueView, describe,
};
pub use recovery::salvage::{LostMessage, Salvage, SalvageReport};
pub use recovery::snapshot::SnapshotCursor;

//! The words that all of Dunlin shares: identities, positions, time, durability, the message and
//! what travels between a protocol session and the engine ([`Command`] in, [`Output`] out).
//!
//! It contains no behaviour beyond its own invariants: no clock, no file, no socket, no thread.
//! Every crate of the house may depend on it, and it depends on none.
#![no_std]

extern crate alloc;

mod command;
mod durability;
mod ids;
pub mod limits;
mod message;
mod output;
mod statistics;
mod time;

pub use command::{Command, Peek};
pub use durability::{After, Durability, Persistence, StorePolicy};
pub use ids::{LinkId, Lsn, MessageId, NameError, QueueName, SessionId};
pub use message::NewMessage;
pub use output::{Delivery, Output, Refusal, Reply};
pub use statistics::{BrokerStatistics, MessageState, MessageStatistics, QueueStatistics};
pub use time::Nanos;

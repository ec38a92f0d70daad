//! The parts that tests, the simulator and the project's tools share. No product crate depends on
//! it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

pub mod amqp_broker;
pub mod amqp_peer;
mod corpus;
mod directory;
pub mod escape;
pub mod foreign_server;
mod line_client;
mod memory;
pub mod patience;
mod rng;
pub mod scripts;
mod seen;

pub use corpus::{damage, replay, write_seeds};
pub use directory::Directory;
pub use line_client::LineClient;
pub use memory::resident_bytes;
pub use rng::Rng;
pub use seen::{Seen, seeds};

//! The parts that tests, the simulator and the project's tools share. No product crate depends on
//! it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub mod amqp_broker;
mod rng;
mod seen;

pub use rng::Rng;
pub use seen::{Seen, seeds};

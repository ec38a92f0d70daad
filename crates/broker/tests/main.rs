//! The integration tests in one binary: each binary links the whole crate anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod golden;
mod refusal;
mod returning;
mod spilling;
mod support;
mod transactions;

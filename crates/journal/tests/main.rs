//! The integration tests in one binary: each binary links the whole crate anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod belonging;
mod chains;
mod damage;
mod fetch;
mod forgery;
mod journal;
mod pieces;
mod spill;
mod store;

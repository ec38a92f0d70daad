//! HTTP against a server of the test's own, beside other protocols.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod browsers;
mod client;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod cutting_off;
mod departures;
mod frames;
mod idle;
mod leases;
mod limits;
mod messages;
mod policies;
mod tables;
mod topics;
mod transactions;

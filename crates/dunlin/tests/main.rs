//! The binary as its users start it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod bench;
mod client;
mod common;
mod files_gone;
mod journal;
mod metrics_page;
mod serve;
mod unanswered;
mod user;

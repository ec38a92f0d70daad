//! Peers that do their worst, against the real binary: they cost bounded memory, they are refused
//! as docs/reference/limits.md says, and a neighbour by the same protocol gets right answers
//! meanwhile.
//!
//! Memory is that of the server's process, as the system counts it. Nothing here is timed: a peer
//! sends until the server takes no more, and the neighbours are served in between.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod amplified;
mod broker;
mod busy;
mod crowded;
mod descriptors;
mod endless;
mod full_memory;
mod giant;
mod half;
mod idle;
mod login;
mod neighbours;
mod restarted;
mod spilled;
mod strangers;
mod streams;
mod unread;

//! The session as a server drives it: scripts, hostile peers, and the real Redis beside it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod collection_commands;
mod collections;
mod comparison;
mod connection;
mod databases;
mod differential;
mod facts;
mod hostile;
mod limits;
mod ours;
mod programs;
mod protection;
mod real;
mod runs;
mod scripts;
mod streams;
mod strings;
mod unblocking;

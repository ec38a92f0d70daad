//! The session as a server drives it: scripts, and what peers should not send.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod connection;
mod escape;
mod facts;
mod hostile;
mod random;
mod scripts;

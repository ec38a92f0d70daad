//! The session as a server drives it: scripts, hostile peers, and the real beanstalkd beside it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod answers;
mod comparison;
mod connection;
mod differential;
mod facts;
mod hostile;
mod ours;
mod real;
mod scripts;

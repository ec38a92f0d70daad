//! Scripts against the real Redis, and against their limits.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod calls;
mod differential;
mod encoding;
mod hostile;
mod isolation;
mod support;

//! The job driver from outside: against the original server and against hostile ones.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy.toml allows them in tests, but sees only the test functions as such"
)]

mod beanstalkd;
mod common;
mod hostile;

//! Load drivers and benchmarks.
//!
//! [`jobs`] drives any beanstalkd server, ours or another, over its protocol and measures what a
//! client sees. [`raw_disk`] measures the disk itself, because durable figures mean little without
//! the rate of the disk that they were taken on. Nothing here knows the inside of the broker.

mod error;
pub mod jobs;
mod raw_disk;

pub use error::BenchError;
pub use raw_disk::{RawSyncRate, SyncRate, raw_disk};

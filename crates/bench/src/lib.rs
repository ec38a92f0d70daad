//! Load drivers and benchmarks.
//!
//! [`jobs`] drives any beanstalkd server, ours or another, over its protocol and measures the
//! answers that a client sees; [`matrix`], [`transactions`], [`travel_time`] and [`factors`] drive
//! any broker of AMQP 1.0. [`raw_disk()`] measures the disk itself, because durable figures mean
//! little without the rate of the disk that they were taken on. Of the broker nothing is known here
//! but its protocols.

mod backlog;
mod broker;
mod client;
mod closing;
mod error;
pub mod factors;
pub mod jobs;
pub mod matrix;
mod processor;
mod raw_disk;
mod report;
mod rounds;
mod table;
pub mod transactions;
pub mod travel_time;

pub use crate::client::Target;
pub use broker::{Broker, Brokers, Open, Store, Written};
pub use closing::{Closing, Rate};
pub use error::BenchError;
pub use raw_disk::{RawSyncRate, SyncRate, raw_disk, raw_disk_of, raw_stream};
pub use report::Report;

/// How far a benchmark over AMQP is; given about ten times a second.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The phase that is under way.
    pub phase: &'a str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do.
    pub total: u64,
}

//! Options of `cargo xtask bench-redis`.

use std::path::PathBuf;
use std::time::Duration;

use super::LIMIT;
use crate::cli::at_least_one;

/// The choices.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// dunlin-always, dunlin-none, redis-none, redis-everysec, redis-always, or some
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = SERVERS)]
    pub(super) servers: Vec<String>,
    /// Connections
    #[arg(long, value_name = "N", default_value = "100")]
    pub(super) clients: u32,
    /// Rounds, of which the median counts
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) rounds: u32,
    /// Send a Nth of the requests only
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one::<u64>)]
    pub(super) share: u64,
    /// dunlin [default: the release build]
    #[arg(long, value_name = "PATH")]
    pub(super) binary: Option<PathBuf>,
    #[arg(skip = LIMIT)]
    pub(super) limit: Duration,
}

const SERVERS: &str = "dunlin-always,redis-none,redis-everysec,redis-always";

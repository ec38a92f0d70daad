//! Options of `cargo xtask bench-compaction`.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::{at_least_one, seconds};

/// The choices.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Connections that store a job and delete another
    #[arg(long, value_name = "N", default_value = "16", value_parser = at_least_one::<usize>)]
    pub(super) clients: usize,
    /// Jobs that stay stored
    #[arg(long, value_name = "N", default_value = "40000", value_parser = at_least_one::<usize>)]
    pub(super) kept: usize,
    /// Bytes of a job
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(super) bytes: usize,
    /// Bytes of a segment of the log, as dunlin's option
    #[arg(long, value_name = "N", default_value = "16M")]
    pub(super) segment_bytes: String,
    /// Seconds of each order of deleting, in each round
    #[arg(long = "seconds", value_name = "N", default_value = "30", value_parser = seconds)]
    pub(super) span: Duration,
    /// Rounds, in turns
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) rounds: u32,
    /// dunlin [default: the release build]
    #[arg(long, value_name = "PATH")]
    pub(super) binary: Option<PathBuf>,
}

//! The options of most tests.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::BenchError;
use bench::jobs::{Mode, Options, Report, Target, run};

/// A small run: ten clients, fifty outstanding commands at most.
pub(crate) fn options(address: SocketAddr, mode: Mode) -> Options {
    let mut options = Options::new(Target::beanstalkd(address));
    (options.jobs, options.clients, options.pipeline) = (1_000, 10, 5);
    options.mode = mode;
    options.reply_timeout = Duration::from_secs(30);
    options
}

pub(crate) fn quietly(options: &Options) -> Result<Report, BenchError> {
    run(options, &AtomicBool::new(false), &mut |_| {})
}

//! `dunlin bench`: measures brokers.

mod bar;
pub(crate) mod cli;
mod embedded;
mod jobs;
mod over_amqp;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bench::BenchError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Error;
use cli::Bench;

/// Measures, and prints the figures.
pub(crate) fn run(bench: Bench) -> Result<(), Error> {
    let cancel = cancelled_by_signal()?;
    match bench {
        Bench::Jobs(asked) => jobs::run(asked, &cancel),
        Bench::Matrix(asked) => over_amqp::matrix(asked, &cancel),
        Bench::Transactions(asked) => over_amqp::transactions(asked, &cancel),
        Bench::TravelTime(asked) => over_amqp::travel_time(asked, &cancel),
        Bench::Factors(asked) => over_amqp::factors(asked, &cancel),
    }
}

/// Set by the first signal that asks it to end; a second one ends the process.
fn cancelled_by_signal() -> Result<Arc<AtomicBool>, Error> {
    let cancel = Arc::new(AtomicBool::new(false));
    let asking = [SIGINT, SIGTERM].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP));
    for signal in asking {
        // In this order, or the first would end it too.
        let registered = flag::register_conditional_shutdown(signal, STOPPED, Arc::clone(&cancel))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)));
        registered.map_err(|error| Error::Other(format!("cannot listen to signals: {error}")))?;
    }
    Ok(cancel)
}

/// True if the parent process set the signal to be ignored, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The process' error for an error of a benchmark.
fn failed(error: BenchError) -> Error {
    match error {
        BenchError::Options(what) => Error::Settings(what),
        error => Error::Other(error.to_string()),
    }
}

/// Stopped at once by a second signal.
const STOPPED: i32 = 130;

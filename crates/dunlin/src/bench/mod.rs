//! `dunlin bench`: measures brokers.

mod bar;
pub(crate) mod cli;
mod embedded;
mod jobs;
mod over_amqp;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bench::BenchError;
use signal_hook::consts::SIGINT;
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

/// Set by the first SIGINT; a second one ends the process.
fn cancelled_by_signal() -> Result<Arc<AtomicBool>, Error> {
    let cancel = Arc::new(AtomicBool::new(false));
    // In this order, or the first would end it too.
    let registered = flag::register_conditional_shutdown(SIGINT, STOPPED, Arc::clone(&cancel))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&cancel)));
    registered.map_err(|error| Error::Other(format!("cannot listen to signals: {error}")))?;
    Ok(cancel)
}

/// What a benchmark says, as the process does.
fn failed(error: BenchError) -> Error {
    match error {
        BenchError::Options(what) => Error::Settings(what),
        error => Error::Other(error.to_string()),
    }
}

/// Stopped at once by a second SIGINT.
const STOPPED: i32 = 130;

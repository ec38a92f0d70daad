//! Benchmarks over AMQP 1.0: of brokers of this process, or of one that runs elsewhere.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use bench::{BenchError, Broker, Brokers, Progress, Report, Store, Target, Written};
use model::{Nanos, StorePolicy};
use server::Protocol;

use super::bar::Bar;
use super::cli::{Against, BenchFactors, BenchMatrix, BenchTransactions, BenchTravelTime};
use super::embedded::{self, Embedded, Wish};
use super::failed;
use crate::cli::Policy;
use crate::client::table::say;
use crate::exit::Error;
use crate::settings;

/// `dunlin bench matrix`.
pub(super) fn matrix(asked: BenchMatrix, cancel: &AtomicBool) -> Result<(), Error> {
    let options = bench::matrix::Options {
        messages: asked.messages,
        body_bytes: asked.body,
        commit_every: asked.commit_every,
        rounds: asked.rounds,
        clients: asked.clients,
        span: asked.seconds,
        queue: asked.against.queue.clone(),
    };
    let stores = "each store in turn".to_owned();
    measure(&asked.against, Policy::default(), stores, |brokers, watch| {
        bench::matrix::run(&options, brokers, cancel, watch)
    })
}

/// `dunlin bench transactions`.
pub(super) fn transactions(asked: BenchTransactions, cancel: &AtomicBool) -> Result<(), Error> {
    let options = bench::transactions::Options {
        clients: asked.clients,
        operations: asked.operations,
        roll_back_every: asked.roll_back_every,
        body_bytes: asked.body,
        span: asked.seconds,
        readers: asked.readers,
        queue: asked.against.queue.clone(),
    };
    measure(&asked.against, asked.policy, named(asked.policy), |brokers, watch| {
        bench::transactions::run(&options, brokers, cancel, watch)
    })
}

/// `dunlin bench travel-time`.
pub(super) fn travel_time(asked: BenchTravelTime, cancel: &AtomicBool) -> Result<(), Error> {
    let options = bench::travel_time::Options {
        span: asked.seconds,
        body_bytes: asked.body,
        outstanding: asked.outstanding,
        queue: asked.against.queue.clone(),
    };
    measure(&asked.against, asked.policy, named(asked.policy), |brokers, watch| {
        bench::travel_time::run(&options, brokers, cancel, watch)
    })
}

/// `dunlin bench factors`.
pub(super) fn factors(asked: BenchFactors, cancel: &AtomicBool) -> Result<(), Error> {
    let options = bench::factors::Options {
        span: asked.seconds,
        body_bytes: asked.body,
        outstanding: asked.outstanding,
        queue: asked.against.queue.clone(),
    };
    measure(&asked.against, asked.policy, named(asked.policy), |brokers, watch| {
        bench::factors::run(&options, brokers, cancel, watch)
    })
}

/// In the words of the command line.
fn named(policy: Policy) -> String {
    match settings::policy(policy) {
        StorePolicy::Memory => "--store none".to_owned(),
        StorePolicy::Always => "--sync always".to_owned(),
        StorePolicy::Never => "--sync never".to_owned(),
        StorePolicy::Periodic(period) => format!("--sync {}ms", period.0 / 1_000_000),
    }
}

/// The callback that a benchmark calls with its progress.
type Watch<'w> = &'w mut dyn FnMut(&Progress<'_>);

/// Runs a benchmark and prints its report.
fn measure(
    against: &Against,
    policy: Policy,
    settings: String,
    run: impl FnOnce(&mut Brokers<'_>, Watch<'_>) -> Result<Report, BenchError>,
) -> Result<(), Error> {
    let directory = match &against.target {
        Some(_) => against.data.clone(),
        None => Some(embedded::base(against.data.as_deref())?),
    };
    let base = directory.clone().unwrap_or_default();
    let mut open = |store| own(&base, policy_of(store, policy));
    let mut brokers = match &against.target {
        Some(target) => Brokers::Running { target: target.clone(), directory },
        None => Brokers::Own { open: &mut open, directory: base.clone(), settings },
    };
    let mut bar = Bar::default();
    let report = run(&mut brokers, &mut |it| bar.show(it.phase, it.done, it.total));
    bar.clear();
    let report = report.map_err(failed)?;
    let text = if against.json { report.to_json().to_string() } else { report.to_string() };
    say(format!("{text}\n").as_bytes())?;
    report.verdict().map_err(failed)
}

fn policy_of(store: Store, policy: Policy) -> StorePolicy {
    match store {
        Store::AsSet => settings::policy(policy),
        Store::None => StorePolicy::Memory,
        Store::Always => StorePolicy::Always,
        Store::Periodic => StorePolicy::Periodic(Nanos::from_secs(1)),
    }
}

fn own(base: &Path, policy: StorePolicy) -> Result<Box<dyn Broker>, BenchError> {
    let protocol = Protocol::Amqp;
    let wish = Wish { base: base.to_owned(), policy, protocol, clients: 0, body_bytes: 0 };
    let started = Embedded::start(wish).map_err(|error| BenchError::Broker(error.to_string()))?;
    Ok(Box::new(started))
}

impl Broker for Embedded {
    fn target(&self) -> Target {
        Target::at(self.address())
    }

    fn written(&self) -> Option<Written> {
        let log = self.counters().journal;
        Some(Written { batches: log.batches, syncs: log.syncs, bytes: log.batch_bytes })
    }
}

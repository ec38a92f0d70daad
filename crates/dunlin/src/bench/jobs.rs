//! `dunlin bench jobs`.

use std::sync::atomic::AtomicBool;

use bench::jobs::{Mode, Options, Report, Target};
use bench::{BenchError, Broker as _, Closing, Rate, Written};
use model::StorePolicy;
use server::Protocol;

use super::bar::Bar;
use super::cli::BenchJobs;
use super::embedded::{self, Embedded, Wish};
use super::failed;
use crate::client::table::say;
use crate::exit::Error;
use crate::settings;

/// Runs the load and prints the figures.
pub(super) fn run(asked: BenchJobs, cancel: &AtomicBool) -> Result<(), Error> {
    let embedded = match asked.target {
        Some(_) => None,
        None => Some(start(&asked, settings::policy(asked.policy))?),
    };
    let target = match (&asked.target, &embedded) {
        (Some(target), _) => target.clone(),
        (None, Some(embedded)) => Target::beanstalkd(embedded.address()),
        (None, None) => unreachable!("without a target there is a server in this process"),
    };
    let mut report = drive(&options(&asked, target), cancel)?;
    if embedded.is_some() && report.verdict().is_ok() {
        report.closing = closing(&asked, cancel)?;
    }
    let text = match &embedded {
        _ if asked.json => format!("{}\n", report.to_json()),
        Some(embedded) => format!("{report}\n\n{}\n", embedded.counters()),
        None => format!("{report}\n"),
    };
    say(text.as_bytes())?;
    report.verdict().map_err(failed)
}

/// Measures the cost of durability: puts of the same kind, with the requested store and with none.
fn closing(asked: &BenchJobs, cancel: &AtomicBool) -> Result<Option<Closing>, Error> {
    let policy = match settings::policy(asked.policy) {
        StorePolicy::Memory => StorePolicy::Always,
        policy => policy,
    };
    let directory = embedded::base(asked.data.as_deref())?;
    let mut before = Closing::default();
    before.measure_disk(&directory, false).map_err(failed)?;
    let Some((durable, written)) = put(asked, policy, cancel)? else { return Ok(None) };
    let Some((undurable, _)) = put(asked, StorePolicy::Memory, cancel)? else { return Ok(None) };
    let load = format!("puts by {} clients, with a store and with none", asked.clients);
    let mut closing = before.of(&load, durable, undurable, written);
    closing.measure_disk(&directory, true).map_err(failed)?;
    Ok(Some(closing))
}

/// Nothing if it was called off.
fn put(
    asked: &BenchJobs,
    policy: StorePolicy,
    cancel: &AtomicBool,
) -> Result<Option<(Rate, Option<Written>)>, Error> {
    let embedded = start(asked, policy)?;
    let options = options(asked, Target::beanstalkd(embedded.address()));
    let jobs = options.jobs.min(COMPARED);
    let options = Options { mode: Mode::Put, jobs, releases: None, ..options };
    let before = embedded.written();
    let report = drive(&options, cancel)?;
    match report.verdict() {
        Ok(()) => {}
        Err(BenchError::Cancelled) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let written = embedded.written().zip(before).map(|(after, before)| after.since(before));
    let rate = report.phases.first().map(|it| Rate { messages: it.jobs, elapsed: it.elapsed });
    Ok(rate.map(|rate| (rate, written)))
}

fn start(asked: &BenchJobs, policy: StorePolicy) -> Result<Embedded, Error> {
    Embedded::start(Wish {
        base: embedded::base(asked.data.as_deref())?,
        policy,
        protocol: Protocol::Beanstalkd,
        clients: asked.clients,
        body_bytes: asked.body,
    })
}

fn options(asked: &BenchJobs, target: Target) -> Options {
    Options {
        jobs: asked.jobs,
        clients: asked.clients,
        body_bytes: asked.body,
        pipeline: asked.pipeline,
        mode: asked.mode,
        releases: asked.releases,
        ..Options::new(target)
    }
}

fn drive(options: &Options, cancel: &AtomicBool) -> Result<Report, Error> {
    let mut bar = Bar::default();
    let mut show = |it: bench::jobs::Progress| bar.show(it.phase, it.done, it.total);
    let report = bench::jobs::run(options, cancel, &mut show);
    bar.clear();
    report.map_err(failed)
}

/// Jobs that are put to compare: a second or less, where a disk is not slow.
const COMPARED: u64 = 20_000;

//! `dunlin bench jobs`.

use std::sync::atomic::AtomicBool;

use bench::jobs::{Options, Report, Target};
use server::Protocol;

use super::bar::Bar;
use super::cli::BenchJobs;
use super::embedded::{self, Embedded, Wish};
use super::failed;
use crate::exit::Error;
use crate::settings;

/// Runs the load and prints the figures.
pub(super) fn run(asked: BenchJobs, cancel: &AtomicBool) -> Result<(), Error> {
    let embedded = match asked.target {
        Some(_) => None,
        None => Some(start(&asked)?),
    };
    let target = match (&asked.target, &embedded) {
        (Some(target), _) => target.clone(),
        (None, Some(embedded)) => Target::beanstalkd(embedded.address()),
        (None, None) => unreachable!("without a target there is a server in this process"),
    };
    let report = drive(&options(&asked, target), cancel)?;
    if asked.json {
        println!("{}", report.to_json());
    } else {
        println!("{report}");
        if let Some(embedded) = &embedded {
            println!("\n{}", embedded.counters());
        }
    }
    report.verdict().map_err(failed)
}

fn start(asked: &BenchJobs) -> Result<Embedded, Error> {
    Embedded::start(Wish {
        base: embedded::base(asked.data.as_deref())?,
        policy: settings::policy(asked.policy),
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

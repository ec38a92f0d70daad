//! `dunlin bench jobs`.

use std::fs;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bench::jobs::{Options, Progress, Report, Target};
use indicatif::{ProgressBar, ProgressStyle};
use server::{Config, Limits, Listen, Log, Protocol, Running, Server};

use crate::cli::BenchJobs;
use crate::exit::Error;
use crate::settings;

/// Runs the load and prints the figures.
pub(crate) fn run(asked: BenchJobs) -> Result<(), Error> {
    let cancel = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&cancel))
        .map_err(|error| Error::Other(format!("cannot listen to signals: {error}")))?;
    let embedded = match asked.target {
        Some(_) => None,
        None => Some(Embedded::start(&asked)?),
    };
    let target = match (&asked.target, &embedded) {
        (Some(target), _) => target.clone(),
        (None, Some(embedded)) => embedded.target(),
        (None, None) => unreachable!("without a target there is a server in this process"),
    };
    let report = drive(&options(&asked, target), &cancel)?;
    if asked.json {
        println!("{}", report.to_json());
    } else {
        println!("{report}");
        if let Some(embedded) = &embedded {
            println!("\n{}", embedded.running.counters());
        }
    }
    report.verdict().map_err(|error| Error::Other(error.to_string()))
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
    let report = bench::jobs::run(options, cancel, &mut |progress| bar.show(progress));
    bar.clear();
    report.map_err(|error| Error::Other(error.to_string()))
}

/// A bar for each phase, for people who watch.
#[derive(Default)]
struct Bar {
    shown: Option<(&'static str, ProgressBar)>,
}

impl Bar {
    fn show(&mut self, progress: Progress) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        if self.shown.as_ref().is_none_or(|(phase, _)| *phase != progress.phase) {
            self.clear();
            let bar = ProgressBar::new(progress.total).with_style(style());
            bar.set_message(progress.phase);
            self.shown = Some((progress.phase, bar));
        }
        if let Some((_, bar)) = &self.shown {
            bar.set_position(progress.done);
        }
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg:16} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A server in this process, on a directory that goes away with it.
struct Embedded {
    running: Running,
    /// Dropped after the server.
    _directory: Temporary,
}

impl Embedded {
    fn start(asked: &BenchJobs) -> Result<Self, Error> {
        let base = asked.data.clone().unwrap_or_else(std::env::temp_dir);
        let directory = Temporary(base.join(format!("dunlin-bench-{}", std::process::id())));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let defaults = Limits::default();
        let config = Config {
            data: directory.0.clone(),
            policy: settings::policy(asked.policy),
            listen: vec![Listen { protocol: Protocol::Beanstalkd, address }],
            limits: Limits {
                message_bytes: defaults.message_bytes.max(asked.body),
                // One more watches.
                connections: defaults.connections.max(asked.clients + 1),
                ..defaults
            },
            log: Log::Quiet,
            ..Config::default()
        };
        let running = Server::start(config).map_err(Error::Start)?;
        Ok(Self { running, _directory: directory })
    }

    fn target(&self) -> Target {
        let listen = self.running.addresses().first();
        Target::beanstalkd(listen.expect("invariant: it listens on one address").address)
    }
}

/// A directory that is removed with whatever is in it.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("dunlin: cannot remove {}: {error}", self.0.display());
        }
    }
}

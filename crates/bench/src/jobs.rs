//! Drives a beanstalkd server with jobs and measures the answers that its clients see.
//!
//! A run goes through phases: put, then, by the mode, reserve and delete or reserve and release. It
//! uses a tube of its own. It checks that every confirmed job comes back once, with the body that
//! was put, and that nothing else comes back.

mod connection;
mod dialogue;
mod fleet;
mod ledger;
mod options;
mod process;
mod reply;
mod report;
mod tally;
mod work;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::dialogue::{Dialogue, TubeJobs};
use self::fleet::Fleet;
use self::ledger::Ledger;
use self::process::Meter;
use self::work::{Job, Step, Work};
use crate::error::BenchError;

pub use self::options::{Mode, Options, Target};
pub use self::process::{ServerProcess, ServerUsage};
pub use self::report::{Latency, Phase, Report};

/// How far a run is; given about ten times a second, and at the end of each phase.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The mode under way; of interest with [`Mode::All`].
    pub mode: Mode,
    /// The phase, named as in [`Phase::name`].
    pub phase: &'static str,
    /// Jobs that went through the phase.
    pub done: u64,
    /// Jobs that are to.
    pub total: u64,
    /// Since the start of the phase.
    pub elapsed: Duration,
}

/// Runs to the end, or until `cancel` is set: the report then covers the finished part. Look at
/// [`Report::verdict`] before believing the figures.
///
/// # Errors
/// Any that leaves no figures: bad options, a server that cannot be reached, closes a connection,
/// stops answering or sends something that no beanstalkd sends; a tube with foreign jobs.
pub fn run(
    options: &Options,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut run = Run::prepare(options, cancel)?;
    for &(mode, step) in steps(options.mode) {
        match run.step(mode, step, progress) {
            Ok(()) | Err(BenchError::Cancelled) => {}
            Err(error) => return Err(error),
        }
        if cancel.load(Ordering::Relaxed) {
            run.report.cancelled = true;
            break;
        }
    }
    run.finish()
}

/// The phases of each mode.
fn steps(mode: Mode) -> &'static [(Mode, Step)] {
    match mode {
        Mode::Put => &[(Mode::Put, Step::Put)],
        Mode::PutDelete => &[(Mode::PutDelete, Step::Put), (Mode::PutDelete, Step::Take)],
        Mode::Release => &[
            (Mode::Release, Step::Put),
            (Mode::Release, Step::Release),
            (Mode::Release, Step::Clear),
        ],
        Mode::All => &[
            (Mode::Put, Step::Put),
            (Mode::Put, Step::Clear),
            (Mode::PutDelete, Step::Put),
            (Mode::PutDelete, Step::Take),
            (Mode::Release, Step::Put),
            (Mode::Release, Step::Release),
            (Mode::Release, Step::Clear),
        ],
    }
}

/// A run under way.
struct Run<'a> {
    options: &'a Options,
    cancel: &'a AtomicBool,
    /// Asks the server between the phases; no part of the load.
    control: Dialogue<'a>,
    fleet: Fleet,
    job: Job,
    ledger: Ledger,
    report: Report,
}

impl<'a> Run<'a> {
    fn prepare(options: &'a Options, cancel: &'a AtomicBool) -> Result<Self, BenchError> {
        let mut control = Dialogue::connect(&options.target, options.reply_timeout, cancel)?;
        let stats = control.stats()?;
        let tube = options.tube.clone().unwrap_or_else(own_tube);
        let held = control.tube_jobs(&tube)?;
        if held.ready + held.others > 0 {
            return Err(BenchError::NotEmpty { tube, jobs: held.ready + held.others });
        }
        let reported = || stats.get("pid").and_then(|pid| pid.parse().ok());
        let local = control.peer().is_ok_and(|peer| peer.ip().is_loopback());
        let pid = options.server_pid.or_else(|| reported().filter(|_| local));
        Ok(Self {
            options,
            cancel,
            fleet: Fleet::connect(options, &tube, cancel)?,
            control,
            job: Job::new(options.body_bytes),
            ledger: Ledger::default(),
            report: Report {
                target: options.target.to_string(),
                version: stats.get("version").map_or("unknown", String::as_str).to_owned(),
                process: pid.and_then(ServerProcess::find),
                mode: options.mode,
                tube,
                jobs: options.jobs,
                clients: options.clients,
                body_bytes: options.body_bytes,
                pipeline: options.pipeline,
                phases: Vec::new(),
                jobs_left: None,
                closing: None,
                cancelled: false,
                problems: Vec::new(),
            },
        })
    }

    fn step(
        &mut self,
        mode: Mode,
        step: Step,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), BenchError> {
        let total = self.open_round(step);
        let meter = Meter::start(self.report.process.as_ref());
        let mut work = Work::new(step, total, &self.job, &mut self.ledger);
        let mut tick = |work: &Work<'_>| progress(progress_of(mode, work));
        self.fleet.drive(&mut work, self.cancel, &mut tick)?;
        let elapsed = work.tally().elapsed();
        let (client_cpu, server) = meter.read(self.report.process.as_ref());
        tick(&work);
        let tally = work.into_tally();
        self.report.problems.extend(tally.problems(step.name()));
        self.report.phases.push(Phase {
            mode,
            name: step.name(),
            jobs: tally.done(),
            elapsed,
            latencies: tally.latencies(),
            errors: tally.errors().clone(),
            rates: tally.rates(),
            visited: (step == Step::Release).then(|| self.ledger.seen_count()),
            client_cpu,
            server,
        });
        if !self.cancel.load(Ordering::Relaxed) {
            self.compare(step)?;
        }
        Ok(())
    }

    /// Prepares the ledger; returns how many jobs the step is for.
    fn open_round(&mut self, step: Step) -> u64 {
        match step {
            Step::Put => {
                self.ledger = Ledger::default();
                return self.options.jobs;
            }
            Step::Take | Step::Clear => self.ledger.forget_seen(),
            // No job, no release: puts may all have been refused.
            Step::Release if self.ledger.put_count() > 0 => {
                return self.options.releases.unwrap_or(2 * self.options.jobs);
            }
            Step::Release => {}
        }
        self.ledger.put_count()
    }

    /// Compares the jobs that the server holds after a phase with its confirmations.
    fn compare(&mut self, step: Step) -> Result<(), BenchError> {
        let put = self.ledger.put_count();
        let takes = matches!(step, Step::Take | Step::Clear);
        let expected = if takes { 0 } else { put };
        let lost = put - self.ledger.seen_count();
        if takes && lost > 0 {
            self.wrong(step, format!("confirmed jobs that never came back: {lost}"));
        }
        let TubeJobs { ready, others } = self.control.tube_jobs(&self.report.tube)?;
        if ready != expected || others != 0 {
            let what = format!("the tube holds {ready} ready jobs and {others} others");
            self.wrong(step, format!("{what} instead of {expected} ready ones"));
        }
        Ok(())
    }

    fn wrong(&mut self, step: Step, what: String) {
        self.report.problems.push(format!("{}: {what}", step.name()));
    }

    fn finish(mut self) -> Result<Report, BenchError> {
        self.report.jobs_left = match self.control.tube_jobs(&self.report.tube) {
            Ok(held) => Some(held.ready + held.others),
            Err(BenchError::Cancelled) => None,
            Err(error) => return Err(error),
        };
        Ok(self.report)
    }
}

fn progress_of(mode: Mode, work: &Work<'_>) -> Progress {
    let (phase, tally) = (work.step().name(), work.tally());
    Progress { mode, phase, done: tally.done(), total: tally.total(), elapsed: tally.elapsed() }
}

/// A name that no other run has.
fn own_tube() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("dunlin-bench-{}-{}", std::process::id(), since.as_nanos())
}

//! The cases of `interop/cases`: small programs that repeat the actions of a user or an attacker,
//! each with a broker of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::amqp::in_folder;
use crate::repository::root;
use crate::run::{Outcome, run};
use crate::steps::Bench;
use crate::tally::{Runner, Tally};

/// Cases that run at once: they mostly wait.
const WORKERS: usize = 4;

/// The first port that cases use, and how many each worker's cases have.
const PORT_BASE: usize = 23_100;
const PORTS: usize = 900;

const CASE_MAX: Duration = Duration::from_secs(300);

/// Runs every case against the release build.
pub(crate) fn run_all(bench: &Bench) -> Result<Tally> {
    let binary = bench.dunlin()?;
    let cases = cases()?;
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(Tally::default());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (binary, cases, next, sum) = (&binary, &cases, &next, &sum);
                scope.spawn(move || -> Result<()> {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut command = in_folder("cases", &["python3", case])?;
                        command.env("DUNLIN", binary);
                        command.env("PORT_BASE", (PORT_BASE + worker * PORTS).to_string());
                        let outcome =
                            run(&mut command, &bench.log(&format!("case-{case}")), CASE_MAX)?;
                        *sum.lock().unwrap_or_else(PoisonError::into_inner) +=
                            judge(case, &outcome);
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => Err("a worker panicked".into()),
        })
    })?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The counts of one case. A skipped one counts for nothing, and says why.
fn judge(case: &str, outcome: &Outcome) -> Tally {
    if let Some(reason) = outcome.output.lines().find(|line| line.starts_with("SKIP")) {
        println!("{case}: {reason}");
        return Tally::default();
    }
    let tally = outcome.tally(Runner::Case);
    if tally.failed > 0 {
        println!("{case}: {tally}");
    }
    tally
}

/// The cases' file names, in order.
fn cases() -> Result<Vec<String>> {
    let folder: PathBuf = root().join("interop/cases");
    let mut names: Vec<String> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".py") && name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    names.sort();
    Ok(names)
}

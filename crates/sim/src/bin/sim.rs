//! `sim`: runs simulations by their seeds.
//!
//! ```text
//! sim [--seed N] [--seeds COUNT] [--steps N] [--threads N] [--soak] [--verbose]
//! ```
//! Each seed from `--seed` (default 1) on is run, `--seeds` of them (default 1), or for ever with
//! `--soak`. `--steps` replaces the length that each seed chooses. `--threads` share the seeds: as
//! many as there are cores, and one with `--verbose`, which prints every step and every call to the
//! disk. A seed that fails ends the run with exit code 1 and is printed as one command to paste. A
//! run of a thousand seeds or more also fails when its faults are too rare to prove anything.

use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use sim::{Scenario, Tally, simulate};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sim: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (next, passed, total) = (options.first, 0, Tally::default());
    let run = Mutex::new(Run { next, passed, total, has_failed: false });
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..options.threads).map(|_| scope.spawn(|| simulate_all(&options, &run))).collect();
        // One that panicked has told so.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    });
    let Run { passed, total, has_failed, .. } =
        run.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rare = if passed < PROVING { Vec::new() } else { total.rare_events(passed) };
    if has_failed || !rare.is_empty() {
        rare.iter().for_each(|event| eprintln!("too rare among {passed} seeds: {event}"));
        return ExitCode::FAILURE;
    }
    println!("{passed} seeds passed: {total}");
    ExitCode::SUCCESS
}

/// The state that the threads share.
struct Run {
    /// The seed that the next free thread takes.
    next: u64,
    passed: u64,
    total: Tally,
    /// No thread takes another seed.
    has_failed: bool,
}

/// Runs seeds until there are no more, or one has failed.
fn simulate_all(options: &Options, run: &Mutex<Run>) {
    while let Some(seed) = take(options, run) {
        let mut scenario = Scenario::scarce(seed);
        scenario.steps = options.steps.unwrap_or(scenario.steps);
        scenario.trace = options.verbose;
        let running = Running { seed, run };
        let outcome = simulate(scenario);
        drop(running);
        let mut run = locked(run);
        match outcome {
            Ok(tally) => run.total += tally,
            Err(failure) => {
                eprintln!("{failure}");
                run.has_failed = true;
                return;
            }
        }
        run.passed += 1;
        if run.passed.is_multiple_of(REPORT_EVERY) {
            println!("{} seeds, {}", run.passed, run.total);
        }
    }
}

fn take(options: &Options, run: &Mutex<Run>) -> Option<u64> {
    let mut run = locked(run);
    let seed = run.next;
    let is_left = options.soak || seed - options.first < options.count;
    run.next += u64::from(is_left);
    (is_left && !run.has_failed).then_some(seed)
}

fn locked(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A seed that a thread runs. If that panics, it is named, and no thread takes another.
struct Running<'r> {
    seed: u64,
    run: &'r Mutex<Run>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let seed = self.seed;
            eprintln!("seed {seed} panicked: cargo run -p dunlin-sim --bin sim -- --seed {seed}");
            locked(self.run).has_failed = true;
        }
    }
}

struct Options {
    first: u64,
    count: u64,
    steps: Option<u64>,
    threads: usize,
    soak: bool,
    verbose: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let threads = thread::available_parallelism().map_or(1, Into::into);
        let (first, count, steps) = (1, 1, None);
        let mut options = Self { first, count, steps, threads, soak: false, verbose: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seed" => options.first = number(&word, words.next())?,
                "--seeds" => options.count = number(&word, words.next())?,
                "--steps" => options.steps = Some(number(&word, words.next())?),
                "--threads" => options.threads = count_of(&word, words.next())?,
                "--soak" => options.soak = true,
                "--verbose" => options.verbose = true,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        if options.verbose {
            // The steps of two worlds are not to be told apart.
            options.threads = 1;
        }
        Ok(options)
    }
}

fn count_of(name: &str, word: Option<String>) -> Result<usize, String> {
    let count = number(name, word)?;
    let fits = usize::try_from(count).ok().filter(|count| (1..=THREADS_MAX).contains(count));
    fits.ok_or_else(|| format!("{name} takes 1 to {THREADS_MAX}"))
}

fn number(name: &str, word: Option<String>) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{name} needs a number"))?;
    word.parse().map_err(|error| format!("{name} {word}: {error}"))
}

const USAGE: &str =
    "usage: sim [--seed N] [--seeds COUNT] [--steps N] [--threads N] [--soak] [--verbose]";

/// Threads that a run may have.
const THREADS_MAX: usize = 1024;

/// Seeds from which a run has to show that enough went wrong.
const PROVING: u64 = 1000;

/// Seeds between two lines of a long run.
const REPORT_EVERY: u64 = 1000;

//! `sim`: runs simulations by their seeds.
//!
//! ```text
//! sim [--seed N] [--seeds COUNT] [--steps N] [--soak] [--verbose]
//! ```
//! Each seed from `--seed` (default 1) on is run, `--seeds` of them (default 1), or for ever with
//! `--soak`. `--steps` replaces the length that each seed chooses. `--verbose` prints every step
//! and every call to the disk. The first seed that fails ends the run with exit code 1 and is
//! printed as one command to paste.

use std::process::ExitCode;

use sim::{Scenario, Tally, simulate};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sim: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut total = Tally::default();
    let mut seed = options.first;
    while options.soak || seed < options.first + options.count {
        let mut scenario = Scenario::scarce(seed);
        scenario.steps = options.steps.unwrap_or(scenario.steps);
        scenario.trace = options.verbose;
        match simulate(scenario) {
            Ok(tally) => total += tally,
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
        if (seed - options.first).is_multiple_of(REPORT_EVERY) {
            println!("{} seeds, {total}", seed - options.first);
        }
    }
    println!("{} seeds passed: {total}", seed - options.first);
    ExitCode::SUCCESS
}

struct Options {
    first: u64,
    count: u64,
    steps: Option<u64>,
    soak: bool,
    verbose: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { first: 1, count: 1, steps: None, soak: false, verbose: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seed" => options.first = number(&word, words.next())?,
                "--seeds" => options.count = number(&word, words.next())?,
                "--steps" => options.steps = Some(number(&word, words.next())?),
                "--soak" => options.soak = true,
                "--verbose" => options.verbose = true,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(options)
    }
}

fn number(name: &str, word: Option<String>) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{name} needs a number"))?;
    word.parse().map_err(|error| format!("{name} {word}: {error}"))
}

const USAGE: &str = "usage: sim [--seed N] [--seeds COUNT] [--steps N] [--soak] [--verbose]";

/// Seeds between two lines of a long run.
const REPORT_EVERY: u64 = 1000;

//! `cargo xtask bench DOCUMENT`: the test of a source document on Dunlin and on the systems that it
//! is about, in one run on one machine; what comes of it is in `docs/benchmarks`.
//!
//! A broker and its client have a process each; both are new in every round, and only those of one
//! system run at a time, so that none pays for what another still has to do.

mod asked;
mod joram;
mod machine;
mod options;
mod system;

use crate::Result;
use crate::steps::Bench;
use crate::tally::Tally;

pub(crate) use options::HELP;
use options::Options;

/// Runs the test of `document`.
///
/// # Errors
/// When it is not known, or a client cannot be built or a broker not be started.
pub(crate) fn run_all(bench: &Bench, document: &str, words: &[&str]) -> Result<Tally> {
    let options = Options::read(words)?;
    match document {
        "joram" => joram::run_all(bench, &options),
        other => Err(format!("{other}? There is joram; see cargo xtask --help").into()),
    }
}

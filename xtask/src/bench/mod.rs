//! `cargo xtask bench DOCUMENT`: the test of a source document on Dunlin and on the systems that it
//! is about, in one run on one machine; the results are in `target/bench`.
//!
//! A broker and its client have a process each; both are new in every round. Only those of one
//! system run at a time, so none pays for work that another has left.

mod activemq;
mod asked;
mod bigdata;
mod document;
mod jms;
mod jobs;
mod joram;
mod machine;
mod openmq;
mod options;
mod page;
mod plot;
mod raw;
mod sample;
mod usage;

use crate::Result;
use crate::children;
use crate::steps::Bench;
use crate::tally::Tally;

use activemq::ActiveMq;
use bigdata::BigData;
use jobs::Jobs;
use joram::Joram;
use openmq::OpenMq;

/// Of all documents, one after the other.
const ALL: [&str; 5] = ["activemq", "bigdata", "jobs", "joram", "openmq"];

/// Runs the test of `document`, or of `all`. Ctrl-C ends it with all that it started.
///
/// # Errors
/// When it is not known, or nothing of it can be measured.
pub(crate) fn run_all(bench: &Bench, document: &str, words: &[&str]) -> Result<Tally> {
    children::end_when_interrupted()?;
    if document != "all" {
        return run_one(bench, document, words);
    }
    let mut tally = Tally::default();
    for document in ALL {
        println!("==== {document}");
        tally += run_one(bench, document, words)?;
    }
    Ok(tally)
}

fn run_one(bench: &Bench, document: &str, words: &[&str]) -> Result<Tally> {
    match document {
        "activemq" => document::run(&ActiveMq, bench, words),
        "bigdata" => document::run(&BigData, bench, words),
        "jobs" => document::run(&Jobs, bench, words),
        "joram" => document::run(&Joram, bench, words),
        "openmq" => document::run(&OpenMq, bench, words),
        other => {
            let known = ALL.join(", ");
            Err(format!("{other}? There are {known} and all; see cargo xtask --help").into())
        }
    }
}

/// The options of each document's test.
pub(crate) fn help() -> String {
    let documents = [
        document::help::<ActiveMq>("the ActiveMQ document: what transactions and disk cost"),
        document::help::<BigData>("the bigdata Journal document: transactions, and readers"),
        document::help::<Jobs>("the beanstalkd and Redis document: jobs, pushed and taken"),
        document::help::<Joram>("the JORAM document: travel time while a producer saturates"),
        document::help::<OpenMq>("the Open MQ document: what design factors cost"),
    ];
    format!("{}{COMMON}", documents.concat())
}

const COMMON: &str = "\
cargo xtask bench all               all of these, one after the other
    of each:
    --only LIST       cases, or what their names begin with; their lines replace those of before
    --quick           few messages and one round: shows that everything works
    --binary PATH     dunlin (default: the release build)
    --out FOLDER      for the document and what is behind it (target/bench)
    Each is meant to take some six minutes on two quiet cores, a third of that with --rounds 1.
    Ctrl-C ends all that was started.
";

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

use clap::{ArgMatches, Command};

use crate::Result;
use crate::children;
use crate::steps::Bench;
use crate::tally::Tally;

use activemq::ActiveMq;
use bigdata::BigData;
use jobs::Jobs;
use joram::Joram;
use openmq::OpenMq;
use options::{Choice, ROUNDS};

/// Of all documents, one after the other.
const ALL: [&str; 5] = ["activemq", "bigdata", "jobs", "joram", "openmq"];

/// The name of this tool.
pub(crate) const NAME: &str = "bench";

/// A document, or `all`, and the options of its test.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    document: String,
    options: ArgMatches,
}

impl Chosen {
    /// What the words after `bench` say, which [`command`] has read.
    pub(crate) fn of(matches: &ArgMatches) -> Chosen {
        let (document, options) = matches.subcommand().expect("invariant: a document is required");
        Chosen { document: document.to_owned(), options: options.clone() }
    }
}

/// Runs the test of a document, or of all. Ctrl-C ends it with all that it started.
///
/// # Errors
/// When nothing of it can be measured.
pub(crate) fn run_all(bench: &Bench, chosen: &Chosen) -> Result<Tally> {
    children::end_when_interrupted()?;
    let Chosen { document, options } = chosen;
    if document != "all" {
        return run_one(bench, document, options);
    }
    let mut tally = Tally::default();
    for document in ALL {
        println!("==== {document}");
        tally += run_one(bench, document, options)?;
    }
    Ok(tally)
}

fn run_one(bench: &Bench, document: &str, options: &ArgMatches) -> Result<Tally> {
    match document {
        "activemq" => document::run(&ActiveMq, bench, options),
        "bigdata" => document::run(&BigData, bench, options),
        "jobs" => document::run(&Jobs, bench, options),
        "joram" => document::run(&Joram, bench, options),
        "openmq" => document::run(&OpenMq, bench, options),
        other => unreachable!("the command line refuses {other}"),
    }
}

/// Documents, and the options of each.
pub(crate) fn command() -> Command {
    let all = Choice { systems: &[], numbers: &[ROUNDS] };
    Command::new(NAME)
        .about("Repeat the test of a source document on Dunlin and the systems that it is about")
        .after_help(COMMON)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(document::command::<ActiveMq>("What transactions and disk cost"))
        .subcommand(document::command::<BigData>("Transactions, and readers"))
        .subcommand(document::command::<Jobs>("Jobs, pushed and taken, by beanstalkd and Redis"))
        .subcommand(document::command::<Joram>("Travel time while a producer saturates"))
        .subcommand(document::command::<OpenMq>("What design factors cost"))
        .subcommand(Command::new("all").about("All, one after the other").args(all.args()))
}

const COMMON: &str = "\
Each is meant to take some six minutes on two quiet cores, a third of that with --rounds 1.
Ctrl-C ends all that was started.";

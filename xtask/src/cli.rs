//! The command line of `cargo xtask`, which `--help` describes.

use std::num::ParseIntError;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgMatches, Command, FromArgMatches as _, Parser, Subcommand};

use crate::{
    amqp, bench, bench_compaction, bench_jms, bench_redis, crash, package, release, soak, steps,
};

/// The project's own tools.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    tool: Tool,
}

/// One tool.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Run everything that has to hold; the last line is `N passed, N failed`
    Test {
        /// Only these steps
        #[arg(long, value_name = "STEP", num_args = 1.., value_parser = steps())]
        only: Vec<String>,
    },
    /// Check the rules that no compiler holds
    Tidy,
    /// Print the figures of the code and the pages, beside the aims
    Metrics,
    /// Count the instructions of messages and commands (valgrind; some minutes)
    Instructions,
    /// Run foreign AMQP clients
    Amqp {
        /// dunlin, artemis, or the URL of any broker
        #[arg(value_name = "BROKER", default_values = amqp::BROKERS)]
        brokers: Vec<String>,
    },
    /// Kill -9 under load, and compare with a ledger
    Crash(crash::Options),
    /// Build the Debian package, and test it in a bare Debian
    Package(package::Options),
    /// Make the files of a release: two equal static builds, crates, licences, checksums
    Release(release::Options),
    /// Check licences, sources and advisories of the dependencies by cargo-deny
    Deny,
    /// Load beanstalkd, Redis, HTTP and AMQP for hours, with kill -9 and restarts
    ///
    /// Nothing is lost, and memory and disk stay as they are.
    Soak(soak::Options),
    /// Measure lists under redis-benchmark, on dunlin and redis-server
    BenchRedis(bench_redis::Options),
    /// Measure dunlin, artemis and classic by a JMS client
    BenchJms(bench_jms::Options),
    /// Measure how long clients wait while segments are compacted
    BenchCompaction(bench_compaction::Options),
    /// Repeat the test of a source document on Dunlin and the systems that it is about
    #[command(skip)]
    Bench(bench::Chosen),
}

/// The tool that the words of the command line name. Prints the help or a refusal, and ends the
/// process, if they name none.
pub(crate) fn read() -> Tool {
    tool(&command().get_matches()).unwrap_or_else(|error| error.exit())
}

fn command() -> Command {
    <Cli as clap::CommandFactory>::command()
        .subcommand(bench::command())
        .arg_required_else_help(true)
}

fn tool(matches: &ArgMatches) -> clap::error::Result<Tool> {
    match matches.subcommand() {
        Some((bench::NAME, matches)) => Ok(Tool::Bench(bench::Chosen::of(matches))),
        _ => Ok(Cli::from_arg_matches(matches)?.tool),
    }
}

/// The steps of the test, each with its description.
fn steps() -> PossibleValuesParser {
    let steps = steps::names().map(|(name, what)| PossibleValue::new(name).help(what));
    PossibleValuesParser::new(steps)
}

/// A seed that differs from run to run.
pub(crate) fn clock_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Whole seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// A number, at least one.
pub(crate) fn at_least_one<N: FromStr + Ord + From<u8>>(text: &str) -> Result<N, N::Err> {
    Ok(text.parse::<N>()?.max(1.into()))
}

/// Reads options from the words of a command line.
#[cfg(test)]
pub(crate) fn parsed<A: clap::Args>(words: &[&str]) -> clap::error::Result<A> {
    let command = A::augment_args(Command::new("test").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> clap::error::Result<Tool> {
        let words = ["cargo xtask"].into_iter().chain(words.split_whitespace());
        tool(&command().try_get_matches_from(words)?)
    }

    #[test]
    fn command_lines_are_sound() {
        command().debug_assert();
        for words in [
            "test",
            "tidy",
            "metrics",
            "instructions",
            "amqp",
            "amqp dunlin amqp://localhost:5672",
            "crash --jms --stand-in --sync always",
            "crash --kills 3 --sync 25ms --sync never --extra --list-head --extra left",
            "package --test",
            "deny",
            "package --to FOLDER",
            "soak --hours 24",
            "bench jobs --rounds 1 --each 5",
            "bench all --quick --rounds 2 --only queue",
            "bench-jms --only commits --sessions 100 --connections 10 --binary PATH",
            "bench-redis --servers dunlin-none,redis-none --share 10",
            "bench-compaction --kept 100 --seconds 1",
        ] {
            read(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        }
        for words in ["", "tests", "test --only crush", "bench", "bench jobs --millis 5", "soak 5"]
        {
            assert!(read(words).is_err(), "{words}");
        }
    }

    #[test]
    fn steps_come_one_by_one_or_together() {
        for words in ["test --only sim clients", "test --only sim --only clients"] {
            let Tool::Test { only } = read(words).unwrap() else { panic!("{words}") };
            assert_eq!(only, ["sim", "clients"]);
        }
    }
}

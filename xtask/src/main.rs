//! The project's own tools: `cargo xtask test`, `tidy`, `metrics`, `crash`, `bench`,
//! `bench-compaction`, `bench-jms`, `bench-redis`, `deny`, `instructions`, `package`, `release`,
//! `soak`.

mod amqp;
mod bench;
mod bench_compaction;
mod bench_jms;
mod bench_redis;
mod cases;
mod children;
mod cli;
mod clients;
mod contender;
mod counters;
mod crash;
mod deny;
mod docs;
mod http;
mod instructions;
mod issuer;
mod licences;
mod median;
mod metrics;
mod package;
mod release;
mod repository;
mod run;
mod secured;
mod server;
mod setup;
mod soak;
mod steps;
mod tally;
mod tidy;
mod tools;
mod wire;

use std::error::Error;
use std::process::ExitCode;
use std::result;

use crate::cli::Tool;
use crate::repository::Repository;
use crate::steps::Bench;
use crate::tally::Tally;

/// Errors are texts for a person.
type Result<T> = result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run_tool(cli::read()) {
        Ok(Tally { failed: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_tool(tool: Tool) -> Result<Tally> {
    match tool {
        Tool::Test { only } => counted(steps::run_steps(&only)?),
        Tool::Tidy => counted(tidy::run(&Repository::read()?)),
        Tool::Metrics => metrics::run(&Repository::read()?).map(|()| Tally::default()),
        Tool::Instructions => instructions::run_all(&Bench::new()?).map(|()| Tally::default()),
        Tool::Amqp { brokers } => counted(amqp(&brokers)?),
        Tool::Crash(options) => counted(crash::run_all(&options.on(&Bench::new()?)?)?),
        Tool::Package(options) => counted(package::run_all(&Bench::new()?, &options)?),
        Tool::Release(options) => counted(release::run_all(&Bench::new()?, &options)?),
        Tool::Deny => counted(deny::run_all(&Bench::new()?)?),
        Tool::Soak(options) => counted(soak::run_all(&Bench::new()?, &options)?),
        Tool::BenchRedis(options) => counted(bench_redis::run_all(&Bench::new()?, &options)?),
        Tool::BenchJms(options) => counted(bench_jms::run_all(&Bench::new()?, &options)?),
        Tool::BenchCompaction(options) => {
            counted(bench_compaction::run_all(&Bench::new()?, &options)?)
        }
        Tool::Bench(chosen) => counted(bench::run_all(&Bench::new()?, &chosen)?),
    }
}

fn amqp(brokers: &[String]) -> Result<Tally> {
    let brokers: Vec<&str> = brokers.iter().map(String::as_str).collect();
    let bench = Bench::new()?;
    let mut tally = amqp::prepare(&bench)?;
    tally += amqp::run_all(&bench, &brokers)?;
    Ok(tally)
}

/// Prints the count as the last line.
fn counted(tally: Tally) -> Result<Tally> {
    println!("{tally}");
    Ok(tally)
}

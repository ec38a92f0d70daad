//! The project's own tools: `cargo xtask test`, `tidy`, `metrics`, `crash`, `bench`,
//! `bench-compaction`, `bench-jms`, `bench-redis`, `instructions`, `soak`.

mod amqp;
mod bench;
mod bench_compaction;
mod bench_jms;
mod bench_redis;
mod cases;
mod children;
mod clients;
mod contender;
mod counters;
mod crash;
mod docs;
mod flags;
mod http;
mod instructions;
mod median;
mod metrics;
mod repository;
mod run;
mod server;
mod setup;
mod soak;
mod steps;
mod tally;
mod tidy;
mod wire;

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::result;

use crate::repository::Repository;
use crate::steps::Bench;
use crate::tally::Tally;

/// Errors are texts for a person.
type Result<T> = result::Result<T, Box<dyn Error + Send + Sync>>;

const HELP: &str = "\
The project's own tools.

cargo xtask test [--only STEP]...   everything; the last line is `N passed, N failed`
cargo xtask tidy                    the rules that no compiler holds
cargo xtask metrics                 the figures A1 to A12 of the code
cargo xtask instructions            what messages and commands cost (valgrind; some minutes)
cargo xtask amqp [BROKER]...        foreign AMQP clients: dunlin, artemis, or the URL of any
cargo xtask crash [options]         kill -9 under load
    --jms             JMS clients instead of beanstalkd's
    --kills N         kills in all (240)
    --seed N          repeat a run's choices (default: the clock)
    --sync POLICY     always, never or a duration; may be repeated (always, 25ms, never)
    --binary PATH     the server (default: the release build)
    --extra OPTION    one more option of the server; may be repeated
    --stand-in        run beanstalkd instead (for JMS: Artemis), to try the test itself
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(Tally { failed: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<Tally> {
    let wants_help = words.is_empty() || words.contains(&"--help") || words.contains(&"-h");
    match words {
        _ if wants_help => {
            let (help, of) = (bench::help(), bench_compaction::HELP);
            let benches = [soak::HELP, &help, bench_jms::HELP, bench_redis::HELP, of].concat();
            print!("{HELP}{benches}\nSteps of the test:\n{}", steps::list());
            Ok(Tally::default())
        }
        ["test", options @ ..] => counted(steps::run_steps(&only(options)?)?),
        ["tidy"] => counted(tidy::run(&Repository::read()?)),
        ["metrics"] => metrics::run(&Repository::read()?).map(|()| Tally::default()),
        ["instructions"] => instructions::run_all(&Bench::new()?).map(|()| Tally::default()),
        ["amqp", brokers @ ..] => counted(amqp(brokers)?),
        ["bench", document, options @ ..] => {
            counted(bench::run_all(&Bench::new()?, document, options)?)
        }
        ["bench-compaction", options @ ..] => {
            let options = bench_compaction::Options::read(options)?;
            counted(bench_compaction::run_all(&Bench::new()?, &options)?)
        }
        ["bench-jms", options @ ..] => {
            counted(bench_jms::run_all(&Bench::new()?, &bench_jms::Options::read(options)?)?)
        }
        ["bench-redis", options @ ..] => {
            counted(bench_redis::run_all(&Bench::new()?, &bench_redis::Options::read(options)?)?)
        }
        ["soak", options @ ..] => {
            counted(soak::run_all(&Bench::new()?, &soak::Options::read(options)?)?)
        }
        ["crash", options @ ..] => counted(crash::run_all(&crash_options(options)?)?),
        _ => Err(format!("{}? See cargo xtask --help", words.join(" ")).into()),
    }
}

fn amqp(brokers: &[&str]) -> Result<Tally> {
    let bench = Bench::new()?;
    let mut tally = amqp::prepare(&bench)?;
    tally += amqp::run_all(&bench, if brokers.is_empty() { &amqp::BROKERS } else { brokers })?;
    Ok(tally)
}

/// Prints the count as the last line.
fn counted(tally: Tally) -> Result<Tally> {
    println!("{tally}");
    Ok(tally)
}

fn only(options: &[&str]) -> Result<Vec<String>> {
    let mut steps = Vec::new();
    for pair in options.chunks(2) {
        match pair {
            ["--only", step] => steps.push((*step).to_owned()),
            _ => return Err(format!("{}? --only STEP is all there is", pair.join(" ")).into()),
        }
    }
    Ok(steps)
}

fn crash_options(options: &[&str]) -> Result<crash::Options> {
    let bench = Bench::new()?;
    let mut chosen = crash::Options::new(bench.scratch.clone());
    let (mut syncs, mut stand_in) = (Vec::new(), false);
    let mut words = options.iter();
    while let Some(&option) = words.next() {
        let flag = match option {
            "--jms" => Some(&mut chosen.jms),
            "--stand-in" => Some(&mut stand_in),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            continue;
        }
        let value = *words.next().ok_or(format!("{option} needs a value"))?;
        match option {
            "--kills" => chosen.kills = value.parse()?,
            "--seed" => chosen.seed = value.parse()?,
            "--sync" => syncs.push(value.to_owned()),
            "--binary" => chosen.binary = Some(value.into()),
            "--extra" => chosen.extra.push(value.to_owned()),
            _ => return Err(format!("{option}? See cargo xtask --help").into()),
        }
    }
    if !syncs.is_empty() {
        chosen.syncs = syncs;
    }
    if !stand_in && chosen.binary.is_none() {
        chosen.binary = Some(bench.dunlin()?);
    }
    Ok(chosen)
}

//! `cargo xtask bench-jobs`: the second source document as it stands, on Dunlin by three
//! protocols, beanstalkd and redis-server.
//!
//! 100 clients make 1000 HTTP requests, each of which pushes 1000 messages; then workers take the
//! million. The client is `interop/jobs`, the same for all.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::contender::{self, Contender};
use crate::house::root;
use crate::run::run;
use crate::steps::Bench;
use crate::tally::Tally;

pub(crate) const HELP: &str = "\
cargo xtask bench-jobs [options]    HTTP requests of 1000 messages each, and workers that take all
    --servers LIST    dunlin-redis,dunlin-beanstalkd,dunlin-http,beanstalkd,redis-none,redis-rdb,
                      redis-always, or some
    --requests N      in all (1000)
    --binary PATH     dunlin (default: the release build)
";

const SERVERS: [&str; 7] = [
    "dunlin-redis",
    "dunlin-beanstalkd",
    "dunlin-http",
    "beanstalkd",
    "redis-none",
    "redis-rdb",
    "redis-always",
];

/// A client that takes longer is ended: the document's slowest consumer took 524 s.
const LIMIT: Duration = Duration::from_secs(900);

/// Measures one server after the other, and prints what the client says of each.
///
/// # Errors
/// When the client cannot be built or a server not be started.
pub(crate) fn run_all(bench: &Bench, words: &[&str]) -> Result<Tally> {
    let (mut servers, mut requests, mut binary) = (SERVERS.join(","), "1000".to_owned(), None);
    for pair in words.chunks(2) {
        match *pair {
            ["--servers", list] => servers = list.to_owned(),
            ["--requests", count] => requests = count.parse::<u64>()?.to_string(),
            ["--binary", path] => binary = Some(PathBuf::from(path)),
            _ => return Err(format!("{}? See cargo xtask --help", pair.join(" ")).into()),
        }
    }
    let client = build(bench)?;
    let mut tally = Tally::default();
    for name in servers.split(',') {
        let started = contender::start_all(bench, binary.as_deref(), &[name.to_owned()])?;
        for contender in &started {
            for phase in ["produce", "consume"] {
                tally += measure(bench, &client, contender, phase, &requests)?;
            }
        }
    }
    Ok(tally)
}

fn build(bench: &Bench) -> Result<PathBuf> {
    let client = bench.scratch.join("jobs");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&client).arg(".").current_dir(root().join("interop/jobs"));
    let outcome = run(&mut go, &bench.log("bench-jobs-build"), Duration::from_secs(600))?;
    if outcome.ended_well {
        return Ok(client);
    }
    Err(format!("the client cannot be built\n{}", outcome.tail()).into())
}

fn measure(
    bench: &Bench,
    client: &PathBuf,
    contender: &Contender,
    phase: &str,
    requests: &str,
) -> Result<Tally> {
    let protocol = contender.protocol();
    let before = contender.syncs()?;
    let mut command = Command::new(client);
    command.args(["-protocol", protocol, "-addr", &contender.address.to_string()]).args([
        "-phase",
        phase,
        "-requests",
        requests,
    ]);
    let outcome = run(&mut command, &bench.log("bench-jobs"), LIMIT)?;
    let syncs = before.zip(contender.syncs()?).map(|(before, after)| after.saturating_sub(before));
    let syncs = syncs.map_or(String::new(), |syncs| format!(" {syncs} syncs"));
    println!("{}: {}{syncs}", contender.name, outcome.tail().trim_end());
    Ok(Tally::one(outcome.ended_well))
}

//! `cargo xtask bench-redis`: lists under `redis-benchmark`, on Dunlin and on redis-server as it
//! keeps nothing, a second's worth, or everything; one by one also under a client of our own that
//! takes less of the processor than any server.
//!
//! All servers run at once, each with a folder and a port of its own. They take turns round by
//! round, so that other load of the machine hits all alike. The median of the rounds counts.

mod options;
mod sparing;
mod table;

use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::contender::{self, Contender};
use crate::run::run;
use crate::steps::Bench;
use crate::tally::Tally;

pub(crate) use options::Options;

/// Commands on a list, one after the other: the first stores elements, the others take them.
pub(super) struct Case {
    /// Requests that each connection sends before it reads the replies.
    pub(super) pipeline: u32,
    /// Bytes of an element.
    pub(super) bytes: u32,
    /// Requests in all, before `--share` makes them fewer.
    pub(super) requests: u64,
    pub(super) work: Work,
    pub(super) client: Client,
}

/// The client that sends the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    RedisBenchmark,
    /// See [`sparing`]; it does not pipeline.
    Sparing,
}

/// How elements are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// LPUSH, then RPOP.
    Pop,
    /// LPUSH, then each is taken so that a worker's death does not lose it: `RPOP` from a queue
    /// with a pop lease on Dunlin, `LMOVE` and `LREM` on Redis.
    Acknowledge,
    /// The same by as many as are pipelined: `RPOP` with a count on Dunlin, of which the next says
    /// that all have arrived. Redis has no count there, so `LMOVE` and `LREM` are pipelined.
    AcknowledgeMany,
}

const BENCHMARK: Client = Client::RedisBenchmark;

const CASES: [Case; 8] = [
    Case { pipeline: 1, bytes: 100, requests: 200_000, work: Work::Pop, client: BENCHMARK },
    Case { pipeline: 1, bytes: 1024, requests: 200_000, work: Work::Pop, client: BENCHMARK },
    Case { pipeline: 1, bytes: 100, requests: 400_000, work: Work::Pop, client: Client::Sparing },
    Case { pipeline: 1, bytes: 1024, requests: 400_000, work: Work::Pop, client: Client::Sparing },
    Case { pipeline: 16, bytes: 100, requests: 1_000_000, work: Work::Pop, client: BENCHMARK },
    Case { pipeline: 64, bytes: 100, requests: 2_000_000, work: Work::Pop, client: BENCHMARK },
    Case { pipeline: 1, bytes: 100, requests: 100_000, work: Work::Acknowledge, client: BENCHMARK },
    Case {
        pipeline: 100,
        bytes: 100,
        requests: 2_000_000,
        work: Work::AcknowledgeMany,
        client: BENCHMARK,
    },
];

/// One figure: requests a second, or why there is none.
pub(super) struct Figure {
    pub(super) case: usize,
    pub(super) verb: &'static str,
    pub(super) contender: usize,
    pub(super) rate: Option<f64>,
    /// Syncs for each request, where they are counted.
    pub(super) syncs: Option<f64>,
}

/// Measures as `options` say and prints a table.
///
/// # Errors
/// When a server cannot be started.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    let contenders = contender::start_all(bench, options.binary.as_deref(), &options.servers)?;
    let mut figures = Vec::new();
    for round in 1..=options.rounds {
        println!("== round {round} of {}", options.rounds);
        for (number, case) in CASES.iter().enumerate() {
            for (place, contender) in contenders.iter().enumerate() {
                for (verb, rate, syncs) in measure(bench, options, case, contender)? {
                    println!("{}, {verb}: {}", contender.name, case.heading(rate));
                    figures.push(Figure { case: number, verb, contender: place, rate, syncs });
                }
            }
        }
    }
    println!("\n{}", table::render(&CASES, &contenders, &figures));
    let failed = figures.iter().filter(|figure| figure.rate.is_none()).count() as u64;
    Ok(Tally { passed: figures.len() as u64 - failed, failed })
}

type Measured = (&'static str, Option<f64>, Option<f64>);

/// One round of a case on one server.
fn measure(
    bench: &Bench,
    options: &Options,
    case: &Case,
    contender: &Contender,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    let (clients, count) = (options.clients, case.count(options));
    let each = Drive { clients, count, pipeline: case.pipeline, client: case.client };
    let mut ask = |verb: &'static str, command: &[&str], drive: Drive| -> Result<Option<f64>> {
        let before = contender.syncs()?;
        let rate = drive.run(bench, options.limit, contender, command)?;
        // Of elements, where a command takes several.
        let rate = rate.map(|rate| rate * count as f64 / drive.count as f64);
        let after = contender.syncs()?;
        let syncs = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        measured.push((verb, rate, syncs.map(|syncs| syncs as f64 / count as f64)));
        Ok(rate)
    };
    let element = "x".repeat(case.bytes as usize);
    match case.work {
        Work::Pop => {
            ask("LPUSH", &["LPUSH", "list", &element], each)?;
            ask("RPOP", &["RPOP", "list"], each)?;
        }
        Work::Acknowledge if contender.leases => {
            ask("LPUSH", &["LPUSH", "leased", &element], each)?;
            ask("taken", &["RPOP", "leased"], each)?;
        }
        Work::AcknowledgeMany if contender.leases => {
            let several = u64::from(case.pipeline);
            let whole = Drive { count: count / several, pipeline: 1, ..each };
            ask("LPUSH", &["LPUSH", "leased", &element], each)?;
            ask("taken", &["RPOP", "leased", &several.to_string()], whole)?;
        }
        Work::Acknowledge | Work::AcknowledgeMany => {
            ask("LPUSH", &["LPUSH", "list", &element], each)?;
            let moved = ask("LMOVE", &["LMOVE", "list", "working", "RIGHT", "LEFT"], each)?;
            let removed = ask("LREM", &["LREM", "working", "1", &element], each)?;
            let both =
                moved.zip(removed).map(|(moved, removed)| 1.0 / (1.0 / moved + 1.0 / removed));
            measured.push(("taken", both, None));
        }
    }
    Ok(measured)
}

/// Settings of the client.
#[derive(Clone, Copy)]
struct Drive {
    clients: u32,
    /// Requests in all.
    count: u64,
    /// Requests that each connection sends before it reads the replies.
    pipeline: u32,
    client: Client,
}

impl Drive {
    /// Requests a second; nothing where the client failed or took too long.
    fn run(
        self,
        bench: &Bench,
        limit: Duration,
        contender: &Contender,
        words: &[&str],
    ) -> Result<Option<f64>> {
        if self.client == Client::Sparing {
            let rate = sparing::drive(contender.address, self.clients, self.count, words, limit);
            return Ok(rate.inspect_err(|error| println!("{error}")).ok());
        }
        let mut command = Command::new("redis-benchmark");
        command
            .args(["-h", "127.0.0.1", "-p", &contender.address.port().to_string(), "--csv"])
            .args(["-c", &self.clients.to_string(), "-n", &self.count.to_string()])
            .args(["-P", &self.pipeline.to_string()])
            .args(words);
        let outcome = run(&mut command, &bench.log("redis-benchmark"), limit)?;
        if !outcome.ended_well {
            println!("{}", outcome.tail());
            return Ok(None);
        }
        Ok(rate(&outcome.output))
    }
}

/// The second column of the last line of CSV.
fn rate(csv: &str) -> Option<f64> {
    let line = csv.lines().rev().find(|line| line.starts_with('"'))?;
    line.rsplit("\",\"").nth(6)?.parse().ok()
}

impl Case {
    fn count(&self, options: &Options) -> u64 {
        self.requests / options.share
    }

    /// How it is asked for.
    pub(super) fn manner(&self) -> String {
        match self.client {
            Client::RedisBenchmark => format!("by {}", self.pipeline),
            Client::Sparing => "by 1, sparing client".to_owned(),
        }
    }

    fn heading(&self, rate: Option<f64>) -> String {
        let rate = rate.map_or("failed".to_owned(), |rate| format!("{rate:.0}/s"));
        format!("{} bytes, {}: {rate}", self.bytes, self.manner())
    }
}

/// A client that takes longer is ended.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_benchmark_rate_is_read() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"LPUSH a b\",\"151515.16\",\"0.5\",\"0.1\",\"0.4\",\"0.9\",\"1.1\",\"2\"\n";
        assert_eq!(rate(csv), Some(151_515.16));
        assert_eq!(rate("Could not connect\n"), None);
    }
}

//! The test of the beanstalkd and Redis document: HTTP requests of 1000 jobs each, and workers that
//! take them all; beside it the memory and disk space of a job, and the time that a killed server
//! needs until it has them again.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::asked::Answer;
use super::document::{Case, Document, Run};
use super::machine;
use super::options::{Number, ROUNDS};
use super::page::{Column, one};
use super::sample::Sample;
use super::usage::{Usage, memory_bytes, stored_bytes};
use crate::Result;
use crate::contender::{self, Contender, nats_server};
use crate::repository::root;
use crate::run::run;
use crate::setup;
use crate::steps::Bench;

/// A client that takes longer is ended: the document's slowest consumer took 524 s for a million.
const LIMIT: Duration = Duration::from_secs(600);

const INSTALL_MAX: Duration = Duration::from_secs(900);

/// The one phase of a sample.
const PHASE: &str = "jobs";

/// The phase, and its name for readers.
const CASES: [[&str; 2]; 5] = [
    ["push", "pushed one by one"],
    ["batch", "pushed as one batch a request"],
    ["recovery", "recovered after kill -9"],
    ["release", "taken and given back"],
    ["take", "taken and done with"],
];

/// Jobs by 100 clients.
pub(super) struct Jobs;

/// One server, and whether it is full.
pub(super) struct System {
    name: String,
    contender: Option<Contender>,
    driver: Driver,
    is_full: bool,
}

/// How servers are started and asked.
struct Driver {
    scratch: Bench,
    binary: PathBuf,
    requests: u64,
    /// Jobs of a request.
    each: u64,
}

impl Document for Jobs {
    type System = System;

    const NAME: &'static str = "jobs";
    const INTRODUCTION: &'static str = include_str!("introduction.md");
    const SYSTEMS: &'static [&'static str] = &[
        "dunlin-http",
        "dunlin-beanstalkd",
        "dunlin-redis",
        "beanstalkd",
        "beanstalkd-f50",
        "beanstalkd-f0",
        "redis-none",
        "redis-rdb",
        "redis-everysec",
        "redis-always",
        "nats",
        "nats-always",
        "rabbitmq",
    ];
    const NUMBERS: &'static [Number] = &[
        ROUNDS,
        Number {
            name: "requests",
            value: 100,
            quick: 100,
            what: "Requests in all; the document: 1000",
        },
        Number {
            name: "each",
            value: 300,
            quick: 50,
            what: "Jobs of a request; the document: 1000",
        },
    ];
    const FIGURE: &'static str = "jobs/s";

    fn cases(&self) -> Vec<Case> {
        let of = |[name, label]: [&str; 2]| Case {
            name: name.to_owned(),
            label: label.to_owned(),
            section: "all",
            setup: String::new(),
        };
        CASES.map(of).to_vec()
    }

    fn title(&self, _section: &str) -> &'static str {
        "Jobs of 100 bytes, 100 clients, 100 workers"
    }

    fn applies(&self, system: &str, case: &Case) -> bool {
        let is = |beginning: &str| system.contains(beginning);
        match case.name.as_str() {
            // Dunlin is given the thousand at once by HTTP.
            "push" => system != "dunlin-http",
            // Its clients have none.
            "batch" => !is("beanstalkd"),
            // They keep nothing.
            "recovery" => !["beanstalkd", "redis-none"].contains(&system),
            // A list gives nothing back.
            "release" => !is("redis"),
            _ => true,
        }
    }

    fn ours(system: &str) -> &'static str {
        match system {
            _ if system.starts_with("beanstalkd") => "dunlin-beanstalkd",
            _ if system.starts_with("redis") => "dunlin-redis",
            _ => "dunlin-http",
        }
    }

    fn prepare(&self, test: &Run) -> Result<()> {
        setup::install(&test.bench.log("setup"))?;
        build(test.bench)?;
        let wants = |name: &str| test.options.systems.iter().any(|system| system.starts_with(name));
        // A missing program is reported when it is started.
        if wants("nats")
            && let Err(error) = install_nats(test.bench)
        {
            println!("{error}");
        }
        if wants("rabbitmq")
            && let Err(error) = setup::install_rabbitmq(&test.bench.log("setup"))
        {
            println!("{error}");
        }
        Ok(())
    }

    fn start(&self, test: &Run, system: &str, _setup: &str) -> Result<System> {
        let driver = Driver {
            scratch: Bench::new()?,
            binary: test.binary.clone(),
            requests: test.options.number("requests"),
            each: test.options.number("each"),
        };
        let contender = contender::start(&driver.scratch, Some(&driver.binary), system)?;
        Ok(System { name: system.to_owned(), contender: Some(contender), driver, is_full: false })
    }

    fn ask(&self, system: &mut System, case: &Case) -> Result<Sample> {
        let answer = match case.name.as_str() {
            phase @ ("push" | "batch") => system.fill(phase)?,
            phase => {
                system.await_jobs()?;
                if phase == "recovery" { system.recover()? } else { system.take(phase)? }
            }
        };
        Ok(Sample::of(PHASE, answer))
    }

    fn figure(sample: &Sample) -> Option<f64> {
        sample.rate(PHASE, "messages").filter(|rate| *rate > 0.0)
    }

    fn columns(&self) -> Vec<Column> {
        let shown = |title, name: &'static str, digits| {
            Column::of(title, move |line| {
                one(&line.rounds, |of| of.number(PHASE, name).filter(|value| *value > 0.0), digits)
            })
        };
        vec![
            shown("jobs", "messages", 0),
            Column::of("seconds", |line| {
                one(&line.rounds, |sample| Some(sample.number(PHASE, "nanos")? / 1e9), 2)
            }),
            shown("mean, ms", "mean_ms", 2),
            shown("p99, ms", "p99_ms", 2),
            Column::of("memory, bytes a job", |line| {
                one(&line.rounds, |sample| sample.each(PHASE, "memory_bytes", "messages"), 0)
            }),
            Column::of("stored, bytes a job", |line| {
                one(&line.rounds, |sample| sample.each(PHASE, "stored_bytes", "messages"), 0)
            }),
            Column::disk(PHASE, "messages"),
            Column::cores(PHASE),
        ]
    }

    fn versions(&self, test: &Run) -> Result<Vec<String>> {
        let nats = nats_server(test.bench).display().to_string();
        machine::versions(
            &test.binary,
            &[
                &["beanstalkd", "-v"],
                &["redis-server", "--version"],
                &[&nats, "--version"],
                &["dpkg-query", "-W", "-f", "${Package} ${Version}", "rabbitmq-server"],
                &["go", "version"],
            ],
        )
    }
}

impl System {
    /// Pushes all jobs; earlier jobs are taken away first.
    fn fill(&mut self, phase: &str) -> Result<Answer> {
        if self.is_full {
            self.take("take")?;
        }
        let before = self.room()?;
        let mut answer = self.ask(phase)?;
        let after = self.room()?;
        for ((name, before), (_, after)) in before.into_iter().zip(after) {
            answer.insert(name.to_owned(), json!(after.saturating_sub(before)));
        }
        self.is_full = true;
        Ok(answer)
    }

    fn await_jobs(&mut self) -> Result<()> {
        if !self.is_full {
            let batch = if self.name.contains("beanstalkd") { "push" } else { "batch" };
            self.fill(batch)?;
        }
        Ok(())
    }

    fn take(&mut self, phase: &str) -> Result<Answer> {
        self.is_full = phase != "take";
        self.ask(phase)
    }

    /// Kills the server and starts it again; over when it says how many jobs it has.
    fn recover(&mut self) -> Result<Answer> {
        self.contender = None;
        let begun = Instant::now();
        let Driver { scratch, binary, .. } = &self.driver;
        self.contender = Some(contender::start_again(scratch, Some(binary), &self.name)?);
        let mut answer = self.ask("count")?;
        answer.insert("nanos".to_owned(), json!(begun.elapsed().as_nanos() as u64));
        let left = answer.get("messages").and_then(Value::as_u64).unwrap_or_default();
        self.is_full = left == self.driver.requests * self.driver.each;
        if left > 0 && !self.is_full {
            self.contender = None;
            self.contender = Some(contender::start(scratch, Some(binary), &self.name)?);
        }
        Ok(answer)
    }

    /// Memory, and room on the disk.
    fn room(&self) -> Result<[(&'static str, u64); 2]> {
        let contender = self.running()?;
        let stored = stored_bytes(&contender.folder);
        Ok([("memory_bytes", memory_bytes(contender.pid())), ("stored_bytes", stored)])
    }

    fn running(&self) -> Result<&Contender> {
        self.contender.as_ref().ok_or_else(|| "it was not started again".into())
    }

    /// One run of the client, with the resources that it and the server used meanwhile.
    fn ask(&self, phase: &str) -> Result<Answer> {
        let contender = self.running()?;
        let usage = |pid| Usage::of(pid, &contender.folder);
        let (before, own) = (usage(contender.pid())?, machine::children_cpu_nanos()?);
        let mut client = Command::new(client(&self.driver.scratch));
        client
            .args(["-protocol", contender.protocol(), "-phase", phase])
            .args(["-addr", &contender.address.to_string()])
            .args(["-requests", &self.driver.requests.to_string()])
            .args(["-amount", &self.driver.each.to_string()]);
        let outcome = run(&mut client, &self.driver.scratch.log("bench-jobs"), LIMIT)?;
        if !outcome.ended_well {
            return Err(outcome.tail().into());
        }
        let used = usage(contender.pid())?.since(before);
        let line = outcome.output.lines().rev().find(|line| line.starts_with('{'));
        let mut answer: Answer = serde_json::from_str(line.ok_or("no result")?)?;
        let client = machine::children_cpu_nanos()?.saturating_sub(own);
        for (name, count) in [
            ("broker_cpu_nanos", used.cpu_nanos),
            ("client_cpu_nanos", client),
            ("flushes", used.flushes),
            ("written_bytes", used.written_bytes),
        ] {
            answer.insert(name.to_owned(), json!(count));
        }
        Ok(answer)
    }
}

fn client(bench: &Bench) -> PathBuf {
    bench.scratch.join("jobs")
}

fn build(bench: &Bench) -> Result<()> {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(client(bench)).arg(".").current_dir(root().join("interop/jobs"));
    let outcome = run(&mut go, &bench.log("bench-jobs-build"), INSTALL_MAX)?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("the client cannot be built\n{}", outcome.tail()).into())
}

fn install_nats(bench: &Bench) -> Result<()> {
    let server = nats_server(bench);
    if server.exists() {
        return Ok(());
    }
    let folder = server.parent().ok_or("no folder for it")?;
    fs::create_dir_all(folder)?;
    println!("installing nats-server");
    let mut go = Command::new("go");
    go.args(["install", "github.com/nats-io/nats-server/v2@latest"]).env("GOBIN", folder);
    let outcome = run(&mut go, &bench.log("bench-nats"), INSTALL_MAX)?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("nats-server cannot be installed\n{}", outcome.tail()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_have_their_cases() {
        let cases = |system: &str| {
            let cases = Jobs.cases().into_iter().filter(|case| Jobs.applies(system, case));
            cases.map(|case| case.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cases("dunlin-http"), "batch recovery release take");
        assert_eq!(cases("beanstalkd"), "push release take");
        assert_eq!(cases("beanstalkd-f0"), "push recovery release take");
        assert_eq!(cases("redis-rdb"), "push batch recovery take");
        assert_eq!(cases("rabbitmq"), "push batch recovery release take");
        assert_eq!(Jobs::ours("redis-rdb"), "dunlin-redis");
        assert_eq!(Jobs::ours("nats"), "dunlin-http");
    }
}

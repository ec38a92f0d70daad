//! The tests of the bigdata Journal document: transactions of 100 operations by concurrent clients,
//! and readers beside one writer.
//!
//! bigdata is a library: its own published tests run in a process of theirs. The others are
//! servers, which a client asks for the same.

mod server;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::asked::{Answer, Asked};
use super::document::{Case, Document, Run};
use super::jms;
use super::machine;
use super::options::{Number, ROUNDS};
use super::page::{Column, middles, one};
use super::plot::{self, Line, Panel};
use super::raw::Raw;
use super::sample::Sample;
use super::usage::Usage;
use crate::Result;
use crate::repository::root;
use crate::setup;
use server::Served;

/// The store, its name for readers, and its heading.
const STORES: [[&str; 3]; 3] = [
    ["none", "nothing kept", "Transactions, nothing kept"],
    ["never", "journal not forced", "Transactions, journal not forced"],
    ["always", "journal forced", "Transactions, journal forced at each commit"],
];

/// As in the document.
const CLIENTS: [u32; 6] = [1, 2, 10, 20, 100, 200];

const READERS: u32 = 20;

const READING: &str = "reading";
const TRANSACTIONS: &str = "transactions";

/// The journal's test sleeps 10,000 times.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Packages of Java itself that its libraries touch.
const OPENED: [&str; 4] = ["java.nio", "sun.nio.ch", "java.lang", "java.util"];

/// Transactions, and readers beside a writer.
pub(super) struct BigData;

/// The system that is measured.
pub(super) enum System {
    Library { asked: Asked, folder: PathBuf, seconds: u64 },
    Served(Served),
}

impl Document for BigData {
    type System = System;

    const NAME: &'static str = "bigdata";
    const INTRODUCTION: &'static str = include_str!("introduction.md");
    const SYSTEMS: &'static [&'static str] = &["dunlin", "bigdata", "postgresql", "redis"];
    const NUMBERS: &'static [Number] = &[
        ROUNDS,
        Number {
            name: "seconds",
            value: 1,
            quick: 1,
            what: "Seconds for each line; the document: 30",
        },
    ];
    const FIGURE: &'static str = "a second";

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for [store, ..] in STORES {
            for clients in CLIENTS {
                cases.push(Case {
                    name: format!("{store}-{clients}"),
                    label: format!("clients: {clients}"),
                    section: store,
                    setup: store.to_owned(),
                });
            }
        }
        cases.extend(STORES.map(|[store, label, _]| Case {
            name: format!("{READING}-{store}"),
            label: label.to_owned(),
            section: READING,
            setup: store.to_owned(),
        }));
        cases
    }

    fn title(&self, section: &str) -> &'static str {
        let store = STORES.iter().find(|[store, ..]| *store == section);
        store.map_or("Trials of 100 reads by 20 readers, one writer", |[.., title]| title)
    }

    fn prepare(&self, test: &Run) -> Result<()> {
        server::build(test.bench)?;
        let wants = |name: &str| test.options.systems.iter().any(|system| system == name);
        // A missing program is reported when it is started.
        if wants("bigdata")
            && let Err(error) = jms::build_alone(test, "bigdata")
        {
            println!("{error}");
        }
        if wants("postgresql")
            && let Err(error) = setup::install_postgresql(&test.bench.log("setup"))
        {
            println!("{error}");
        }
        Ok(())
    }

    fn start(&self, test: &Run, system: &str, setup: &str) -> Result<System> {
        let seconds = test.options.number("seconds");
        if system != "bigdata" {
            let name = format!("{system}-{setup}");
            return Ok(System::Served(Served::start(&test.binary, &name, seconds)?));
        }
        let folder = test.empty_folder()?;
        let mut command = library()?;
        command.arg("dunlin.bigdata.Stress").arg(&folder).arg(setup);
        let asked = Asked::start(command, &test.bench.log("bench-bigdata"))?;
        let mut system = System::Library { asked, folder, seconds };
        // It is compiled while it runs.
        system.ask(TRANSACTIONS, 10)?;
        Ok(system)
    }

    fn ask(&self, system: &mut System, case: &Case) -> Result<Sample> {
        if case.section == READING {
            return Ok(Sample::of(READING, system.ask(READING, READERS)?));
        }
        let clients = case.name.rsplit('-').next().ok_or("a case without clients")?.parse()?;
        Ok(Sample::of(TRANSACTIONS, system.ask(TRANSACTIONS, clients)?))
    }

    fn figure(sample: &Sample) -> Option<f64> {
        let committed = sample.rate(TRANSACTIONS, "committed");
        committed.or_else(|| sample.rate(READING, "trials")).filter(|rate| *rate > 0.0)
    }

    fn columns(&self) -> Vec<Column> {
        let sum = |title, name: &'static str| {
            let of = |sample: &Sample, name: &str| {
                sample.number(TRANSACTIONS, name).or_else(|| sample.number(READING, name))
            };
            Column::of(title, move |line| one(&line.rounds, |sample| of(sample, name), 0))
        };
        let cores = |name: &'static str| {
            move |sample: &Sample| {
                sample.cores(TRANSACTIONS, name).or_else(|| sample.cores(READING, name))
            }
        };
        vec![
            sum("committed", "committed"),
            sum("aborted", "aborted"),
            sum("failed", "failed"),
            sum("reads", "reads"),
            sum("wrong", "errors"),
            sum("written", "written"),
            Column::of("syncs, bytes a commit", |line| {
                let each = |name: &'static str, digits| {
                    one(&line.rounds, |of| of.each(TRANSACTIONS, name, "committed"), digits)
                };
                format!("{}, {}", each("flushes", 3), each("written_bytes", 0))
            }),
            Column::of("cores: server + client", move |line| {
                ["broker_cpu_nanos", "client_cpu_nanos"]
                    .map(|name| one(&line.rounds, cores(name), 2))
                    .join(" + ")
            }),
        ]
    }

    fn picture(&self, section: &str, cases: &[Case], raw: &Raw) -> Result<String> {
        let groups = middles(cases, raw, &|sample: &Sample| BigData::figure(sample));
        if section == READING {
            return plot::bars(self.title(section), "trials/s", &groups);
        }
        let mut lines: Vec<Line<'_>> = Vec::new();
        for ((_, values), clients) in groups.iter().zip(CLIENTS) {
            for (system, value) in values {
                let point = (f64::from(clients), *value);
                match lines.iter_mut().find(|(name, _)| name == system) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((system, vec![point])),
                }
            }
        }
        let caption = self.title(section).to_owned();
        plot::panels(&[Panel { caption, axes: ["clients", "committed/s"], lines }])
    }

    fn versions(&self, test: &Run) -> Result<Vec<String>> {
        let mut versions = machine::versions(
            &test.binary,
            &[
                &["java", "--version"],
                &["psql", "--version"],
                &["redis-server", "--version"],
                &["go", "version"],
            ],
        )?;
        versions.extend(machine::library_of(&library_path().unwrap_or_default(), "bigdata-core"));
        Ok(versions)
    }
}

impl System {
    /// Runs a phase; the answer has the resources used meanwhile.
    fn ask(&mut self, phase: &str, clients: u32) -> Result<Answer> {
        match self {
            System::Served(served) => served.ask(phase, clients),
            System::Library { asked, folder, seconds } => {
                let before = Usage::of(asked.pid(), folder)?;
                let mut answer = asked.ask(&format!("{phase} {clients} {seconds}"), ANSWER_MAX)?;
                put(&mut answer, Usage::of(asked.pid(), folder)?.since(before), 0);
                Ok(answer)
            }
        }
    }
}

/// Adds the resources used.
fn put(answer: &mut Answer, used: Usage, client_cpu_nanos: u64) {
    for (name, count) in [
        ("broker_cpu_nanos", used.cpu_nanos),
        ("client_cpu_nanos", client_cpu_nanos),
        ("flushes", used.flushes),
        ("written_bytes", used.written_bytes),
    ] {
        answer.insert(name.to_owned(), json!(count));
    }
}

fn library() -> Result<Command> {
    let classes = root().join("interop/bigdata/target/classes");
    let mut command = Command::new("java");
    command.arg("-Xmx2g");
    for package in OPENED {
        command.args(["--add-opens", &format!("java.base/{package}=ALL-UNNAMED")]);
    }
    command.args(["-cp", &format!("{}:{}", classes.display(), library_path()?)]);
    Ok(command)
}

fn library_path() -> Result<String> {
    let path = root().join("interop/bigdata/target/classpath");
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page;

    fn sample(case: &str, answers: serde_json::Value) -> Sample {
        Sample::from(answers).named("dunlin", case, 1, "a")
    }

    #[test]
    fn bigdata_cases_cover_stores_and_readers() {
        let cases = BigData.cases();
        assert_eq!(cases.len(), 21);
        assert_eq!(cases[7].name, "never-2");
        assert_eq!(cases[20].name, "reading-always");
        assert_eq!(cases[20].setup, "always");
    }

    #[test]
    fn line_shows_transactions_or_trials() {
        let counts = json!({"committed": 90, "aborted": 10, "failed": 1, "nanos": 1e9,
            "flushes": 45, "written_bytes": 9000});
        let trials = json!({"trials": 5, "reads": 500, "errors": 0, "written": 7, "nanos": 1e9});
        let raw = Raw {
            runs: Vec::new(),
            samples: vec![
                sample("none-1", json!({"transactions": counts})),
                sample("reading-none", json!({"reading": trials})),
            ],
        };
        let cases = BigData.cases();
        let line = page::lines(&BigData, &cases[0], &raw);
        assert!(line.contains("| dunlin | 90.0 |  | 90 | 10 | 1 | – |"), "{line}");
        assert!(line.contains("| 0.500, 100 |"), "{line}");
        let line = page::lines(&BigData, &cases[18], &raw);
        assert!(line.contains("| dunlin | 5.0 |  | – | – | – | 500 | 0 | 7 |"), "{line}");
        let svg = BigData.picture("none", &cases[..6], &raw).unwrap();
        assert!(svg.contains("dunlin"));
    }
}

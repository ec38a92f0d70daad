//! The test of the JORAM document: one producer saturates, one consumer takes, and how long
//! messages travel is plotted over their number. See `docs/benchmarks/joram.md`, which it writes.
//!
//! A case is asked in three parts: `fill` sends what nobody takes, `drain` is the consumer alone
//! with that, `saturate` is the document's test. The first two say what the consumer can do where
//! no producer runs, and what a sent message costs the processors.

mod plot;
mod report;
mod sample;

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::machine;
use super::options::Options;
use super::system::{System, binary};
use crate::Result;
use crate::run::run;
use crate::steps::Bench;
use crate::tally::Tally;
use sample::Sample;

/// Where messages go: a queue, a topic, or a topic with a durable subscriber.
const PLACES: [&str; 3] = ["queue", "topic", "durable"];

/// The document's four cases: how producer and consumer work.
const MODES: [[&str; 2]; 4] = [
    ["plain", "plain"],
    ["transacted", "plain"],
    ["plain", "transacted"],
    ["transacted", "transacted"],
];

/// One line of a table: a place and a mode.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Case {
    place: &'static str,
    producer: &'static str,
    consumer: &'static str,
}

impl Case {
    fn all() -> Vec<Case> {
        let of = |place| MODES.map(|[producer, consumer]| Case { place, producer, consumer });
        PLACES.into_iter().flat_map(of).collect()
    }

    fn name(&self) -> String {
        [self.place, self.producer, self.consumer].join("-")
    }

    fn question(&self, phase: &str) -> String {
        let Case { place, producer, consumer } = self;
        let destination = self.destination(if phase == "saturate" { phase } else { "alone" });
        format!("{phase} {place} {producer} {consumer} {destination}")
    }

    /// What is left by one case is in nobody's way.
    fn destination(&self, part: &str) -> String {
        format!("{part}.{}", self.name())
    }
}

/// What is written beside the document, and what a repeated line is put into.
#[derive(Default)]
struct Raw {
    /// When, on what and with which command.
    runs: Vec<Value>,
    samples: Vec<Sample>,
}

/// Measures as `options` say, and writes the document.
pub(super) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    let cases = chosen(options)?;
    prepare(bench)?;
    let file = options.out.join("joram.json");
    let mut raw = Raw::read(&file)?;
    let run = machine::now()?;
    raw.runs.push(json!({
        "run": run,
        "command": format!("cargo xtask bench joram{}", options.words),
        "machine": machine::describe(),
        "versions": machine::versions(&binary(bench, options)?)?,
        "rounds": options.rounds, "messages": options.messages,
        "backlog": options.backlog, "millis": options.millis,
    }));
    let fresh = measure(bench, options, &cases, &run)?;
    let failed = fresh.iter().filter(|sample| sample.error().is_some()).count() as u64;
    let passed = fresh.len() as u64 - failed;
    raw.put(fresh);
    fs::create_dir_all(&options.out)?;
    fs::write(&file, raw.render())?;
    for place in PLACES {
        let svg = plot::render(place, &raw.samples)?;
        fs::write(options.out.join(format!("joram-{place}.svg")), svg)?;
    }
    fs::write(options.out.join("joram.md"), report::render(&raw))?;
    for case in &cases {
        println!("{}", report::lines(*case, &raw.samples));
    }
    println!("written: joram.md, joram.json and plots in {}", options.out.display());
    Ok(Tally { passed, failed })
}

fn chosen(options: &Options) -> Result<Vec<Case>> {
    if let Some(unknown) =
        options.only.iter().find(|name| Case::all().iter().all(|case| case.name() != **name))
    {
        let names: Vec<String> = Case::all().iter().map(Case::name).collect();
        return Err(format!("no case {unknown}; there are {}", names.join(", ")).into());
    }
    let wanted = |case: &Case| options.only.is_empty() || options.only.contains(&case.name());
    Ok(Case::all().into_iter().filter(wanted).collect())
}

fn prepare(bench: &Bench) -> Result<()> {
    let mut maven = crate::amqp::in_folder("jms", &["mvn", "-B", "-ntp", "process-classes"])?;
    maven.args(["-pl", "brokers,bench,bench-javax"]);
    let outcome = run(&mut maven, &bench.log("bench-build"), Duration::from_secs(1800))?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("brokers and clients cannot be built\n{}", outcome.tail()).into())
}

/// Round by round, so that what else the machine does hits all systems alike.
fn measure(bench: &Bench, options: &Options, cases: &[Case], run: &str) -> Result<Vec<Sample>> {
    let paced: Vec<String> = cases.iter().map(|case| case.destination("saturate")).collect();
    let mut samples = Vec::new();
    for round in 1..=options.rounds {
        for name in &options.systems {
            println!("== round {round} of {}: {name}", options.rounds);
            let mut running = None;
            for case in cases {
                let (left, sample) = measure_case(running.take(), *case, || {
                    let mut system = System::start(bench, options, name, &paced)?;
                    warm_up(&mut system)?;
                    Ok(system)
                });
                running = left;
                let sample = sample.named(name, &case.name(), round, run);
                println!("{sample}");
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

/// Gives the system back as long as it is well: after a failure what follows gets a new one.
fn measure_case(
    running: Option<System>,
    case: Case,
    start: impl FnOnce() -> Result<System>,
) -> (Option<System>, Sample) {
    let measured = running.map_or_else(start, Ok).and_then(|mut system| {
        let mut sample = Sample::default();
        for phase in ["fill", "drain", "saturate"] {
            sample.put(phase, system.ask(&case.question(phase))?);
        }
        Ok((system, sample))
    });
    match measured {
        Ok((system, sample)) => (Some(system), sample),
        Err(error) => (None, Sample::of_failure(&error.to_string())),
    }
}

/// Broker and client are compiled while they run.
fn warm_up(system: &mut System) -> Result<()> {
    system.ask("saturate queue plain transacted warm-up.queue")?;
    system.ask("saturate topic transacted plain warm-up.topic")?;
    Ok(())
}

impl Raw {
    /// What earlier runs left, if there were any.
    fn read(file: &Path) -> Result<Raw> {
        if !file.exists() {
            return Ok(Raw::default());
        }
        let value: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        let list = |name: &str| value.get(name).and_then(Value::as_array).cloned();
        let (runs, samples) = list("runs").zip(list("samples")).ok_or("joram.json has no runs")?;
        Ok(Raw { runs, samples: samples.into_iter().map(Sample::from).collect() })
    }

    /// Lines that were measured anew replace those of before.
    fn put(&mut self, fresh: Vec<Sample>) {
        self.samples.retain(|old| fresh.iter().all(|new| !new.same_line(old)));
        self.samples.extend(fresh);
        let samples = &self.samples;
        self.runs.retain(|run| samples.iter().any(|sample| sample.text("run") == run["run"]));
    }

    /// A line a run or sample, so that differences can be read.
    fn render(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(Value::to_string).collect();
        let samples: Vec<String> = self.samples.iter().map(Sample::json).collect();
        format!(
            "{{\"runs\":[\n{}\n],\"samples\":[\n{}\n]}}\n",
            runs.join(",\n"),
            samples.join(",\n")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(system: &str, run: &str) -> Sample {
        Sample::default().named(system, "queue-plain-plain", 1, run)
    }

    #[test]
    fn a_repeated_line_replaces_the_old_one_and_the_rest_stays() {
        let mut raw = Raw { runs: vec![json!({"run": "a"})], samples: Vec::new() };
        raw.put(vec![sample("dunlin", "a"), sample("joram", "a")]);
        raw.runs.push(json!({"run": "b"}));
        raw.put(vec![sample("dunlin", "b")]);
        let left: Vec<&str> = raw.samples.iter().map(|sample| sample.text("run")).collect();
        assert_eq!(left, ["a", "b"]);
        raw.runs.push(json!({"run": "c"}));
        raw.put(vec![sample("joram", "c")]);
        assert_eq!(raw.runs, [json!({"run": "b"}), json!({"run": "c"})]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = std::env::temp_dir().join(format!("joram-{}.json", std::process::id()));
        let raw = Raw { runs: vec![json!({"run": "a"})], samples: vec![sample("joram", "a")] };
        fs::write(&file, raw.render()).unwrap();
        let read = Raw::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(read.render(), raw.render());
    }

    #[test]
    fn cases_are_told_by_name() {
        assert_eq!(Case::all().len(), 12);
        let case = Case::all()[5];
        assert_eq!(
            case.question("drain"),
            "drain topic transacted plain alone.topic-transacted-plain"
        );
        let options = Options::read(&["--only", "queue-fast-slow"]).unwrap();
        assert!(chosen(&options).is_err());
    }
}

//! The test of the Open MQ document: the cost of each factor of an application's design, in
//! messages a second and in percent.

use super::document::{Case, Document, Run};
use super::jms::{self, Client, System, Wanted};
use super::machine;
use super::options::{Number, ROUNDS};
use super::page::{Column, Line};
use super::sample::Sample;
use crate::Result;

const MODES: [&str; 2] = ["persistent", "non-persistent"];

/// The factor that all others are compared with.
const PLAIN: &str = "plain";

/// A factor: its name, its name for readers, and the words of its question before and after the
/// mode: place and acknowledgement; bytes, body and selection.
const FACTORS: [[&str; 4]; 13] = [
    [PLAIN, "queue, AUTO_ACKNOWLEDGE, 1 KiB of bytes", "queue auto", "1024 bytes all"],
    ["transacted", "transacted, a commit each", "queue transacted", "1024 bytes all"],
    ["client", "CLIENT_ACKNOWLEDGE, each", "queue client", "1024 bytes all"],
    ["dups", "DUPS_OK_ACKNOWLEDGE", "queue dups", "1024 bytes all"],
    ["topic", "topic, not durable", "topic auto", "1024 bytes all"],
    ["durable", "topic, durable", "durable auto", "1024 bytes all"],
    ["queue-selector", "queue, selector", "queue auto", "1024 bytes selected"],
    ["topic-selector", "topic, not durable, selector", "topic auto", "1024 bytes selected"],
    ["durable-selector", "topic, durable, selector", "durable auto", "1024 bytes selected"],
    ["10k", "10 KiB", "queue auto", "10240 bytes all"],
    ["100k", "100 KiB", "queue auto", "102400 bytes all"],
    ["text", "1 KiB of text", "queue auto", "1024 text all"],
    ["none", "no body", "queue auto", "0 none all"],
];

/// The cost of design factors.
pub(super) struct OpenMq;

impl Document for OpenMq {
    type System = System;

    const NAME: &'static str = "openmq";
    const INTRODUCTION: &'static str = include_str!("introduction.md");
    const SYSTEMS: &'static [&'static str] = &["dunlin", "openmq", "openmq-default", "artemis"];
    const NUMBERS: &'static [Number] = &[
        ROUNDS,
        Number {
            name: "millis",
            value: 400,
            quick: 50,
            what: "Milliseconds in which the producer sends",
        },
    ];
    const FIGURE: &'static str = "messages/s";

    fn cases(&self) -> Vec<Case> {
        let of = |section| {
            FACTORS.map(|[name, label, ..]| Case {
                name: format!("{section}-{name}"),
                label: label.to_owned(),
                section,
                setup: String::new(),
            })
        };
        MODES.into_iter().flat_map(of).collect()
    }

    fn title(&self, section: &str) -> &'static str {
        match section {
            "persistent" => "Persistent messages",
            _ => "Non-persistent messages",
        }
    }

    fn prepare(&self, run: &Run) -> Result<()> {
        jms::build(run, "brokers,bench")?;
        if run.options.systems.iter().any(|system| system.starts_with("openmq")) {
            // A missing program is reported when it is started.
            if let Err(error) = jms::build_alone(run, "jms/openmq") {
                println!("{error}");
            }
        }
        Ok(())
    }

    fn start(&self, run: &Run, system: &str, _setup: &str) -> Result<System> {
        let policy = if system == "openmq-default" { "never" } else { "always" };
        let wanted = Wanted { name: system, policy, options: Vec::new() };
        let client = Client { class: "Factors", flags: run.options.flags(&["millis"]) };
        let mut running = System::start(run, &wanted, &client)?;
        // Broker and client are compiled while they run.
        for mode in MODES {
            for words in ["queue auto", "queue transacted", "durable auto"] {
                let (place, _) = words.split_once(' ').unwrap_or((words, ""));
                running.ask(&format!("factor {words} {mode} 1024 bytes all warm_up_{place}"))?;
            }
        }
        Ok(running)
    }

    fn ask(&self, system: &mut System, case: &Case) -> Result<Sample> {
        Ok(Sample::of("factor", system.ask(&question(case)?)?))
    }

    fn figure(sample: &Sample) -> Option<f64> {
        sample.rate("factor", "messages")
    }

    fn columns(&self) -> Vec<Column> {
        let percent =
            |price: Option<f64>| price.map_or(String::new(), |price| format!("{price:.0}"));
        vec![
            Column::of("price of the factor, %", move |line| {
                percent(price(line, &plain(line.case)))
            }),
            Column::of("of persistence, %", move |line| {
                let fleeting = line.case.strip_prefix("persistent-");
                percent(fleeting.and_then(|name| price(line, &format!("non-persistent-{name}"))))
            }),
            Column::disk("factor", "messages"),
            Column::cores("factor"),
        ]
    }

    fn versions(&self, run: &Run) -> Result<Vec<String>> {
        let mut versions = machine::versions(&run.binary, &[&["java", "--version"]])?;
        versions.extend(machine::libraries(&[
            ("brokers", "artemis-server"),
            ("bench", "qpid-jms-client"),
        ])?);
        versions.extend(jms::said_version("openmq"));
        Ok(versions)
    }
}

fn question(case: &Case) -> Result<String> {
    let name = case.name.strip_prefix(case.section).and_then(|name| name.strip_prefix('-'));
    let factor = FACTORS.iter().find(|[own, ..]| Some(*own) == name);
    let [name, _, before, after] = factor.ok_or_else(|| format!("no factor {}", case.name))?;
    // Open MQ takes only names that Java would take.
    let name = name.replace('-', "_");
    Ok(format!("factor {before} {} {after} bench_{name}", case.section))
}

/// The case without the factor.
fn plain(case: &str) -> String {
    let mode = if case.starts_with("non-") { "non-persistent" } else { "persistent" };
    format!("{mode}-{PLAIN}")
}

/// How much less, in percent, than the same system does in another case.
fn price(line: &Line<'_>, other: &str) -> Option<f64> {
    if line.case == other {
        return None;
    }
    let figure = |case: &str| line.middle(case, &OpenMq::figure);
    Some(100.0 * (1.0 - figure(line.case)? / figure(other)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::page;
    use crate::bench::raw::Raw;

    fn sample(case: &str, messages: u64) -> Sample {
        let answers = json!({"factor": {"messages": messages, "nanos": 1e9}});
        Sample::from(answers).named("dunlin", case, 1, "a")
    }

    #[test]
    fn openmq_cases_have_a_question_each() {
        let cases = OpenMq.cases();
        assert_eq!(cases.len(), 26);
        assert!(cases.iter().all(|case| question(case).is_ok()));
        assert_eq!(
            question(&cases[19]).unwrap(),
            "factor queue auto non-persistent 1024 bytes selected bench_queue_selector"
        );
    }

    #[test]
    fn price_compares_plain_case_and_mode() {
        let raw = Raw {
            runs: Vec::new(),
            samples: vec![
                sample("persistent-plain", 1000),
                sample("persistent-transacted", 250),
                sample("non-persistent-transacted", 500),
            ],
        };
        let line = page::lines(&OpenMq, &OpenMq.cases()[1], &raw);
        assert!(line.contains("| dunlin | 250 |  | 75 | 50 |"), "{line}");
        let line = page::lines(&OpenMq, &OpenMq.cases()[0], &raw);
        assert!(line.contains("| dunlin | 1000 |  |  |  |"), "{line}");
    }
}

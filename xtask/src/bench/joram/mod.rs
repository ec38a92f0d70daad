//! The test of the JORAM document: one producer saturates, one consumer takes, and how long
//! messages travel is plotted over their number.
//!
//! A case is asked in three parts: `fill` sends messages that no consumer takes, `drain` is the
//! consumer alone with these, `saturate` is the document's test. The first two give the consumer's
//! rate without a producer, and the processor time of a sent message.

mod figures;

use std::cmp::Ordering;

use super::document::{Case, Document, Run};
use super::jms::{self, Client, System, Wanted};
use super::machine;
use super::options::{Number, ROUNDS};
use super::page::{Column, one};
use super::plot::{self, Panel};
use super::raw::Raw;
use super::sample::Sample;
use crate::Result;
use figures::{drained, fifths, points};

/// Kinds of destinations: a queue, a topic, or a topic with a durable subscriber.
const PLACES: [&str; 3] = ["queue", "topic", "durable"];

/// The document's four cases: how producer and consumer work.
const MODES: [[&str; 2]; 4] = [
    ["plain", "plain"],
    ["transacted", "plain"],
    ["plain", "transacted"],
    ["transacted", "transacted"],
];

const PHASES: [&str; 3] = ["fill", "drain", "saturate"];

/// Travel time while a producer saturates.
pub(super) struct Joram;

impl Document for Joram {
    type System = System;

    const NAME: &'static str = "joram";
    const INTRODUCTION: &'static str = include_str!("introduction.md");
    const SYSTEMS: &'static [&'static str] =
        &["dunlin", "dunlin-target-age", "joram", "classic", "artemis"];
    const NUMBERS: &'static [Number] = &[
        ROUNDS,
        Number {
            name: "messages",
            value: 10_000,
            quick: 1_000,
            what: "Messages of a producer, at most",
        },
        Number {
            name: "backlog",
            value: 2_000,
            quick: 200,
            what: "Messages for the consumer alone",
        },
        Number {
            name: "millis",
            value: 1_000,
            quick: 200,
            what: "Milliseconds of a producer, at most",
        },
    ];
    const FIGURE: &'static str = "received/s";

    fn cases(&self) -> Vec<Case> {
        let of = |section| {
            MODES.map(|[producer, consumer]| Case {
                name: format!("{section}-{producer}-{consumer}"),
                label: format!("{producer}, {consumer}"),
                section,
                setup: String::new(),
            })
        };
        PLACES.into_iter().flat_map(of).collect()
    }

    fn title(&self, section: &str) -> &'static str {
        match section {
            "queue" => "Queue",
            "topic" => "Topic, subscriber not durable",
            _ => "Topic, durable subscriber",
        }
    }

    fn prepare(&self, run: &Run) -> Result<()> {
        jms::build(run, "brokers,bench,bench-javax")
    }

    fn start(&self, run: &Run, system: &str, _setup: &str) -> Result<System> {
        let flags = run.options.flags(&["messages", "backlog", "millis"]);
        let mut options = Vec::new();
        if system == "dunlin-target-age" {
            for case in &run.cases {
                let rules = ["target-age=200ms", "when-full=block"];
                let destination = destination(case, "saturate");
                let rule = |rule| ["--queue".to_owned(), format!("{destination}:{rule}")];
                options.extend(rules.into_iter().flat_map(rule));
            }
        }
        let wanted = Wanted { name: system, policy: "always", options };
        let mut system = System::start(run, &wanted, &Client { class: "Saturation", flags })?;
        // Broker and client are compiled while they run.
        system.ask("saturate queue plain transacted warm-up.queue")?;
        system.ask("saturate topic transacted plain warm-up.topic")?;
        Ok(system)
    }

    fn ask(&self, system: &mut System, case: &Case) -> Result<Sample> {
        let mut sample = Sample::default();
        for phase in PHASES {
            sample.put(phase, system.ask(&question(case, phase))?);
        }
        Ok(sample)
    }

    fn figure(sample: &Sample) -> Option<f64> {
        figures::received(sample)
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::of("sent/s", |line| one(&line.rounds, figures::sent, 0)),
            Column::of("travel, ms, by fifths", |line| {
                let fifth = |place| one(&line.rounds, |of| fifths(of)?.get(place).copied(), 1);
                [0, 1, 2, 3, 4].map(fifth).join(", ")
            }),
            Column::of("last of second", |line| one(&line.rounds, figures::growth, 2)),
            Column::of("alone/s", |line| {
                let late = if line.rounds.iter().all(|round| drained(round)) { "" } else { "*" };
                format!("{}{late}", one(&line.rounds, figures::alone, 0))
            }),
            Column::of("of alone", |line| one(&line.rounds, figures::ratio, 2)),
            Column::of("core for core", |line| one(&line.rounds, figures::ratio_by_core, 2)),
            Column::disk("saturate", "sent"),
            Column::cores("saturate"),
        ]
    }

    fn picture(&self, section: &str, cases: &[Case], raw: &Raw) -> Result<String> {
        assert!(PLACES.contains(&section), "a place of this document");
        let panel = |case: &Case| Panel {
            caption: format!("producer, consumer: {}", case.label),
            axes: ["messages received", "mean travel time, ms"],
            lines: lines(case, raw),
        };
        plot::panels(&cases.iter().map(panel).collect::<Vec<_>>())
    }

    fn versions(&self, run: &Run) -> Result<Vec<String>> {
        let mut versions = machine::versions(&run.binary, &[&["java", "--version"]])?;
        versions.extend(machine::libraries(&[
            ("brokers", "artemis-server"),
            ("brokers", "activemq-broker"),
            ("brokers", "joram-mom-core"),
            ("bench", "qpid-jms-client"),
            ("bench", "activemq-client"),
            ("bench-javax", "joram-client-jms"),
        ])?);
        Ok(versions)
    }
}

fn question(case: &Case, phase: &str) -> String {
    let words = case.name.replace('-', " ");
    let destination = destination(case, if phase == "saturate" { phase } else { "alone" });
    format!("{phase} {words} {destination}")
}

/// Each case has its own destination: messages left by one disturb no other.
fn destination(case: &Case, part: &str) -> String {
    format!("{part}.{}", case.name)
}

/// A line for each system: the round with the median rate of its consumer.
fn lines<'a>(case: &Case, raw: &'a Raw) -> Vec<plot::Line<'a>> {
    let middle = |(system, mut rounds): (&'a str, Vec<&'a Sample>)| {
        rounds.retain(|sample| sample.error().is_none());
        rounds.sort_by(|one, other| {
            let [one, other] = [one, other].map(|sample| figures::received(sample));
            one.partial_cmp(&other).unwrap_or(Ordering::Equal)
        });
        Some((system, points(rounds.get(rounds.len() / 2)?)))
    };
    raw.by_system(&case.name).into_iter().filter_map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::figures::tests::sample;
    use super::*;
    use crate::bench::page;

    fn raw(samples: Vec<Sample>) -> Raw {
        Raw { runs: Vec::new(), samples }
    }

    #[test]
    fn line_shows_medians_of_rounds() {
        let case = &Joram.cases()[0];
        let text = page::lines(&Joram, case, &raw(vec![sample(), sample()]));
        assert_eq!(
            text,
            "| plain, plain | dunlin | 500 |  | 1000 | 1.0, 2.0, 3.0, 4.0, 8.0 | 4.00 | 2000 | \
             0.25 | 0.67 | 0.250, 2000 | 1.00 + 0.75 |\n"
        );
    }

    #[test]
    fn failed_round_is_shown_not_counted() {
        let failed = Sample::of_failure("closed").named("dunlin", "queue-plain-plain", 2, "a");
        let text = page::lines(&Joram, &Joram.cases()[0], &raw(vec![sample(), failed]));
        assert!(text.contains("| dunlin | 500 |"), "{text}");
        assert!(text.ends_with("| 1 of 2 rounds failed: closed |\n"), "{text}");
    }

    #[test]
    fn places_have_table_and_picture() {
        let text = page::render(&Joram, &Raw::default());
        for place in PLACES {
            assert!(text.contains(&format!("(joram-{place}.svg)")), "{text}");
            let cases: Vec<Case> =
                Joram.cases().into_iter().filter(|case| case.section == place).collect();
            let svg = Joram.picture(place, &cases, &raw(vec![sample()])).unwrap();
            assert_eq!(svg.matches("producer, consumer: ").count(), 4);
        }
    }

    #[test]
    fn questions_are_of_the_case() {
        let cases = Joram.cases();
        assert_eq!(cases.len(), 12);
        assert_eq!(
            question(&cases[5], "drain"),
            "drain topic transacted plain alone.topic-transacted-plain"
        );
    }
}

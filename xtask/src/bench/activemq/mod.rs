//! The test of the ActiveMQ document: how long it takes to send 1000 messages, by transactions,
//! persistence and the store's policy.

use super::document::{Case, Document, Run};
use super::jms::{self, Client, System, Wanted};
use super::machine;
use super::options::{Number, ROUNDS};
use super::page::{Column, one};
use super::sample::Sample;
use crate::Result;

/// The document's three: no store, `ALWAYS`, and `PERIODIC` with its period.
const STORES: [[&str; 2]; 3] = [["none", "no store"], ["always", "ALWAYS"], ["1000ms", "PERIODIC"]];

/// The place that sets persistence: the producer, or each send.
const SETTINGS: [&str; 2] = ["producer", "send"];

/// The cost of transactions and of the disk.
pub(super) struct ActiveMq;

impl Document for ActiveMq {
    type System = System;

    const NAME: &'static str = "activemq";
    const INTRODUCTION: &'static str = include_str!("introduction.md");
    const SYSTEMS: &'static [&'static str] =
        &["dunlin", "classic-vm", "classic", "classic-amqp", "artemis"];
    const NUMBERS: &'static [Number] = &[
        ROUNDS,
        Number { name: "messages", value: 1_000, quick: 100, what: "Messages in a round" },
        Number { name: "bytes", value: 1_024, quick: 1_024, what: "Bytes of a message" },
    ];
    const FIGURE: &'static str = "ms";
    const LESS_IS_BETTER: bool = true;

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for setting in SETTINGS {
            for [store, name] in STORES {
                for session in ["plain", "transacted"] {
                    for mode in ["non-persistent", "persistent"] {
                        cases.push(Case {
                            name: format!("{setting}-{store}-{session}-{mode}"),
                            label: format!("{name}, {session}, {mode}"),
                            section: setting,
                            setup: store.to_owned(),
                        });
                    }
                }
            }
        }
        cases
    }

    fn title(&self, section: &str) -> &'static str {
        match section {
            "producer" => "Persistence set on the producer",
            _ => "Persistence set on each send",
        }
    }

    fn prepare(&self, run: &Run) -> Result<()> {
        jms::build(run, "brokers,bench")
    }

    fn start(&self, run: &Run, system: &str, setup: &str) -> Result<System> {
        let flags = run.options.flags(&["messages", "bytes"]);
        let wanted = Wanted { name: system, policy: setup, options: Vec::new() };
        let mut running = System::start(run, &wanted, &Client { class: "Sending", flags })?;
        // Broker and client are compiled while they run.
        for case in run.cases.iter().filter(|case| case.setup == setup) {
            self.ask(&mut running, case)?;
        }
        Ok(running)
    }

    fn ask(&self, system: &mut System, case: &Case) -> Result<Sample> {
        let mut sample = Sample::of("send", system.ask(&question(case))?);
        sample.put("take", system.ask("take bench")?);
        Ok(sample)
    }

    fn figure(sample: &Sample) -> Option<f64> {
        Some(sample.number("send", "nanos")? / 1e6)
    }

    fn columns(&self) -> Vec<Column> {
        let millis =
            |name: &'static str| move |sample: &Sample| Some(sample.number("send", name)? / 1e6);
        vec![
            Column::of("until closed, ms", move |line| {
                one(&line.rounds, millis("closed_nanos"), 1)
            }),
            Column::disk("send", "sent"),
            Column::cores("send"),
        ]
    }

    fn versions(&self, run: &Run) -> Result<Vec<String>> {
        let mut versions = machine::versions(&run.binary, &[&["java", "--version"]])?;
        versions.extend(machine::libraries(&[
            ("brokers", "artemis-server"),
            ("brokers", "activemq-broker"),
            ("bench", "qpid-jms-client"),
            ("bench", "activemq-client"),
        ])?);
        Ok(versions)
    }
}

/// `send SETTING SESSION MODE QUEUE`.
fn question(case: &Case) -> String {
    let mode = if case.name.ends_with("non-persistent") { "non-persistent" } else { "persistent" };
    let session = if case.name.contains("-transacted-") { "transacted" } else { "plain" };
    format!("send {} {session} {mode} bench", case.section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activemq_cases_have_a_question_each() {
        let cases = ActiveMq.cases();
        assert_eq!(cases.len(), 24);
        assert_eq!(cases[0].label, "no store, plain, non-persistent");
        assert_eq!(question(&cases[0]), "send producer plain non-persistent bench");
        assert_eq!(cases[19].name, "send-always-transacted-persistent");
        assert_eq!(question(&cases[19]), "send send transacted persistent bench");
    }
}

//! The document: what was measured, how, and the tables.

use serde_json::Value;

use super::sample::Sample;
use super::{Case, PLACES, Raw};
use crate::median::Spread;

const COLUMNS: [&str; 11] = [
    "producer, consumer",
    "system",
    "sent/s",
    "received/s (least to most)",
    "travel, ms, by fifths",
    "last of second",
    "alone/s",
    "of alone",
    "core for core",
    "syncs, bytes a message",
    "cores: broker + client",
];

/// All of it, as Markdown.
pub(super) fn render(raw: &Raw) -> String {
    let mut text = INTRODUCTION.to_owned();
    for run in &raw.runs {
        text.push_str(&run_line(run));
    }
    for place in PLACES {
        text.push_str(&format!("\n## {}\n\n| {} |\n", title(place), COLUMNS.join(" | ")));
        text.push_str(&format!("|---|---|{}\n", "--:|".repeat(COLUMNS.len() - 2)));
        for case in Case::all().into_iter().filter(|case| case.place == place) {
            text.push_str(&lines(case, &raw.samples));
        }
        text.push_str(&format!("\n![{}](joram-{place}.svg)\n", title(place)));
    }
    text
}

/// A case's lines, one a system.
pub(super) fn lines(case: Case, samples: &[Sample]) -> String {
    let name = case.name();
    let own: Vec<&Sample> = samples.iter().filter(|sample| sample.text("case") == name).collect();
    let mut systems: Vec<&str> = Vec::new();
    for sample in &own {
        if !systems.contains(&sample.text("system")) {
            systems.push(sample.text("system"));
        }
    }
    let line = |system: &str| {
        let rounds: Vec<&Sample> =
            own.iter().copied().filter(|sample| sample.text("system") == system).collect();
        format!("| {}, {} | {system} |{}\n", case.producer, case.consumer, cells(&rounds))
    };
    systems.into_iter().map(line).collect()
}

/// Medians over the rounds; a round that failed is no round, and is told.
fn cells(rounds: &[&Sample]) -> String {
    let failed = rounds.iter().filter(|sample| sample.error().is_some()).count();
    let one = |figure: &dyn Fn(&Sample) -> Option<f64>, digits: usize| {
        spread(rounds, figure).map_or("–".to_owned(), |of| format!("{:.digits$}", of.median))
    };
    let pair = |left: &str, right: &str, figure: fn(&Sample, &str) -> Option<f64>, digits| {
        let [left, right] = [left, right].map(|name| one(&|sample| figure(sample, name), digits));
        format!("{left} + {right}")
    };
    let received = spread(rounds, &Sample::received).map_or("–".to_owned(), |of| {
        format!("{:.0} ({:.0} to {:.0})", of.median, of.least, of.greatest)
    });
    let fifth = |place: usize| one(&|sample| sample.fifths()?.get(place).copied(), 1);
    let late = if rounds.iter().all(|sample| sample.drained()) { "" } else { "*" };
    let mut text = format!(
        " {} | {received} | {} | {} | {}{late} | {} | {} | {}, {} | {} |",
        one(&Sample::sent, 0),
        [0, 1, 2, 3, 4].map(fifth).join(", "),
        one(&Sample::growth, 2),
        one(&Sample::alone, 0),
        one(&Sample::ratio, 2),
        one(&Sample::ratio_by_core, 2),
        one(&|sample| sample.each_sent("syncs"), 3),
        one(&|sample| sample.each_sent("disk_bytes"), 0),
        pair("broker_cpu_nanos", "client_cpu_nanos", Sample::cores, 2),
    );
    if failed > 0 {
        text.push_str(&format!(" {failed} of {} rounds failed |", rounds.len()));
    }
    text
}

fn spread(rounds: &[&Sample], figure: &dyn Fn(&Sample) -> Option<f64>) -> Option<Spread> {
    Spread::of(rounds.iter().filter_map(|sample| figure(sample)))
}

fn title(place: &str) -> &'static str {
    match place {
        "queue" => "Queue",
        "topic" => "Topic, subscriber not durable",
        _ => "Topic, durable subscriber",
    }
}

fn run_line(run: &Value) -> String {
    let text = |name: &str| run.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let versions: Vec<&str> = run
        .get("versions")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let number = |name: &str| run.get(name).and_then(Value::as_u64).unwrap_or_default();
    format!(
        "* {}: `{}`; {} rounds of at most {} messages in {} ms, and {} for the consumer alone in \
         half of that. {}. {}.\n",
        text("run"),
        text("command"),
        number("rounds"),
        number("messages"),
        number("millis"),
        number("backlog"),
        text("machine"),
        versions.join(", "),
    )
}

/// What does not change from run to run.
const INTRODUCTION: &str = include_str!("introduction.md");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::joram::sample::tests::sample;

    #[test]
    fn a_line_has_the_medians_of_its_rounds() {
        let case = Case::all()[0];
        let text = lines(case, &[sample(), sample()]);
        assert_eq!(
            text,
            "| plain, plain | dunlin | 1000 | 500 (500 to 500) | 1.0, 2.0, 3.0, 4.0, 8.0 | 4.00 | \
             2000 | 0.25 | 0.67 | 0.250, 2000 | 1.00 + 0.75 |\n"
        );
    }

    #[test]
    fn what_failed_is_shown_and_does_not_count() {
        let failed = Sample::of_failure("closed").named("dunlin", "queue-plain-plain", 2, "a");
        let text = lines(Case::all()[0], &[sample(), failed]);
        assert!(text.contains("| 500 (500 to 500) |"), "{text}");
        assert!(text.ends_with("| 1 of 2 rounds failed |\n"), "{text}");
    }

    #[test]
    fn every_place_has_a_table_and_a_plot() {
        let text = render(&Raw::default());
        for place in PLACES {
            assert!(text.contains(&format!("(joram-{place}.svg)")), "{text}");
        }
    }
}

//! A document: the measurement, its method, and a table for each section, with a line for each case
//! and system.

use serde_json::Value;

use super::document::{Case, Document};
use super::raw::Raw;
use super::sample::Sample;
use crate::median::{Spread, median};

/// One case on one system, as a cell sees it.
pub(super) struct Line<'a> {
    pub(super) case: &'a str,
    system: &'a str,
    pub(super) rounds: Vec<&'a Sample>,
    raw: &'a Raw,
}

impl Line<'_> {
    /// The median of a figure of another case on the same system.
    pub(super) fn middle(
        &self,
        case: &str,
        figure: &dyn Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        let systems = self.raw.by_system(case);
        let (_, rounds) = systems.iter().find(|(system, _)| *system == self.system)?;
        Some(spread(rounds, figure)?.median)
    }
}

/// A column behind the figure: its heading, and the text of its cell for a line.
pub(super) struct Column {
    title: &'static str,
    cell: Box<dyn Fn(&Line<'_>) -> String>,
}

impl Column {
    pub(super) fn of(title: &'static str, cell: impl Fn(&Line<'_>) -> String + 'static) -> Column {
        Column { title, cell: Box::new(cell) }
    }

    /// Processors that the broker and the client kept busy during a phase.
    pub(super) fn cores(phase: &'static str) -> Column {
        Column::of("cores: broker + client", move |line| {
            ["broker_cpu_nanos", "client_cpu_nanos"]
                .map(|name| one(&line.rounds, |sample| sample.cores(phase, name), 2))
                .join(" + ")
        })
    }

    /// Syncs and bytes that went to the disk during a phase, divided by the number named `count`.
    pub(super) fn disk(phase: &'static str, count: &'static str) -> Column {
        Column::of("syncs, bytes a message", move |line| {
            let each = |name: &'static str, digits| {
                one(&line.rounds, |sample| sample.each(phase, name, count), digits)
            };
            format!("{}, {}", each("flushes", 3), each("written_bytes", 0))
        })
    }
}

/// All of it, as Markdown.
pub(super) fn render<D: Document>(document: &D, raw: &Raw) -> String {
    let mut text = D::INTRODUCTION.to_owned();
    raw.runs.iter().for_each(|run| text.push_str(&run_line(run)));
    let all = document.cases();
    for section in distinct(all.iter().map(|case| case.section)) {
        let title = document.title(section);
        let mut titles = vec!["case", "system", D::FIGURE, "Dunlin's of it"];
        titles.extend(document.columns().iter().map(|column| column.title));
        text.push_str(&format!("\n## {title}\n\n| {} |\n", titles.join(" | ")));
        text.push_str(&format!("|---|---|{}\n", "--:|".repeat(titles.len() - 2)));
        for case in all.iter().filter(|case| case.section == section) {
            text.push_str(&lines(document, case, raw));
        }
        text.push_str(&format!("\n![{title}]({}-{section}.svg)\n", D::NAME));
    }
    text
}

/// A case's lines, one a system.
pub(super) fn lines<D: Document>(document: &D, case: &Case, raw: &Raw) -> String {
    let systems = raw.by_system(&case.name);
    let middle = |wanted: &str| {
        let (_, rounds) = systems.iter().find(|(name, _)| *name == wanted)?;
        Some(spread(rounds, &D::figure)?.median)
    };
    let line = |(system, rounds): &(&str, Vec<&Sample>)| {
        let mut cells = vec![case.label.clone(), (*system).to_owned()];
        let figure = spread(rounds, &D::figure);
        cells.push(figure.map_or("–".to_owned(), shown));
        // If all rounds failed, the reason stands instead.
        if rounds.iter().any(|round| round.error().is_none()) {
            // Ours are compared with nothing.
            let ours = if system.starts_with("dunlin") { None } else { middle(D::ours(system)) };
            let other = figure.map_or(0.0, |figure| figure.median);
            cells.push(factor(ours, other, D::LESS_IS_BETTER));
            let line = Line { case: &case.name, system, rounds: rounds.clone(), raw };
            cells.extend(document.columns().iter().map(|column| (column.cell)(&line)));
        }
        format!("| {} |{}\n", cells.join(" | "), failures(rounds))
    };
    systems.iter().map(line).collect()
}

/// A round that failed is no round, and is told.
fn failures(rounds: &[&Sample]) -> String {
    let failed: Vec<&str> = rounds.iter().filter_map(|sample| sample.error()).collect();
    match failed.last() {
        Some(why) => format!(
            " {} of {} rounds failed: {} |",
            failed.len(),
            rounds.len(),
            why.replace('|', "/")
        ),
        None => String::new(),
    }
}

/// The median, and the ends where there are several rounds.
fn shown(figure: Spread) -> String {
    let digits = if figure.median < 100.0 { 1 } else { 0 };
    let Spread { median, least, greatest } = figure;
    if least == greatest {
        return format!("{median:.digits$}");
    }
    format!("{median:.digits$} ({least:.digits$} to {greatest:.digits$})")
}

/// How many times as fast Dunlin is.
fn factor(ours: Option<f64>, other: f64, less_is_better: bool) -> String {
    match ours {
        Some(ours) if ours > 0.0 && other > 0.0 => {
            let factor = if less_is_better { other / ours } else { ours / other };
            format!("{factor:.2}")
        }
        _ => String::new(),
    }
}

/// The median of a figure over the rounds, or a dash.
pub(super) fn one(
    rounds: &[&Sample],
    figure: impl Fn(&Sample) -> Option<f64>,
    digits: usize,
) -> String {
    spread(rounds, &figure).map_or("–".to_owned(), |of| format!("{:.digits$}", of.median))
}

pub(super) fn spread(
    rounds: &[&Sample],
    figure: &dyn Fn(&Sample) -> Option<f64>,
) -> Option<Spread> {
    Spread::of(rounds.iter().filter_map(|sample| figure(sample)))
}

/// A case's label, and a value for each system that has one.
pub(super) type Group = (String, Vec<(String, f64)>);

/// The medians of a figure, by case and system.
pub(super) fn middles(
    cases: &[Case],
    raw: &Raw,
    figure: &dyn Fn(&Sample) -> Option<f64>,
) -> Vec<Group> {
    let middle = |rounds: &[&Sample]| median(rounds.iter().filter_map(|one| figure(one)).collect());
    let of = |case: &Case| {
        let systems = raw.by_system(&case.name);
        let values = systems
            .iter()
            .filter_map(|(system, rounds)| Some(((*system).to_owned(), middle(rounds)?)));
        (case.label.clone(), values.collect())
    };
    cases.iter().map(of).collect()
}

/// Each once, in the order in which they come.
pub(super) fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

fn run_line(run: &Value) -> String {
    let text = |name: &str| run.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let versions = run.get("versions").and_then(Value::as_array);
    let versions: Vec<&str> =
        versions.into_iter().flatten().filter_map(|version| version.as_str()).collect();
    format!(
        "* {}: `{}`; {}. {}. {}.\n",
        text("run"),
        text("command"),
        text("numbers"),
        text("machine"),
        versions.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_says_how_much_faster() {
        assert_eq!(factor(Some(100.0), 50.0, false), "2.00");
        assert_eq!(factor(Some(100.0), 50.0, true), "0.50");
        assert_eq!(factor(None, 50.0, false), "");
    }

    #[test]
    fn spread_shows_ends_of_several_rounds() {
        let of = |values: &[f64]| shown(Spread::of(values.iter().copied()).unwrap());
        assert_eq!(of(&[2.0]), "2.0");
        assert_eq!(of(&[200.0, 300.0, 250.0]), "250 (200 to 300)");
    }

    #[test]
    fn failures_show_the_last_reason() {
        let (well, ill) = (Sample::default(), Sample::of_failure("a|b"));
        assert_eq!(failures(&[&well, &ill]), " 1 of 2 rounds failed: a/b |");
        assert_eq!(failures(&[&well]), "");
    }
}

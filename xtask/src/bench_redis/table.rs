//! The results as a table: a line for each case and command, the servers side by side.

use super::{Case, Figure};
use crate::contender::Contender;
use crate::median::median;

/// Markdown.
pub(super) fn render(cases: &[Case], contenders: &[Contender], figures: &[Figure]) -> String {
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
    let mut text =
        format!("requests/s (ours: syncs for each)\n\n| | {} |\n|---|", names.join(" | "));
    text.push_str(&"--:|".repeat(names.len()));
    for (number, case) in cases.iter().enumerate() {
        for verb in verbs(figures, number) {
            text.push_str(&format!("\n| {verb}, {} bytes, {} |", case.bytes, case.manner()));
            for place in 0..names.len() {
                let own = |figure: &&Figure| {
                    (figure.case, figure.verb, figure.contender) == (number, verb, place)
                };
                text.push_str(&format!(" {} |", cell(figures.iter().filter(own))));
            }
        }
    }
    text.push('\n');
    text
}

/// The commands of a case, in the order in which they came.
fn verbs(figures: &[Figure], case: usize) -> Vec<&'static str> {
    let mut found = Vec::new();
    for figure in figures.iter().filter(|figure| figure.case == case) {
        if !found.contains(&figure.verb) {
            found.push(figure.verb);
        }
    }
    found
}

fn cell<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let (mut rates, mut syncs) = (Vec::new(), Vec::new());
    for figure in figures {
        let Some(rate) = figure.rate else { return "failed".to_owned() };
        rates.push(rate);
        syncs.extend(figure.syncs);
    }
    match (median(rates), median(syncs)) {
        (Some(rate), Some(syncs)) => format!("{rate:.0} ({syncs:.4})"),
        (Some(rate), None) => format!("{rate:.0}"),
        (None, _) => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rate: Option<f64>) -> Figure {
        Figure { case: 0, verb: "LPUSH", contender: 0, rate, syncs: Some(0.25) }
    }

    #[test]
    fn cell_shows_median_or_failure() {
        let rounds = [3.0, 100.0, 7.0].map(|rate| figure(Some(rate)));
        assert_eq!(cell(rounds.iter()), "7 (0.2500)");
        assert_eq!(cell([figure(Some(1.0)), figure(None)].iter()), "failed");
        assert_eq!(cell([].iter()), "–");
    }
}

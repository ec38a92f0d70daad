//! Results as tables: a line for each measurement, the brokers side by side.

use super::row::Row;

/// A benchmark's heading, and the part of a result that goes into a cell.
struct Kind {
    bench: &'static str,
    heading: &'static str,
    cell: fn(&Row) -> Option<String>,
}

const KINDS: [Kind; 3] = [
    Kind {
        bench: "matrix",
        heading: "ms until all is sent / received (ours: syncs for each message)",
        cell: matrix,
    },
    Kind {
        bench: "travel",
        heading: "messages/s received (p50 and p99 of their travel in ms)",
        cell: travel,
    },
    Kind {
        bench: "commits",
        heading: "commits/s (p50 and p99 in ms; ours: syncs for each commit)",
        cell: commits,
    },
];

/// Markdown, a table a benchmark.
pub(super) fn render(rows: &[Row]) -> String {
    let mut text = String::new();
    for kind in &KINDS {
        let own: Vec<&Row> =
            rows.iter().filter(|row| row.text("bench") == Some(kind.bench)).collect();
        if !own.is_empty() {
            text.push_str(&section(kind, &own));
        }
    }
    text
}

fn section(kind: &Kind, rows: &[&Row]) -> String {
    let brokers = distinct(rows.iter().filter_map(|row| row.text("broker").map(str::to_owned)));
    let mut text = format!("{}\n\n| | {} |\n|---|", kind.heading, brokers.join(" | "));
    text.push_str(&"--:|".repeat(brokers.len()));
    for what in distinct(rows.iter().map(|row| what(row))) {
        text.push_str(&format!("\n| {what} |"));
        for broker in &brokers {
            let found = rows
                .iter()
                .find(|row| self::what(row) == what && row.text("broker") == Some(broker.as_str()));
            text.push_str(&format!(" {} |", found.map_or("–".to_owned(), |row| cell(kind, row))));
        }
    }
    text.push_str("\n\n");
    text
}

fn cell(kind: &Kind, row: &Row) -> String {
    if row.failed() {
        return "failed".to_owned();
    }
    (kind.cell)(row).unwrap_or_else(|| "incomplete".to_owned())
}

/// The first cell of a line of the table: the settings of its measurement.
fn what(row: &Row) -> String {
    let sessions = row.text("sessions").map(|sessions| format!("{sessions} sessions"));
    let mode = match row.text("persistent") {
        Some("true") => Some("persistent".to_owned()),
        Some(_) => Some("non-persistent".to_owned()),
        None => None,
    };
    let words = [row.text("policy"), row.text("cell")].into_iter().flatten().map(str::to_owned);
    words.chain(mode).chain(sessions).collect::<Vec<_>>().join(", ")
}

fn matrix(row: &Row) -> Option<String> {
    let rounds = row.number("rounds")? + row.number("warm_ups")?;
    let syncs = syncs(row, rounds * row.number("messages")?);
    Some(format!("{:.0} / {:.0}{syncs}", row.number("send_ms")?, row.number("receive_ms")?))
}

fn travel(row: &Row) -> Option<String> {
    let rate = row.number("per_second")?;
    Some(format!("{rate:.0} ({})", latencies(row, "travel_")?))
}

fn commits(row: &Row) -> Option<String> {
    let rate = row.number("per_second")?;
    let syncs = syncs(row, row.number("commits_with_warm_up")?);
    Some(format!("{rate:.0} ({}){syncs}", latencies(row, "")?))
}

fn latencies(row: &Row, prefix: &str) -> Option<String> {
    let p50 = row.number(&format!("{prefix}p50_ms"))?;
    let p99 = row.number(&format!("{prefix}p99_ms"))?;
    Some(format!("{p50:.1}, {p99:.1}"))
}

/// None at all is to be seen as such, however many messages there were.
fn syncs(row: &Row, of: f64) -> String {
    match row.number("syncs") {
        Some(0.0) => "; 0".to_owned(),
        Some(count) => format!("; {:.4}", count / of.max(1.0)),
        None => String::new(),
    }
}

/// Each once, in the order in which they came.
fn distinct(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: &str) -> Row {
        Row::read(json).unwrap()
    }

    #[test]
    fn brokers_stand_side_by_side() {
        let ours =
            row("{\"bench\":\"commits\",\"broker\":\"dunlin\",\"sessions\":2,\"per_second\":99.6,\
             \"commits_with_warm_up\":200,\"p50_ms\":1.04,\"p99_ms\":3.0,\"syncs\":50}");
        let theirs = row(
            "{\"bench\":\"commits\",\"broker\":\"artemis\",\"sessions\":2,\"per_second\":50.0,\
             \"commits_with_warm_up\":90,\"p50_ms\":2.0,\"p99_ms\":4.0}",
        );
        let rows = [ours.with("policy", "always"), theirs.with("policy", "always")];
        let text = render(&rows);
        let line = "| always, 2 sessions | 100 (1.0, 3.0); 0.2500 | 50 (2.0, 4.0) |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("| | dunlin | artemis |"), "{text}");
    }

    #[test]
    fn zero_syncs_differ_from_few() {
        let none = row("{\"bench\":\"matrix\",\"syncs\":0}");
        let few = row("{\"bench\":\"matrix\",\"syncs\":1}");
        assert_eq!(syncs(&none, 1e6), "; 0");
        assert_eq!(syncs(&few, 1e6), "; 0.0000");
        assert_eq!(syncs(&row("{\"bench\":\"matrix\"}"), 1.0), "");
    }

    #[test]
    fn failed_row_is_shown() {
        let failed = row("{\"bench\":\"travel\",\"broker\":\"dunlin\",\"error\":\"closed\"}");
        assert!(render(&[failed]).contains("| failed |"));
    }
}

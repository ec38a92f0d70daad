//! One result: a flat object of JSON on one line, as the clients print it.

use std::fmt;

/// One measurement of one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row(String);

impl Row {
    /// The line of a client's output that is a result.
    pub(super) fn read(output: &str) -> Option<Row> {
        let line = output.lines().rev().find(|line| line.starts_with("{\"bench\":"))?;
        line.ends_with('}').then(|| Row(line.to_owned()))
    }

    /// A client that printed none.
    pub(super) fn of_failure(class: &str, broker: &str, why: &str) -> Row {
        Row(format!("{{\"bench\":\"{}\"}}", class.to_lowercase()))
            .with("broker", broker)
            .with("error", if why.is_empty() { "no result, or none in time" } else { why })
    }

    /// The same with one more word.
    pub(super) fn with(self, name: &str, value: &str) -> Row {
        let clean = |c: char| if c.is_control() || "\"\\".contains(c) { ' ' } else { c };
        let text: String = value.chars().map(clean).collect();
        self.with_field(name, &format!("\"{text}\""))
    }

    /// The same with one more number.
    pub(super) fn with_number(self, name: &str, value: u64) -> Row {
        self.with_field(name, &value.to_string())
    }

    /// The client said that it failed, or nothing.
    pub(super) fn failed(&self) -> bool {
        self.text("error").is_some()
    }

    /// The value behind `name`.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.0.split_once(&format!("\"{name}\":"))?;
        match rest.strip_prefix('"') {
            Some(word) => word.split('"').next(),
            None => rest.split([',', '}']).next(),
        }
    }

    /// The number behind `name`.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }

    fn with_field(self, name: &str, json: &str) -> Row {
        let fields = self.0.trim_end_matches('}');
        Row(format!("{fields},\"{name}\":{json}}}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_read_among_others() {
        let row = Row::read("a warning\n{\"bench\":\"travel\",\"per_second\":9.500}\n").unwrap();
        let row = row.with("policy", "25ms").with_number("syncs", 3);
        assert_eq!(row.text("bench"), Some("travel"));
        assert_eq!(row.number("per_second"), Some(9.5));
        assert_eq!(row.text("policy"), Some("25ms"));
        assert_eq!(row.number("syncs"), Some(3.0));
        assert!(!row.failed());
    }

    #[test]
    fn line_cut_short_is_none() {
        assert_eq!(Row::read("{\"bench\":\"travel\",\"per_sec"), None);
    }

    #[test]
    fn failure_stays_one_line() {
        let row = Row::of_failure("Matrix", "dunlin", "say \"why\"\nat once}");
        assert!(row.failed());
        assert_eq!(row.text("error"), Some("say  why  at once}"));
        assert_eq!(row.to_string().lines().count(), 1);
    }
}

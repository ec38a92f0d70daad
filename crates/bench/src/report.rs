//! The results of a benchmark over AMQP: tables, the closing lines, and whether to believe them.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::closing::Closing;
use crate::error::BenchError;
use crate::table::Table;

/// The figures of one run. They are worth nothing if [`Report::verdict`] is an error.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Which benchmark, and how large.
    pub(crate) title: String,
    /// The measured broker.
    pub(crate) broker: String,
    /// The options of the run, for programs.
    pub(crate) options: Value,
    pub(crate) sections: Vec<Section>,
    pub(crate) closing: Closing,
    pub(crate) cancelled: bool,
    /// Faults and refusals of the broker, a sentence each.
    pub(crate) problems: Vec<String>,
}

/// A table, with its heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its name in JSON.
    pub(crate) key: &'static str,
    /// The text above it.
    pub(crate) heading: String,
    pub(crate) table: Table,
}

impl Report {
    /// Checks that the figures can be trusted: the broker did all that was asked, and did it right.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] with everything that was not as it should be, and
    /// [`BenchError::Cancelled`] if only the end is missing.
    pub fn verdict(&self) -> Result<(), BenchError> {
        if !self.problems.is_empty() {
            return Err(BenchError::Wrong(self.problems.clone()));
        }
        if self.cancelled { Err(BenchError::Cancelled) } else { Ok(()) }
    }

    /// The whole report as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut report = Map::new();
        report.insert("broker".to_owned(), json!(self.broker));
        report.insert("options".to_owned(), self.options.clone());
        for section in &self.sections {
            report.insert(section.key.to_owned(), section.table.to_value());
        }
        report.insert("closing".to_owned(), self.closing.to_value());
        report.insert("cancelled".to_owned(), json!(self.cancelled));
        report.insert("problems".to_owned(), json!(self.problems));
        report.insert("ok".to_owned(), json!(self.verdict().is_ok()));
        format!("{:#}", Value::Object(report))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.title, self.broker)?;
        for section in &self.sections {
            writeln!(f, "\n{}\n{}", section.heading, section.table.to_string().trim_end())?;
        }
        write!(f, "\n{}\n", self.closing)?;
        for problem in &self.problems {
            writeln!(f, "WRONG  {problem}")?;
        }
        match (self.problems.is_empty(), self.cancelled) {
            (true, false) => write!(f, "ok: every confirmed message came once, and nothing else"),
            (true, true) => write!(f, "cancelled: the end is missing, nothing was wrong so far"),
            (false, false) => write!(f, "not ok: do not trust these figures"),
            (false, true) => write!(f, "not ok, and cancelled: do not trust these figures"),
        }
    }
}

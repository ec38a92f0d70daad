//! One round of a case on one system: the answers, as they are kept.

use serde_json::{Map, Value, json};

use super::asked::Answer;

/// The answers by the phases in which they were given, or why there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample(Map<String, Value>);

impl From<Value> for Sample {
    fn from(value: Value) -> Sample {
        Sample(value.as_object().cloned().unwrap_or_default())
    }
}

impl Sample {
    pub(super) fn of_failure(why: &str) -> Sample {
        let mut sample = Sample::default();
        sample.0.insert("error".to_owned(), json!(why));
        sample
    }

    /// Of a case that has one phase.
    pub(super) fn of(phase: &str, answer: Answer) -> Sample {
        let mut sample = Sample::default();
        sample.put(phase, answer);
        sample
    }

    pub(super) fn named(mut self, system: &str, case: &str, round: u64, run: &str) -> Sample {
        let names = [("system", json!(system)), ("case", json!(case)), ("round", json!(round))];
        for (name, value) in names.into_iter().chain([("run", json!(run))]) {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    pub(super) fn put(&mut self, phase: &str, answer: Answer) {
        self.0.insert(phase.to_owned(), Value::Object(answer));
    }

    pub(super) fn json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.0.get("error")?.as_str()
    }

    /// Of the same system and case.
    pub(super) fn same_line(&self, other: &Sample) -> bool {
        ["system", "case"].iter().all(|name| self.text(name) == other.text(name))
    }

    pub(super) fn number(&self, phase: &str, name: &str) -> Option<f64> {
        self.0.get(phase)?.get(name)?.as_f64()
    }

    /// So many a second of the phase.
    pub(super) fn rate(&self, phase: &str, what: &str) -> Option<f64> {
        Some(self.number(phase, what)? / self.number(phase, "nanos")?.max(1.0) * 1e9)
    }

    /// The number `what`, divided by the number `count`.
    pub(super) fn each(&self, phase: &str, what: &str, count: &str) -> Option<f64> {
        Some(self.number(phase, what)? / self.number(phase, count)?.max(1.0))
    }

    /// Processors that were kept busy during the phase.
    pub(super) fn cores(&self, phase: &str, name: &str) -> Option<f64> {
        Some(self.number(phase, name)? / self.number(phase, "nanos")?)
    }

    pub(super) fn list(&self, phase: &str, name: &str) -> Vec<f64> {
        let list = self.0.get(phase).and_then(|phase| phase.get(name)?.as_array());
        list.map(|list| list.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_phase() {
        let sample = Sample::from(json!({
            "send": {"sent": 500, "nanos": 5e8, "cpu": 1e9, "flushes": 250, "all": [1, 2]},
        }));
        assert_eq!(sample.rate("send", "sent"), Some(1000.0));
        assert_eq!(sample.each("send", "flushes", "sent"), Some(0.5));
        assert_eq!(sample.cores("send", "cpu"), Some(2.0));
        assert_eq!(sample.list("send", "all"), [1.0, 2.0]);
        assert_eq!(sample.rate("take", "sent"), None);
        assert!(sample.list("take", "all").is_empty());
    }
}

//! One round of a case on one system, and the figures that come of it.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::bench::asked::Answer;
use crate::median::median;

/// The answers to `fill`, `drain` and `saturate`, as they are kept.
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

    pub(super) fn named(mut self, system: &str, case: &str, round: u32, run: &str) -> Sample {
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

    /// Messages sent a second.
    pub(super) fn sent(&self) -> Option<f64> {
        self.rate("saturate", "sent")
    }

    /// Messages received a second while the producer sends.
    pub(super) fn received(&self) -> Option<f64> {
        self.rate("saturate", "received")
    }

    /// Messages received a second where no producer runs.
    pub(super) fn alone(&self) -> Option<f64> {
        self.rate("drain", "received")
    }

    /// The consumer took all that was there for it alone, in time.
    pub(super) fn drained(&self) -> bool {
        self.number("drain", "received") == self.number("fill", "sent")
    }

    /// Received under saturation of what is received alone.
    pub(super) fn ratio(&self) -> Option<f64> {
        Some(self.received()? / self.alone()?)
    }

    /// The same for a second of processor time spent on receiving, in broker and client. Under
    /// saturation that is what is left without the sends, at what a send costs in `fill`.
    pub(super) fn ratio_by_core(&self) -> Option<f64> {
        let each_sent = self.cpu("fill")? / self.number("fill", "sent")?;
        let receiving = self.cpu("saturate")? - each_sent * self.number("saturate", "sent")?;
        let saturated = self.number("saturate", "received")? / receiving;
        let alone = self.number("drain", "received")? / self.cpu("drain")?;
        (receiving > 0.0 && alone.is_finite()).then_some(saturated / alone)
    }

    /// Per message that was sent under saturation.
    pub(super) fn each_sent(&self, name: &str) -> Option<f64> {
        Some(self.number("saturate", name)? / self.number("saturate", "sent")?.max(1.0))
    }

    /// Processors that a process kept busy under saturation.
    pub(super) fn cores(&self, name: &str) -> Option<f64> {
        Some(self.number("saturate", name)? / self.number("saturate", "nanos")?)
    }

    /// Numbers of messages, and mean travel times in ms up to there.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        let each = self.number("saturate", "point_messages").unwrap_or(1.0);
        let number = |index: usize| each * (index + 1) as f64;
        self.travels().into_iter().enumerate().map(|(at, ms)| (number(at), ms)).collect()
    }

    /// Medians of the travel times by fifths of the run, in ms.
    pub(super) fn fifths(&self) -> Option<[f64; 5]> {
        let travels = self.travels();
        let mut fifths = [0.0; 5];
        for (fifth, slot) in fifths.iter_mut().enumerate() {
            let ends = [fifth, fifth + 1].map(|end| end * travels.len() / 5);
            *slot = median(travels.get(ends[0]..ends[1])?.to_vec())?;
        }
        Some(fifths)
    }

    /// Travel time of the last fifth over that of the second, when what begins has begun.
    pub(super) fn growth(&self) -> Option<f64> {
        let [_, second, _, _, last] = self.fifths()?;
        Some(last / second)
    }

    fn travels(&self) -> Vec<f64> {
        let list = self.0.get("saturate").and_then(|phase| phase.get("travel_ms")?.as_array());
        list.map(|list| list.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
    }

    fn cpu(&self, phase: &str) -> Option<f64> {
        Some(self.number(phase, "broker_cpu_nanos")? + self.number(phase, "client_cpu_nanos")?)
    }

    fn rate(&self, phase: &str, what: &str) -> Option<f64> {
        Some(self.number(phase, what)? / self.number(phase, "nanos")?.max(1.0) * 1e9)
    }

    fn number(&self, phase: &str, name: &str) -> Option<f64> {
        self.0.get(phase)?.get(name)?.as_f64()
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.text("system"), self.text("case"))?;
        if let Some(error) = self.error() {
            return write!(f, "failed, {error}");
        }
        let rates = [self.sent(), self.received(), self.alone()].map(Option::unwrap_or_default);
        let [sent, received, alone] = rates;
        write!(f, "{sent:.0} sent/s, {received:.0} received/s, alone {alone:.0}/s, travel ms")?;
        match self.fifths() {
            Some(fifths) => fifths.iter().try_for_each(|ms| write!(f, " {ms:.1}")),
            None => f.write_str(" of too few messages"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// 1000 sent and 500 received in a second, 2000 a second alone.
    pub(crate) fn sample() -> Sample {
        Sample::from(json!({
            "system": "dunlin", "case": "queue-plain-plain", "round": 1, "run": "a",
            "fill": {"sent": 100, "nanos": 5e7,
                "broker_cpu_nanos": 4e7, "client_cpu_nanos": 6e7},
            "drain": {"received": 100, "nanos": 5e7,
                "broker_cpu_nanos": 5e7, "client_cpu_nanos": 5e7},
            "saturate": {"sent": 1000, "received": 500, "nanos": 1e9,
                "broker_cpu_nanos": 1e9, "client_cpu_nanos": 7.5e8, "syncs": 250,
                "disk_bytes": 2e6, "point_messages": 100, "travel_ms": [1, 2, 3, 4, 8]},
        }))
    }

    #[test]
    fn rates_and_ratios() {
        let sample = sample();
        assert_eq!(sample.sent(), Some(1000.0));
        assert_eq!(sample.received(), Some(500.0));
        assert_eq!(sample.alone(), Some(2000.0));
        assert_eq!(sample.ratio(), Some(0.25));
        // 1.75 s in all, 1 ms for each sent: 0.75 s for 500, and alone 1 ms each.
        let by_core = sample.ratio_by_core().unwrap();
        assert!((by_core - 500.0 / 0.75 / 1000.0).abs() < 1e-9, "{by_core}");
        assert_eq!(sample.each_sent("syncs"), Some(0.25));
        assert_eq!(sample.cores("client_cpu_nanos"), Some(0.75));
        assert!(sample.drained());
    }

    #[test]
    fn growth_is_of_the_last_fifth_over_the_second() {
        assert_eq!(sample().fifths(), Some([1.0, 2.0, 3.0, 4.0, 8.0]));
        assert_eq!(sample().growth(), Some(4.0));
        assert_eq!(sample().points()[1], (200.0, 2.0));
        assert_eq!(Sample::of_failure("closed").growth(), None);
    }
}

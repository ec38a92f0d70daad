//! The rounds beside a document as JSON, into which repeated lines are put.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::sample::Sample;
use crate::Result;

/// The rounds, and the runs in which they were measured.
#[derive(Default)]
pub(super) struct Raw {
    /// Each run's time, machine and command.
    pub(super) runs: Vec<Value>,
    pub(super) samples: Vec<Sample>,
}

impl Raw {
    /// Reads the results of earlier runs, if there were any.
    ///
    /// # Errors
    /// When the file is there and [`Raw::render`] did not write it.
    pub(super) fn read(file: &Path) -> Result<Raw> {
        if !file.exists() {
            return Ok(Raw::default());
        }
        let value: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        let list = |name: &str| value.get(name).and_then(Value::as_array).cloned();
        let none = || format!("{} has no runs", file.display());
        let (runs, samples) = list("runs").zip(list("samples")).ok_or_else(none)?;
        Ok(Raw { runs, samples: samples.into_iter().map(Sample::from).collect() })
    }

    /// Lines that were measured anew replace those of before. The systems stay in their order.
    pub(super) fn put(&mut self, fresh: Vec<Sample>, systems: &[&str]) {
        self.samples.retain(|old| fresh.iter().all(|new| !new.same_line(old)));
        self.samples.extend(fresh);
        let place =
            |sample: &Sample| systems.iter().position(|name| *name == sample.text("system"));
        self.samples.sort_by_key(place);
        let samples = &self.samples;
        self.runs.retain(|run| samples.iter().any(|sample| sample.text("run") == run["run"]));
    }

    /// A line a run or sample, so that differences can be read.
    pub(super) fn render(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(Value::to_string).collect();
        let samples: Vec<String> = self.samples.iter().map(Sample::json).collect();
        format!(
            "{{\"runs\":[\n{}\n],\"samples\":[\n{}\n]}}\n",
            runs.join(",\n"),
            samples.join(",\n")
        )
    }

    /// The rounds of a case, by system, in the order in which the systems came.
    pub(super) fn by_system(&self, case: &str) -> Vec<(&str, Vec<&Sample>)> {
        let mut systems: Vec<(&str, Vec<&Sample>)> = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.text("case") == case) {
            let system = sample.text("system");
            match systems.iter_mut().find(|(name, _)| *name == system) {
                Some((_, rounds)) => rounds.push(sample),
                None => systems.push((system, vec![sample])),
            }
        }
        systems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(system: &str, run: &str) -> Sample {
        Sample::default().named(system, "queue", 1, run)
    }

    #[test]
    fn repeated_sample_replaces_the_old_one() {
        let mut raw = Raw { runs: vec![json!({"run": "a"})], samples: Vec::new() };
        let systems = ["dunlin", "joram"];
        raw.put(vec![sample("dunlin", "a"), sample("joram", "a")], &systems);
        raw.runs.push(json!({"run": "b"}));
        raw.put(vec![sample("dunlin", "b")], &systems);
        let left: Vec<&str> = raw.samples.iter().map(|sample| sample.text("run")).collect();
        assert_eq!(left, ["b", "a"]);
        raw.runs.push(json!({"run": "c"}));
        raw.put(vec![sample("joram", "c")], &systems);
        assert_eq!(raw.runs, [json!({"run": "b"}), json!({"run": "c"})]);
    }

    #[test]
    fn written_values_are_read_back() {
        let file = std::env::temp_dir().join(format!("raw-{}.json", std::process::id()));
        let raw = Raw { runs: vec![json!({"run": "a"})], samples: vec![sample("joram", "a")] };
        fs::write(&file, raw.render()).unwrap();
        let read = Raw::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(read.render(), raw.render());
    }

    #[test]
    fn rounds_are_gathered_by_system() {
        let raw = Raw {
            runs: Vec::new(),
            samples: vec![sample("dunlin", "a"), sample("joram", "a"), sample("dunlin", "a")],
        };
        let found = raw.by_system("queue");
        let counts: Vec<_> = found.iter().map(|(name, rounds)| (*name, rounds.len())).collect();
        assert_eq!(counts, [("dunlin", 2), ("joram", 1)]);
    }
}

//! What `cargo xtask bench` may be asked.

use std::path::PathBuf;

use crate::Result;
use crate::flags::{list, pairs};
use crate::house::root;

pub(crate) const HELP: &str = "\
cargo xtask bench joram [options]   the JORAM document: travel time while a producer saturates
    --systems LIST    dunlin,dunlin-target-age,joram,classic,artemis, or some
    --only LIST       cases, such as queue-transacted-plain: PLACE-PRODUCER-CONSUMER, where
                      PLACE is queue, topic or durable; their lines replace those of before
    --rounds N        of which the median counts (3)
    --messages N      that a producer sends at most in a round (10000)
    --backlog N       for the consumer alone (2000)
    --millis N        in which a producer is done at the latest (1000); half of it for the
                      backlog, and for the consumer alone
    --binary PATH     dunlin (default: the release build)
    --out FOLDER      for the document and what is behind it (docs/benchmarks)
";

/// The choices.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) systems: Vec<String>,
    /// Nothing: all cases.
    pub(super) only: Vec<String>,
    pub(super) rounds: u32,
    pub(super) messages: u64,
    pub(super) backlog: u64,
    pub(super) millis: u64,
    pub(super) binary: Option<PathBuf>,
    pub(super) out: PathBuf,
    /// As they were given, to be shown.
    pub(super) words: String,
}

impl Options {
    /// Reads `--name value` pairs.
    pub(super) fn read(words: &[&str]) -> Result<Options> {
        let mut options = Options {
            systems: list("dunlin,dunlin-target-age,joram,classic,artemis"),
            only: Vec::new(),
            rounds: 3,
            messages: 10_000,
            backlog: 2_000,
            millis: 1_000,
            binary: None,
            out: root().join("docs/benchmarks"),
            words: String::new(),
        };
        for (name, value) in pairs(words)? {
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--systems" => self.systems = list(value),
            "--only" => self.only = list(value),
            "--rounds" => self.rounds = value.parse()?,
            "--messages" => self.messages = value.parse()?,
            "--backlog" => self.backlog = value.parse()?,
            "--millis" => self.millis = value.parse()?,
            "--binary" => self.binary = Some(value.into()),
            "--out" => self.out = value.into(),
            _ => return Err(format!("{name}? See cargo xtask --help").into()),
        }
        // Where things are is this machine's matter.
        if !["--binary", "--out"].contains(&name) {
            self.words.push_str(&format!(" {name} {value}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_command_without_this_machines_paths() {
        let words = ["--rounds", "5", "--binary", "/a/b", "--only", "queue-plain-plain"];
        let options = Options::read(&words).unwrap();
        assert_eq!(options.words, " --rounds 5 --only queue-plain-plain");
        assert_eq!(options.only, ["queue-plain-plain"]);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(Options::read(&["--speed", "9"]).is_err());
        assert!(Options::read(&["--rounds"]).is_err());
        assert!(Options::read(&["--rounds", "many"]).is_err());
    }
}

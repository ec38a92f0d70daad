//! Options of `cargo xtask bench-jms`.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::flags::{list, pairs};

pub(crate) const HELP: &str = "\
cargo xtask bench-jms [options]     what a JMS client sees of dunlin, artemis and classic
    --brokers LIST    dunlin,artemis,classic,classic-openwire (its own client), or some
    --policies LIST   none,always,25ms: nothing kept, flushed before confirming, at least so often
    --only LIST       matrix,travel,commits, or some
    --sessions LIST   of commits (1,2,10,20,100,200)
    --connections N   shared by these sessions (0: one each)
    --messages N      of each round of the matrix (1000)
    --bytes N         of each message (1024)
    --rounds N        of the matrix, whose median counts (5)
    --seconds N       of travel and commits (5)
    --warm-up-seconds N   before each (3)
    --limit-seconds N     for each client, which is ended then (300)
    --binary PATH     dunlin (default: the release build)
";

/// The parts of the benchmark and the choices within.
#[derive(Debug)]
pub(crate) struct Options {
    pub(super) brokers: Vec<String>,
    pub(super) policies: Vec<String>,
    pub(super) only: Vec<String>,
    pub(super) sessions: Vec<String>,
    /// Passed on to commits only.
    pub(super) connections: Vec<String>,
    /// Passed on to the matrix.
    pub(super) matrix: Vec<String>,
    /// Passed on to the measurements that run for a time.
    pub(super) timed: Vec<String>,
    /// A client that takes longer is ended.
    pub(super) limit: Duration,
    pub(super) binary: Option<PathBuf>,
}

impl Options {
    /// Reads `--name value` pairs.
    pub(crate) fn read(words: &[&str]) -> Result<Options> {
        let mut options = Options::default();
        for (name, value) in pairs(words)? {
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let passed = [name.to_owned(), value.to_owned()];
        match name {
            "--brokers" => self.brokers = list(value),
            "--policies" => self.policies = list(value),
            "--only" => self.only = list(value),
            "--sessions" => self.sessions = list(value),
            "--messages" | "--rounds" => self.matrix.extend(passed),
            "--seconds" => self.timed.extend(passed),
            "--connections" => self.connections = passed.to_vec(),
            "--bytes" | "--warm-up-seconds" => {
                self.matrix.extend(passed.clone());
                self.timed.extend(passed);
            }
            "--limit-seconds" => self.limit = Duration::from_secs(value.parse()?),
            "--binary" => self.binary = Some(value.into()),
            _ => return Err(format!("{name}? See cargo xtask --help").into()),
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            brokers: list("dunlin,artemis,classic,classic-openwire"),
            policies: list("none,always,25ms"),
            only: list("matrix,travel,commits"),
            sessions: list("1,2,10,20,100,200"),
            connections: Vec::new(),
            matrix: Vec::new(),
            timed: Vec::new(),
            limit: Duration::from_secs(300),
            binary: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_pass_on_to_clients() {
        let options = Options::read(&["--rounds", "2", "--bytes", "64"]).unwrap();
        assert_eq!(options.matrix, ["--rounds", "2", "--bytes", "64"]);
        assert_eq!(options.timed, ["--bytes", "64"]);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(Options::read(&["--speed", "9"]).is_err());
        assert!(Options::read(&["--rounds"]).is_err());
    }
}

//! Options of `cargo xtask bench-jms`.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::seconds;

/// The parts of the benchmark and the choices within.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// dunlin, artemis, classic, classic-openwire (its own client), or some
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = BROKERS)]
    pub(super) brokers: Vec<String>,
    /// Nothing kept, flushed before confirming, at least so often
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none,always,25ms")]
    pub(super) policies: Vec<String>,
    /// These parts only
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "matrix,travel,commits"
    )]
    pub(super) only: Vec<String>,
    /// Sessions of commits
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,10,20,100,200")]
    pub(super) sessions: Vec<String>,
    /// Connections that these sessions share [default: 0, one each]
    #[arg(long, value_name = "N")]
    connections: Option<u64>,
    /// Messages of each round of the matrix [default: 1000]
    #[arg(long, value_name = "N")]
    messages: Option<u64>,
    /// Bytes of each message [default: 1024]
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
    /// Rounds of the matrix, whose median counts [default: 5]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Seconds of travel and commits [default: 5]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Seconds before each [default: 3]
    #[arg(long, value_name = "N")]
    warm_up_seconds: Option<u64>,
    /// Seconds for each client, which is ended then
    #[arg(long = "limit-seconds", value_name = "N", default_value = "300", value_parser = seconds)]
    pub(super) limit: Duration,
    /// dunlin [default: the release build]
    #[arg(long, value_name = "PATH")]
    pub(super) binary: Option<PathBuf>,
}

impl Options {
    /// Passed on to the matrix.
    pub(super) fn matrix(&self) -> Vec<String> {
        let own = [("--messages", self.messages), ("--rounds", self.rounds)];
        passed(&[&own[..], &self.common()].concat())
    }

    /// Passed on to the measurements that run for a time.
    pub(super) fn timed(&self) -> Vec<String> {
        passed(&[&[("--seconds", self.seconds)][..], &self.common()].concat())
    }

    /// Passed on to commits only.
    pub(super) fn connections(&self) -> Vec<String> {
        passed(&[("--connections", self.connections)])
    }

    fn common(&self) -> [(&'static str, Option<u64>); 2] {
        [("--bytes", self.bytes), ("--warm-up-seconds", self.warm_up_seconds)]
    }
}

/// The options that were given, as words.
fn passed(options: &[(&str, Option<u64>)]) -> Vec<String> {
    let given =
        options.iter().filter_map(|(name, value)| Some([(*name).into(), (*value)?.to_string()]));
    given.flatten().collect()
}

const BROKERS: &str = "dunlin,artemis,classic,classic-openwire";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn options_pass_on_to_clients() {
        let options: Options = parsed(&["--rounds", "2", "--bytes", "64"]).unwrap();
        assert_eq!(options.matrix(), ["--rounds", "2", "--bytes", "64"]);
        assert_eq!(options.timed(), ["--bytes", "64"]);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(parsed::<Options>(&["--speed", "9"]).is_err());
        assert!(parsed::<Options>(&["--rounds"]).is_err());
    }
}

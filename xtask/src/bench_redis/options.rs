//! Options of `cargo xtask bench-redis`.

use std::path::PathBuf;
use std::time::Duration;

use super::LIMIT;
use crate::Result;
use crate::flags::{list, pairs};

pub(crate) const HELP: &str = "\
cargo xtask bench-redis [options]   lists under redis-benchmark, on dunlin and redis-server
    --servers LIST    dunlin-always,dunlin-none,redis-none,redis-everysec,redis-always, or some
    --clients N       connections (100)
    --rounds N        of which the median counts (3)
    --share N         a Nth of the requests only (1)
    --binary PATH     dunlin (default: the release build)
";

/// The choices.
#[derive(Debug)]
pub(crate) struct Options {
    pub(super) servers: Vec<String>,
    pub(super) clients: u32,
    pub(super) rounds: u32,
    pub(super) share: u64,
    pub(super) limit: Duration,
    pub(super) binary: Option<PathBuf>,
}

impl Options {
    /// Reads `--name value` pairs.
    pub(crate) fn read(words: &[&str]) -> Result<Options> {
        let mut options = Options {
            servers: ["dunlin-always", "redis-none", "redis-everysec", "redis-always"]
                .map(str::to_owned)
                .to_vec(),
            clients: 100,
            rounds: 3,
            share: 1,
            limit: LIMIT,
            binary: None,
        };
        for (name, value) in pairs(words)? {
            match name {
                "--servers" => options.servers = list(value),
                "--clients" => options.clients = value.parse()?,
                "--rounds" => options.rounds = value.parse()?,
                "--share" => options.share = value.parse::<u64>()?.max(1),
                "--binary" => options.binary = Some(value.into()),
                _ => return Err(format!("{name}? See cargo xtask --help").into()),
            }
        }
        Ok(options)
    }
}

//! Options of `cargo xtask bench-compaction`.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::flags::pairs;

pub(crate) const HELP: &str = "\
cargo xtask bench-compaction [options]   how long clients wait while segments are compacted
    --clients N         connections that store a job and delete another (16)
    --kept N            jobs that stay stored (40000)
    --bytes N           of a job (1024)
    --segment-bytes N   of the log, as dunlin's option (16M)
    --seconds N         of each order of deleting, in each round (30)
    --rounds N          in turns (3)
    --binary PATH       dunlin (default: the release build)
";

/// The choices.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(super) clients: usize,
    pub(super) kept: usize,
    pub(super) bytes: usize,
    pub(super) segment_bytes: String,
    pub(super) span: Duration,
    pub(super) rounds: u32,
    pub(super) binary: Option<PathBuf>,
}

impl Options {
    /// Reads `--name value` pairs.
    ///
    /// # Errors
    /// When there is something else.
    pub(crate) fn read(words: &[&str]) -> Result<Options> {
        let mut options = Options {
            clients: 16,
            kept: 40_000,
            bytes: 1024,
            segment_bytes: "16M".to_owned(),
            span: Duration::from_secs(30),
            rounds: 3,
            binary: None,
        };
        for (name, value) in pairs(words)? {
            match name {
                "--clients" => options.clients = value.parse::<usize>()?.max(1),
                "--kept" => options.kept = value.parse::<usize>()?.max(1),
                "--bytes" => options.bytes = value.parse()?,
                "--segment-bytes" => value.clone_into(&mut options.segment_bytes),
                "--seconds" => options.span = Duration::from_secs(value.parse()?),
                "--rounds" => options.rounds = value.parse()?,
                "--binary" => options.binary = Some(value.into()),
                _ => return Err(format!("{name}? See cargo xtask --help").into()),
            }
        }
        Ok(options)
    }
}

//! Options of `cargo xtask soak`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Result;

pub(crate) const HELP: &str = "\
cargo xtask soak [options]          beanstalkd, Redis, HTTP and AMQP for hours, with kill -9 and
                                    restarts; nothing is lost, and memory and disk stay as they are
    --hours N         how long (1); --minutes N for less
    --seed N          repeat a run's choices (default: the clock)
    --binary PATH     dunlin (default: the release build)
    --json            lines of JSON
";

/// The choices.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(super) span: Duration,
    pub(super) seed: u64,
    pub(super) binary: Option<PathBuf>,
    pub(super) json: bool,
}

impl Options {
    /// Reads `--name value` pairs, and `--json`.
    ///
    /// # Errors
    /// When there is something else.
    pub(crate) fn read(words: &[&str]) -> Result<Options> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut options = Options { span: HOUR, seed: now.as_secs(), binary: None, json: false };
        let mut words = words.iter();
        while let Some(&name) = words.next() {
            if name == "--json" {
                options.json = true;
                continue;
            }
            let value = *words.next().ok_or(format!("{name} needs a value"))?;
            match name {
                "--hours" => options.span = HOUR.mul_f64(value.parse::<f64>()?.clamp(0.0, 1e4)),
                "--minutes" => options.span = MINUTE * value.parse::<u32>()?,
                "--seed" => options.seed = value.parse()?,
                "--binary" => options.binary = Some(value.into()),
                _ => return Err(format!("{name}? See cargo xtask --help").into()),
            }
        }
        Ok(options)
    }
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_be_parts_of_one() {
        let options = Options::read(&["--hours", "0.5", "--json", "--seed", "7"]).unwrap();
        assert_eq!((options.span, options.seed, options.json), (MINUTE * 30, 7, true));
        assert_eq!(Options::read(&["--minutes", "10"]).unwrap().span, MINUTE * 10);
        assert!(Options::read(&["--days", "1"]).is_err());
    }
}

//! Options of `cargo xtask soak`.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::clock_seed;

/// The choices.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, value_name = "N", default_value = "1", value_parser = hours)]
    hours: Duration,
    /// How long, for less than an hour
    #[arg(long, value_name = "N", value_parser = minutes, conflicts_with = "hours")]
    minutes: Option<Duration>,
    /// Repeat a run's choices [default: the clock]
    #[arg(long, value_name = "N", default_value_t = clock_seed(), hide_default_value = true)]
    pub(super) seed: u64,
    /// dunlin [default: the release build]
    #[arg(long, value_name = "PATH")]
    pub(super) binary: Option<PathBuf>,
    /// Print lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Options {
    /// How long the run takes.
    pub(super) fn span(&self) -> Duration {
        self.minutes.unwrap_or(self.hours)
    }
}

/// Any number of hours, up to a year or so.
fn hours(text: &str) -> Result<Duration, std::num::ParseFloatError> {
    Ok(HOUR.mul_f64(text.parse::<f64>()?.clamp(0.0, 1e4)))
}

fn minutes(text: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(MINUTE * text.parse::<u32>()?)
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn hours_may_be_parts_of_one() {
        let options: Options = parsed(&["--hours", "0.5", "--json", "--seed", "7"]).unwrap();
        assert_eq!((options.span(), options.seed, options.json), (MINUTE * 30, 7, true));
        assert_eq!(parsed::<Options>(&["--minutes", "10"]).unwrap().span(), MINUTE * 10);
        assert!(parsed::<Options>(&["--days", "1"]).is_err());
    }
}

//! Memory and disk of the server over the run, and whether they stayed the same.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::Result;

/// The measurements of one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) resident_bytes: u64,
    pub(super) disk_bytes: u64,
}

/// All samples, in order.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    samples: Vec<Sample>,
}

/// The largest of the first third and of the last third of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trend {
    pub(super) first: u64,
    pub(super) last: u64,
    /// The most that the last may be.
    pub(super) allowed: u64,
}

impl Gauges {
    pub(super) fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    pub(super) fn last(&self) -> Sample {
        self.samples.last().copied().unwrap_or_default()
    }

    pub(super) fn memory(&self) -> Trend {
        self.trend(|sample| sample.resident_bytes, MEMORY_SLACK)
    }

    pub(super) fn disk(&self) -> Trend {
        self.trend(|sample| sample.disk_bytes, DISK_SLACK)
    }

    fn trend(&self, of: impl Fn(&Sample) -> u64, slack: u64) -> Trend {
        let third = self.samples.len() / 3;
        let (begin, end) = self.samples.split_at(third);
        let end = end.get(end.len().saturating_sub(third)..).unwrap_or_default();
        let first = begin.iter().map(&of).max().unwrap_or_default();
        let last = end.iter().map(&of).max().unwrap_or_default();
        Trend { first, last, allowed: first + first / 4 + slack }
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last, allowed] = [self.first, self.last, self.allowed].map(|it| it >> 20);
        let verdict = if self.is_flat() { "flat" } else { "GROWS" };
        write!(
            f,
            "at most {first} MiB in the first third, {last} MiB in the last: {verdict} (up to \
             {allowed} MiB)"
        )
    }
}

impl Trend {
    /// True if there was no growth that lasts.
    pub(super) fn is_flat(&self) -> bool {
        self.last <= self.allowed
    }
}

/// The memory of a process now, and the bytes of its data on the disk.
pub(super) fn measure(process: u32, data: &Path) -> Result<Sample> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let kib = kib.ok_or("it has no memory any more")?;
    let mut disk_bytes = 0;
    for file in fs::read_dir(data)? {
        // It may have gone since.
        disk_bytes += file?.metadata().map_or(0, |file| file.len());
    }
    Ok(Sample { resident_bytes: kib * 1024, disk_bytes })
}

/// Memory that an allocator may keep, beside growth by a quarter.
const MEMORY_SLACK: u64 = 16 << 20;
/// A few segments of the run's size.
const DISK_SLACK: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn gauges(resident: impl Iterator<Item = u64>) -> Gauges {
        let sample = |mib| Sample { resident_bytes: mib << 20, disk_bytes: 0 };
        Gauges { samples: resident.map(sample).collect() }
    }

    #[test]
    fn gauge_waves_are_flat_slopes_rise() {
        assert!(gauges((0..90).map(|at| 100 + at % 7)).memory().is_flat());
        assert!(!gauges((0..90).map(|at| 100 + at)).memory().is_flat());
        let trend = gauges((0..9).map(|at| at * 10)).memory();
        assert_eq!((trend.first >> 20, trend.last >> 20, trend.allowed >> 20), (20, 80, 41));
    }
}

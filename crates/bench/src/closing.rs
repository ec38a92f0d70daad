//! The last lines of every benchmark: the cost of durability on this disk, and how near to the
//! disk's own limit the broker came.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::Written;
use crate::error::BenchError;
use crate::raw_disk::{RawSyncRate, raw_disk, raw_disk_of, raw_stream};
use crate::table::grouped;

/// Messages over the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// How many were confirmed.
    pub messages: u64,
    /// In which time.
    pub elapsed: Duration,
}

impl Rate {
    /// Messages a second; nothing where there were none.
    #[must_use]
    pub fn per_second(self) -> Option<f64> {
        let is_some = self.messages > 0 && !self.elapsed.is_zero();
        is_some.then(|| self.messages as f64 / self.elapsed.as_secs_f64())
    }
}

/// The same load twice, in the same run: persistent and not.
#[derive(Clone, Debug, Default)]
pub struct Closing {
    /// The load, in words.
    pub(crate) load: String,
    /// With messages that are persistent.
    pub(crate) durable: Rate,
    /// With messages that are not.
    pub(crate) undurable: Rate,
    /// The broker's writes for the persistent ones, if it tells.
    pub(crate) written: Option<Written>,
    /// The disk's durable writes of 4 KiB a second when the run began, where it is known.
    syncs_before: Option<f64>,
    /// The disk at the end, where it is known.
    disk: Option<Disk>,
}

/// A disk measured by itself.
#[derive(Clone, Debug)]
struct Disk {
    directory: PathBuf,
    /// Durable writes of 4 KiB.
    block: RawSyncRate,
    /// Durable writes as large as the broker's, with their bytes.
    as_written: Option<(u64, RawSyncRate)>,
    stream_bytes_per_second: f64,
}

impl Disk {
    /// Measures for one to two seconds; writes of a mean size as well, where that is known.
    fn measure(directory: &Path, write_bytes: Option<u64>) -> Result<Self, BenchError> {
        let as_written = write_bytes.map(|bytes| {
            let size = usize::try_from(bytes).unwrap_or(usize::MAX);
            raw_disk_of(directory, size).map(|rate| (bytes, rate))
        });
        Ok(Self {
            directory: directory.to_owned(),
            block: raw_disk(directory)?,
            as_written: as_written.transpose()?,
            stream_bytes_per_second: raw_stream(directory)?,
        })
    }
}

impl Closing {
    /// Of a load, done durably and not, with the broker's writes for the durable one.
    #[must_use]
    pub fn of(self, load: &str, durable: Rate, undurable: Rate, written: Option<Written>) -> Self {
        Self { load: load.to_owned(), durable, undurable, written, ..self }
    }

    /// Measures the broker's disk, once before the load and once, with `at_end`, behind it.
    ///
    /// # Errors
    /// [`BenchError::Io`] if the directory cannot be written to.
    pub fn measure_disk(&mut self, directory: &Path, at_end: bool) -> Result<(), BenchError> {
        if at_end {
            self.disk = Some(Disk::measure(directory, self.write_bytes())?);
        } else {
            self.syncs_before = Some(raw_disk(directory)?.best().per_second);
        }
        Ok(())
    }

    /// How many times as fast the same is when nothing is durable.
    fn tax(&self) -> Option<f64> {
        Some(self.undurable.per_second()? / self.durable.per_second()?)
    }

    /// Bytes of the broker's mean write.
    fn write_bytes(&self) -> Option<u64> {
        let written = self.written.filter(|written| written.batches > 0)?;
        Some(written.bytes / written.batches)
    }

    /// Messages a commit to the disk.
    fn batch(&self) -> Option<f64> {
        let written = self.written.filter(|written| written.batches > 0)?;
        Some(self.durable.messages as f64 / written.batches as f64)
    }

    /// Syncs a second, and how many of these the disk does by itself, one after another.
    fn syncs(&self) -> Option<(f64, f64)> {
        let written = self.written.filter(|written| written.syncs > 0)?;
        let (_, raw) = self.disk.as_ref()?.as_written?;
        self.durable.per_second()?;
        let per_second = written.syncs as f64 / self.durable.elapsed.as_secs_f64();
        Some((per_second, raw.best().per_second))
    }

    /// Bytes a second of the log.
    fn stream(&self) -> Option<f64> {
        self.durable.per_second()?;
        Some(self.written?.bytes as f64 / self.durable.elapsed.as_secs_f64())
    }

    pub(crate) fn to_value(&self) -> Value {
        let disk = self.disk.as_ref();
        let (syncs, limit) = self.syncs().unzip();
        let stream = disk.map(|disk| disk.stream_bytes_per_second);
        json!({
            "load": self.load,
            "persistent_messages_per_second": self.durable.per_second(),
            "non_persistent_messages_per_second": self.undurable.per_second(),
            "durability_cost": self.tax(),
            "messages": self.durable.messages,
            "commits": self.written.map(|written| written.batches),
            "syncs": self.written.map(|written| written.syncs),
            "commit_bytes_mean": self.write_bytes(),
            "messages_per_commit": self.batch(),
            "syncs_per_second": syncs,
            "disk_directory": disk.map(|disk| disk.directory.display().to_string()),
            "disk_syncs_per_second_4k_before": self.syncs_before,
            "disk_syncs_per_second_4k": disk.map(|disk| disk.block.best().per_second),
            "disk_syncs_per_second_at_that_size": limit,
            "disk_stream_bytes_per_second": stream,
            "share_of_sync_limit": syncs.zip(limit).map(|(syncs, limit)| syncs / limit),
            "share_of_stream": self.stream().zip(stream).map(|(ours, disk)| ours / disk),
        })
    }

    fn write_disk(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(disk) = &self.disk else {
            return writeln!(f, "disk        not known; --data DIR names one of this machine");
        };
        let (block, stream) = (disk.block.best(), disk.stream_bytes_per_second / 1e6);
        writeln!(
            f,
            "disk        {} syncs/s of 4 KiB (p50 {} us), {}{stream:.0} MB/s by the MiB",
            grouped(block.per_second as u64),
            block.p50.as_micros(),
            match disk.as_written {
                Some((bytes, rate)) => {
                    let rate = grouped(rate.best().per_second as u64);
                    format!("{rate} of {:.1} KiB, ", bytes as f64 / 1024.0)
                }
                None => String::new(),
            }
        )?;
        match self.syncs_before.filter(|before| {
            before / block.per_second > UNSTEADY || block.per_second / before > UNSTEADY
        }) {
            Some(before) => writeln!(
                f,
                "            {} of 4 KiB when the run began: it is too unsteady to be a limit",
                grouped(before as u64)
            ),
            None => Ok(()),
        }
    }

    fn write_broker(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(written) = self.written else {
            return writeln!(f, "broker      tells nothing of its commits");
        };
        let (commits, syncs) = (grouped(written.batches), grouped(written.syncs));
        let batch = self.batch().unwrap_or(0.0);
        let messages = grouped(self.durable.messages);
        writeln!(
            f,
            "broker      {commits} commits with {syncs} syncs for {messages} messages: \
             {batch:.1} messages a commit"
        )
    }

    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |rate: Rate| rate.per_second().map_or("-".into(), |it| grouped(it as u64));
        let (durable, undurable) = (shown(self.durable), shown(self.undurable));
        write!(f, "durability  {durable} messages/s persistent, {undurable} not")?;
        if let Some(tax) = self.tax() {
            write!(f, ": it cost a factor of {tax:.2}")?;
        }
        writeln!(f, " ({})", self.load)
    }

    fn write_share(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = self.disk.as_ref().map(|disk| disk.stream_bytes_per_second);
        let (Some((syncs, limit)), Some(batch)) = (self.syncs(), self.batch()) else {
            return writeln!(
                f,
                "limit       not known: it takes the broker's commits and its disk"
            );
        };
        let (share, most) = (syncs / limit, grouped((limit * batch) as u64));
        write!(
            f,
            "limit       {share:.2} of its syncs ({} of {}/s; {batch:.1} messages each: {most}/s)",
            grouped(syncs as u64),
            grouped(limit as u64)
        )?;
        match self.stream().zip(disk) {
            Some((ours, disk)) => writeln!(f, ", {:.2} of its stream", ours / disk),
            None => writeln!(f),
        }
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_disk(f)?;
        self.write_broker(f)?;
        self.write_cost(f)?;
        self.write_share(f)
    }
}

/// A disk that changes by this factor within a run is no yardstick.
const UNSTEADY: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(messages: u64, seconds: u64) -> Rate {
        Rate { messages, elapsed: Duration::from_secs(seconds) }
    }

    fn closing() -> Closing {
        let raw = |per_second| RawSyncRate::of(per_second, Duration::from_micros(140));
        Closing {
            load: "64 clients".to_owned(),
            durable: rate(60_000, 2),
            undurable: rate(90_000, 2),
            written: Some(Written { batches: 4_000, syncs: 4_000, bytes: 64 << 20 }),
            syncs_before: Some(4_500.0),
            disk: Some(Disk {
                directory: PathBuf::from("/data"),
                block: raw(5_000.0),
                as_written: Some((16_777, raw(2_500.0))),
                stream_bytes_per_second: 335_544_320.0,
            }),
        }
    }

    #[test]
    fn closing_shows_durability_cost_and_limit() {
        let shown = "\
disk        5,000 syncs/s of 4 KiB (p50 140 us), 2,500 of 16.4 KiB, 336 MB/s by the MiB
broker      4,000 commits with 4,000 syncs for 60,000 messages: 15.0 messages a commit
durability  30,000 messages/s persistent, 45,000 not: it cost a factor of 1.50 (64 clients)
limit       0.80 of its syncs (2,000 of 2,500/s; 15.0 messages each: 37,500/s), 0.10 of its stream
";
        assert_eq!(closing().to_string(), shown);
        let value = closing().to_value();
        assert_eq!(value["durability_cost"], 1.5);
        assert_eq!(value["share_of_sync_limit"], 0.8);
        assert_eq!(value["messages_per_commit"], 15.0);
    }

    #[test]
    fn closing_tells_an_unsteady_disk() {
        assert!(!closing().to_string().contains("unsteady"));
        let closing = Closing { syncs_before: Some(1_000.0), ..closing() };
        assert!(closing.to_string().contains("1,000 of 4 KiB when the run began"));
    }

    #[test]
    fn closing_leaves_out_unknown_figures() {
        let closing = Closing { written: None, disk: None, ..closing() };
        let shown = closing.to_string();
        assert!(shown.contains("--data DIR") && shown.contains("limit       not known"), "{shown}");
        assert_eq!(closing.to_value()["share_of_sync_limit"], Value::Null);
        let nothing = Closing::default();
        assert!(nothing.to_string().contains("- messages/s persistent, - not ()"), "{nothing}");
    }
}

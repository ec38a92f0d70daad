//! The raw rates of a disk, as a yardstick for the broker on it: of one durable write after
//! another, and of a stream.
//!
//! All ways overwrite blocks that were filled with zeros and flushed before: the best case of a
//! file system, since no metadata changes. One write is outstanding at a time.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::error::BenchError;

/// How fast one durable 4 KiB write after another is, by the two ways to make it durable.
#[derive(Clone, Copy, Debug)]
pub struct RawSyncRate {
    /// `O_DIRECT|O_DSYNC`; `None` where the file system refuses direct I/O.
    pub direct: Option<SyncRate>,
    /// A buffered write, then `fdatasync`.
    pub fdatasync: SyncRate,
}

/// The rate of one way to write durably.
#[derive(Clone, Copy, Debug)]
pub struct SyncRate {
    /// Durable writes a second.
    pub per_second: f64,
    /// The median time of one.
    pub p50: Duration,
}

impl RawSyncRate {
    /// As if both ways were alike.
    #[cfg(test)]
    pub(crate) fn of(per_second: f64, p50: Duration) -> Self {
        let rate = SyncRate { per_second, p50 };
        Self { direct: Some(rate), fdatasync: rate }
    }

    /// The faster of the two ways: ratios should be taken to this one.
    #[must_use]
    pub fn best(&self) -> SyncRate {
        match self.direct {
            Some(direct) if direct.per_second > self.fdatasync.per_second => direct,
            _ => self.fdatasync,
        }
    }
}

impl fmt::Display for RawSyncRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direct {
            Some(direct) => write!(f, "O_DIRECT|O_DSYNC {direct}")?,
            None => write!(f, "O_DIRECT refused")?,
        }
        write!(f, ", write+fdatasync {}", self.fdatasync)
    }
}

impl fmt::Display for SyncRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}/s (p50 {} us)", self.per_second, self.p50.as_micros())
    }
}

/// Measures for about half a second in the directory, in a file that is removed afterwards.
///
/// # Errors
/// [`BenchError::Io`] if the directory cannot be written to.
pub fn raw_disk(directory: &Path) -> Result<RawSyncRate, BenchError> {
    raw_disk_of(directory, BLOCK_BYTES)
}

/// The same for durable writes of so many bytes, rounded up to whole blocks of 4 KiB, 1 MiB at
/// most.
///
/// # Errors
/// [`BenchError::Io`] if the directory cannot be written to.
pub fn raw_disk_of(directory: &Path, write_bytes: usize) -> Result<RawSyncRate, BenchError> {
    let bytes = write_bytes.clamp(1, STREAM_BYTES).next_multiple_of(BLOCK_BYTES);
    let scratch = Scratch::create(directory).map_err(doing("create a scratch file", directory))?;
    let direct = scratch.direct(bytes).map_err(doing("measure direct writes", directory))?;
    let fdatasync = scratch.fdatasync(bytes).map_err(doing("measure fdatasync", directory))?;
    Ok(RawSyncRate { direct, fdatasync })
}

/// Bytes a second that the disk takes in writes of 1 MiB, each of which is durable before the next
/// begins. Measures for about half a second, in a file that is removed afterwards.
///
/// # Errors
/// [`BenchError::Io`] if the directory cannot be written to.
pub fn raw_stream(directory: &Path) -> Result<f64, BenchError> {
    let rate = raw_disk_of(directory, STREAM_BYTES)?.best();
    Ok(rate.per_second * STREAM_BYTES as f64)
}

fn doing(what: &str, directory: &Path) -> impl FnOnce(io::Error) -> BenchError {
    BenchError::io(format!("{what} in {}", directory.display()))
}

/// A zero-filled, flushed file that goes away with the value.
struct Scratch {
    path: PathBuf,
    file: File,
}

impl Scratch {
    fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("raw-sync-rate-{}.tmp", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let scratch = Self { path, file };
        scratch.file.write_all_at(&vec![0; SCRATCH_BYTES], 0)?;
        scratch.file.sync_all()?;
        Ok(scratch)
    }

    /// `None` if the file system refuses direct I/O, at opening or at the first write.
    fn direct(&self, bytes: usize) -> io::Result<Option<SyncRate>> {
        let flags = i32::try_from((OFlags::DIRECT | OFlags::DSYNC).bits())
            .expect("invariant: open flags fit an int");
        let opened = OpenOptions::new().write(true).custom_flags(flags).open(&self.path);
        let write = |file: &File, block: &[u8], offset| file.write_all_at(block, offset);
        match opened.and_then(|file| rate(bytes, |block, offset| write(&file, block, offset))) {
            Ok(rate) => Ok(Some(rate)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fdatasync(&self, bytes: usize) -> io::Result<SyncRate> {
        rate(bytes, |block, offset| {
            self.file.write_all_at(block, offset)?;
            self.file.sync_data()
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover file of 4 MiB is not worth hiding the figures that were measured with it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Repeats one durable write of `bytes` from one end of the file to the other until the time is up.
fn rate(bytes: usize, mut write: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<SyncRate> {
    let buffer = vec![0x5a; bytes + BLOCK_BYTES];
    let aligned = buffer.as_ptr().align_offset(BLOCK_BYTES);
    let block = buffer
        .get(aligned..aligned + bytes)
        .expect("invariant: one block more holds what is aligned");
    let mut times = Vec::new();
    let start = Instant::now();
    while times.is_empty() || start.elapsed() < MEASURE {
        let before = Instant::now();
        write(block, ((times.len() % (SCRATCH_BYTES / bytes)) * bytes) as u64)?;
        times.push(before.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let p50 = *times.get(times.len() / 2).expect("invariant: at least one write was timed");
    Ok(SyncRate { per_second: times.len() as f64 / seconds, p50 })
}

const BLOCK_BYTES: usize = 4096;
/// Many blocks, so that no device merges writes to one, yet filled in no time.
const SCRATCH_BYTES: usize = 4 * STREAM_BYTES;
/// Bytes of a write that is so large that its bytes alone determine its cost.
const STREAM_BYTES: usize = 1024 * 1024;
/// For each of the two ways.
const MEASURE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_disk_leaves_nothing_behind() {
        let directory = std::env::temp_dir().join(format!("dunlin-raw-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let rate = raw_disk(&directory).unwrap();
        assert!(rate.fdatasync.per_second > 1.0, "{rate}");
        assert!(rate.best().per_second >= rate.fdatasync.per_second, "{rate}");
        assert!(rate.to_string().contains("write+fdatasync"), "{rate}");
        std::fs::remove_dir(&directory).expect("the scratch file is gone");
    }

    #[test]
    fn raw_disk_measures_writes_and_stream() {
        let directory = std::env::temp_dir().join(format!("dunlin-stream-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        assert!(raw_disk_of(&directory, 10_000).unwrap().best().per_second > 1.0);
        assert!(raw_stream(&directory).unwrap() > STREAM_BYTES as f64);
        std::fs::remove_dir(&directory).expect("the scratch file is gone");
    }

    #[test]
    fn raw_disk_names_missing_directory() {
        let error = raw_disk(Path::new("/nonexistent/here")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/here"), "{error}");
    }
}

//! A data directory to be looked into.

use std::path::Path;

use disk::RealDisk;
use indicatif::{ProgressBar, ProgressStyle};
use journal::{Disk as _, is_journal_name};

use crate::exit::Error;

/// Opens it without changing anything.
///
/// # Errors
/// The directory does not exist, holds no journal, or another process writes to it.
pub(crate) fn open(directory: &Path) -> Result<RealDisk, Error> {
    let disk =
        RealDisk::open_existing(directory).map_err(|error| Error::Other(error.to_string()))?;
    let names = disk.names().map_err(|error| Error::Other(error.to_string()))?;
    if !names.iter().any(|name| is_journal_name(name)) {
        let text = format!("{} holds no journal: give the --data of a broker", directory.display());
        return Err(Error::Other(text));
    }
    Ok(disk)
}

/// How much of it was read, on standard error, if that is a terminal: a large one takes a while.
pub(crate) struct Reading(ProgressBar);

impl Reading {
    pub(crate) fn begin() -> Self {
        let style = ProgressStyle::with_template("reading {bytes} {bytes_per_sec} {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        Self(ProgressBar::new_spinner().with_style(style))
    }

    /// So many bytes more.
    pub(crate) fn read(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

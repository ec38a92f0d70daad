//! A data directory to be looked into.

use std::path::Path;

use disk::RealDisk;
use journal::Disk as _;

use crate::exit::Error;

/// Opens it without changing anything.
///
/// # Errors
/// It is not there, or holds no journal, or somebody writes to it.
pub(crate) fn open(directory: &Path) -> Result<RealDisk, Error> {
    let disk =
        RealDisk::open_existing(directory).map_err(|error| Error::Other(error.to_string()))?;
    let names = disk.names().map_err(|error| Error::Other(error.to_string()))?;
    if names.is_empty() {
        let text = format!("{} holds no journal: give the --data of a broker", directory.display());
        return Err(Error::Other(text));
    }
    Ok(disk)
}

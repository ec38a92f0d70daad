//! The errors of a journal, by their cause.

use std::fmt;

use model::Lsn;

use crate::DiskError;
use crate::format::SegmentNumber;

/// The disk failed under the running journal. Nothing more is confirmed; the process is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFailed {
    /// The disk's error.
    pub cause: DiskError,
}

impl fmt::Display for JournalFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the journal failed and confirms nothing more: {}", self.cause)
    }
}

impl std::error::Error for JournalFailed {}

/// Why a journal could not be opened. Nothing was changed on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The disk failed.
    Disk(DiskError),
    /// Bytes that were durable are not as they were written.
    Corrupt {
        /// The file.
        file: String,
        /// The first byte of the fault.
        offset: u64,
        /// The fault.
        cause: String,
    },
    /// Frames that must be there are in no file.
    Missing {
        /// The first of them.
        lsn: Lsn,
        /// How it is known.
        cause: String,
    },
    /// A file is not the one that was left here.
    File {
        /// Which.
        file: String,
        /// The fault of the file.
        fault: FileFault,
    },
    /// A newer program wrote it.
    Version {
        /// The file.
        file: String,
        /// The version found.
        found: u32,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause())?;
        match self {
            Self::Disk(_) | Self::Version { .. } => Ok(()),
            Self::Corrupt { .. } | Self::Missing { .. } | Self::File { .. } => {
                write!(f, "; {REMEDY}")
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl OpenError {
    /// The fault, without the remedy.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Disk(error) => error.to_string(),
            Self::Corrupt { file, offset, cause } => format!(
                "{file} is corrupt at byte {offset}: {cause}. These bytes were durable, so this is \
                 not the torn end of the log"
            ),
            Self::Missing { lsn, cause } => format!(
                "frame {lsn} is missing from the journal: {cause}; a file was removed or lost"
            ),
            Self::File { file, fault } => format!("{file} {fault}"),
            Self::Version { file, found } => format!(
                "{file} has format version {found}, this program reads up to {}; use a newer one",
                crate::FORMAT_VERSION
            ),
        }
    }
}

/// The remedy for a directory that is refused.
const REMEDY: &str = "restore the whole directory from a copy, not single files of it; see what is \
                      left with `dunlin journal dump DIR`, and whether `dunlin journal repair DIR` \
                      can go on with that; `dunlin journal salvage DIR --to NEW` copies the rest";

/// Why a file is not the one that was left in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// It ends before it was made to end.
    Short {
        /// Its length.
        bytes: u64,
        /// The least that it was made with.
        made: u64,
    },
    /// It must be there.
    Gone {
        /// How it is known.
        cause: String,
    },
    /// Others were written since.
    Stale {
        /// How it is known.
        cause: String,
    },
    /// It is of another directory.
    Foreign,
    /// It is another segment's, by its content.
    Renamed {
        /// Which.
        holds: SegmentNumber,
    },
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { bytes, made } => write!(
                f,
                "is too short: it has {bytes} bytes and was made with {made}, so it was cut, as by \
                 a copy that broke off"
            ),
            Self::Gone { cause } => write!(f, "is missing: {cause}"),
            Self::Stale { cause } => {
                write!(f, "is an older copy of itself, in which later frames are missing: {cause}")
            }
            Self::Foreign => f.write_str("is from another data directory"),
            Self::Renamed { holds } => {
                write!(f, "holds {}: it was renamed or copied", holds.file_name())
            }
        }
    }
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

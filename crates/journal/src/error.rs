//! What can go wrong, by whose fault.

use std::fmt;

use model::Lsn;

use crate::DiskError;

/// The disk failed under the running journal. Nothing more is confirmed; the process is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFailed {
    /// What the disk said.
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
    /// Bytes that were durable are not what was written.
    Corrupt {
        /// In which file.
        file: String,
        /// From which byte on.
        offset: u64,
        /// What is wrong.
        cause: String,
    },
    /// Frames that must be there are in no file.
    Missing {
        /// The first of them.
        lsn: Lsn,
        /// How it is known.
        cause: String,
    },
    /// A newer program wrote it.
    Version {
        /// In which file.
        file: String,
        /// The version found.
        found: u32,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Corrupt { file, offset, cause } => write!(
                f,
                "{file} is corrupt at byte {offset}: {cause}. These bytes were durable, so this is \
                 not the torn end of the log; restore the directory from a copy, or see what is \
                 left with `dunlin journal dump DIR`"
            ),
            Self::Missing { lsn, cause } => write!(
                f,
                "frame {lsn} is missing from the journal: {cause}; a file was removed or lost"
            ),
            Self::Version { file, found } => write!(
                f,
                "{file} has format version {found}, this program reads up to {}; use a newer one",
                crate::FORMAT_VERSION
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

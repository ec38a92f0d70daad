//! Tells whether a file has changed since it was read.

use std::path::Path;
use std::time::SystemTime;

/// One state of a file; another content has another, but for changes within the same moment that
/// keep the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    changed: Option<SystemTime>,
    bytes: u64,
}

impl FileStamp {
    /// The present state; `None`: there is no such file, or it cannot be looked at.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(file).ok()?;
        Some(Self { changed: metadata.modified().ok(), bytes: metadata.len() })
    }
}

//! The written bytes that no sync has brought to the device yet.

use std::collections::BTreeMap;

use model::Nanos;

use crate::format::SegmentNumber;

/// Files with bytes that were written and not synced since. A flush takes all of them.
#[derive(Debug)]
pub(crate) struct Unsynced<F> {
    files: BTreeMap<SegmentNumber, F>,
    /// When the first of these bytes was written; `None`: there are none.
    since: Option<Nanos>,
    /// Bytes of payload.
    bytes: u64,
}

impl<F> Unsynced<F> {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self { files: BTreeMap::new(), since: None, bytes: 0 }
    }

    /// True if everything written is synced, or a flush is under way for it.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// When the first of these bytes was written.
    pub(crate) const fn since(&self) -> Option<Nanos> {
        self.since
    }

    /// Bytes of payload.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes of payload were written to a segment.
    pub(crate) fn add(&mut self, now: Nanos, (number, file): (SegmentNumber, F), bytes: u64) {
        self.files.insert(number, file);
        self.since.get_or_insert(now);
        self.bytes += bytes;
    }

    /// The files of all these bytes, for the flush that begins.
    pub(crate) fn take(&mut self) -> BTreeMap<SegmentNumber, F> {
        (self.since, self.bytes) = (None, 0);
        std::mem::take(&mut self.files)
    }
}

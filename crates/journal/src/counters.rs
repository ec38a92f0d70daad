//! The journal's counters since its opening.

/// Sums since the journal was opened, but for those named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalCounters {
    /// Durable writes and flushes of the log (not of its housekeeping).
    pub syncs: u64,
    /// Batches written.
    pub batches: u64,
    /// Frames appended.
    pub frames: u64,
    /// Bytes of payload appended.
    pub payload_bytes: u64,
    /// Bytes written to segments, with marks and padding.
    pub batch_bytes: u64,
    /// Frames of the largest batch.
    pub batch_frames_max: u64,
    /// Segments of which the live rest was copied forward.
    pub compactions: u64,
    /// Records that compactions appended anew.
    pub restated_records: u64,
    /// Snapshots completed.
    pub snapshots: u64,
    /// Bytes of the snapshots completed.
    pub snapshot_bytes: u64,
    /// Segments used again.
    pub segments_recycled: u64,
    /// Times that frames were read back.
    pub fetches: u64,
    /// Bytes read for that.
    pub fetched_bytes: u64,
    /// Now: segments that hold frames.
    pub segments: u64,
    /// Now: of these, those that can't be compacted, since a batch in them is larger than a whole
    /// segment of today. They go when their live messages are settled.
    pub segments_too_large: u64,
    /// Now: bytes of their live records.
    pub live_bytes: u64,
    /// Now: bytes of all segment files and snapshots on the disk.
    pub disk_bytes: u64,
    /// Now: payload bytes that are written and not yet synced: a power cut would lose them.
    pub unsynced_bytes: u64,
}

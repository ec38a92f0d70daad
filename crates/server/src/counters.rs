//! The counters of a server, and their form in the log.

use std::fmt;

use broker::SpillCounters;
use disk::DiskCounters;
use hdrhistogram::Histogram;
use model::Nanos;

/// The time of confirming, by its parts, one sample a write.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// From a batch's first frame until its write began.
    pub queued: Histogram<u64>,
    /// Writes without sync, from begin to end.
    pub written: Histogram<u64>,
    /// Writes with sync, from begin to end.
    pub synced: Histogram<u64>,
}

/// The durations of one write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) queued: Nanos,
    pub(crate) performed: Nanos,
    pub(crate) syncs: bool,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let micros = || {
            Histogram::new_with_bounds(1, MICROS_MAX, DIGITS).expect("invariant: bounds are valid")
        };
        Self { queued: micros(), written: micros(), synced: micros() }
    }

    pub(crate) fn record(&mut self, span: Span) {
        let performed = if span.syncs { &mut self.synced } else { &mut self.written };
        performed.saturating_record(span.performed.0 / 1_000);
        self.queued.saturating_record(span.queued.0 / 1_000);
    }
}

/// An hour: a longer latency shows as an hour.
const MICROS_MAX: u64 = 3_600_000_000;

/// Significant digits of a latency; more would only cost memory.
const DIGITS: u8 = 2;

/// Everything a server has counted since its start.
#[derive(Clone, Debug)]
pub struct Counters {
    /// The journal's figures.
    pub journal: journal::JournalCounters,
    /// The bytes and syncs that reached the disk, housekeeping included.
    pub disk: DiskCounters,
    /// The time of confirming, by its parts.
    pub latencies: Latencies,
    /// Connections open now.
    pub connections: usize,
    /// Connections that listeners did not take, for their address or the listener's user.
    pub turned_away: u64,
    /// Bytes in their buffers now.
    pub buffered_bytes: usize,
    /// Bytes of memory that may be used.
    pub memory_limit: u64,
    /// Bytes that messages and connections use of it now.
    pub memory_bytes: u64,
    /// Messages with bytes that have left memory.
    pub bodies_paged_out: u64,
    /// Sends that wait until there is memory for them.
    pub memory_waits: u64,
    /// When the first of the server's certificates ends, since 1970; `None` without TLS.
    pub certificate_end: Option<Nanos>,
    /// The spill's figures.
    pub spill: SpillCounters,
    /// Logins that failed.
    pub failed_logins: u64,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { journal, disk, latencies, connections, buffered_bytes, .. } = self;
        let Self { memory_limit, memory_bytes, bodies_paged_out, spill, .. } = self;
        let mean = journal.frames as f64 / journal.batches.max(1) as f64;
        writeln!(
            f,
            "counters: {connections} connections, {buffered_bytes} bytes in their buffers"
        )?;
        writeln!(
            f,
            "  memory: {memory_bytes} bytes of {memory_limit}, {bodies_paged_out} messages on the \
             disk only"
        )?;
        writeln!(
            f,
            "  spill: {} bodies written and {} read back, {} there in {} bytes",
            spill.bodies, spill.fetches, spill.live, spill.disk_bytes
        )?;
        writeln!(
            f,
            "  log: {} frames ({} bytes) in {} batches ({mean:.1} frames mean, {} most, {} bytes), \
             {} syncs",
            journal.frames,
            journal.payload_bytes,
            journal.batches,
            journal.batch_frames_max,
            journal.batch_bytes,
            journal.syncs
        )?;
        writeln!(f, "  confirmed and lost if power failed now: {} bytes", journal.unsynced_bytes)?;
        writeln!(
            f,
            "  space: {} live bytes in {} segments, {} bytes on disk, {} segments recycled, \
             {} compactions, {} snapshots",
            journal.live_bytes,
            journal.segments,
            journal.disk_bytes,
            journal.segments_recycled,
            journal.compactions,
            journal.snapshots
        )?;
        writeln!(
            f,
            "  disk: {} writes ({} bytes), {} syncs",
            disk.writes, disk.written_bytes, disk.syncs
        )?;
        writeln!(f, "  queued:  {}", Line(&latencies.queued))?;
        writeln!(f, "  written: {}", Line(&latencies.written))?;
        write!(f, "  synced:  {}", Line(&latencies.synced))
    }
}

/// A histogram in one line.
struct Line<'a>(&'a Histogram<u64>);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |quantile| self.0.value_at_quantile(quantile);
        write!(
            f,
            "{} writes, p50 {} us, p99 {} us, p99.9 {} us, most {} us",
            self.0.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            self.0.max()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_show_write_latencies() {
        let mut latencies = Latencies::new();
        let span = |millis, syncs| Span {
            queued: Nanos::from_millis(1),
            performed: Nanos::from_millis(millis),
            syncs,
        };
        latencies.record(span(20, true));
        latencies.record(span(5, false));
        let counters = Counters {
            certificate_end: None,
            journal: journal::JournalCounters { syncs: 7, unsynced_bytes: 9, ..Default::default() },
            disk: DiskCounters::default(),
            latencies,
            connections: 3,
            turned_away: 0,
            buffered_bytes: 4,
            memory_limit: 6,
            memory_bytes: 5,
            bodies_paged_out: 2,
            memory_waits: 0,
            spill: SpillCounters { live: 8, ..SpillCounters::default() },
            failed_logins: 0,
        };
        let text = counters.to_string();
        assert!(text.contains("7 syncs"), "{text}");
        assert!(text.contains("8 there"), "{text}");
        assert!(text.contains("lost if power failed now: 9 bytes"), "{text}");
        assert!(text.contains("queued:  2 writes"), "{text}");
        assert!(text.contains("synced:  1 writes"), "{text}");
        assert!(text.contains("written: 1 writes"), "{text}");
    }
}

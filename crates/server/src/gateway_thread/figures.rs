//! The server's counters as metrics.

use broker::{Explained, QueueShare};
use hdrhistogram::Histogram;
use http_api::{Figures, QueueFigures, Sample, SegmentFigures, Summary};
use model::{BrokerStatistics, Nanos};

use crate::counters::Counters;

/// All metrics by their names.
pub(crate) fn of(broker: BrokerStatistics, counters: &Counters) -> Figures {
    let latencies = &counters.latencies;
    let summaries = vec![
        summary(
            "commit_queued_seconds",
            "From a batch's first frame until its write began.",
            &latencies.queued,
        ),
        summary("write_seconds", "Writes of the log without sync.", &latencies.written),
        summary("sync_seconds", "Writes of the log with sync.", &latencies.synced),
    ];
    Figures { broker, samples: samples(counters), summaries }
}

/// The figures of one file of the log.
pub(crate) fn of_segment(explained: Explained) -> SegmentFigures {
    let Explained { segment, queues, queues_count } = explained;
    let queue = |share: QueueShare| QueueFigures {
        queue: share.queue,
        of_topic: share.of_topic,
        messages: share.messages,
        oldest: share.oldest,
        created: share.created,
    };
    SegmentFigures {
        file: segment.number.file_name(),
        bytes: segment.bytes,
        used_bytes: segment.used_bytes,
        live_bytes: segment.live.bytes,
        live_records: segment.live.count,
        kept_for: segment.kept_for.name(),
        queues: queues.into_iter().map(queue).collect(),
        queues_count,
    }
}

fn samples(counters: &Counters) -> Vec<Sample> {
    let Counters { journal, disk, connections, buffered_bytes, .. } = counters;
    let Counters { memory_limit, memory_bytes, memory_waits, bodies_paged_out, spill, .. } =
        counters;
    let sum = |name, help, value| Sample { name, help, is_counter: true, value };
    let gauge = |name, help, value| Sample { name, help, is_counter: false, value };
    vec![
        gauge("connections", "Connections that are open.", *connections as u64),
        sum(
            "connections_turned_away_total",
            "Connections closed for their address, or since the user of their listener is gone.",
            counters.turned_away,
        ),
        gauge(
            "tls_certificate_end_seconds",
            "When the first certificate of TLS ends, in seconds since 1970; 0 without TLS.",
            counters.certificate_end.map_or(0, Nanos::as_secs),
        ),
        sum(
            "logins_failed_total",
            "Logins that were refused, or put off since too many failed or came at once.",
            counters.failed_logins,
        ),
        gauge("buffered_bytes", "Bytes in the buffers of connections.", *buffered_bytes as u64),
        gauge("memory_limit_bytes", "Bytes of memory that may be used.", *memory_limit),
        gauge("memory_bytes", "Bytes that messages and connections use of it.", *memory_bytes),
        gauge("memory_waits", "Sends that wait until there is memory for them.", *memory_waits),
        gauge(
            "messages_away",
            "Messages whose bytes have left memory and come back from the log or the spill; copies \
             of one that was published are one.",
            *bodies_paged_out,
        ),
        sum("log_fetches_total", "Reads of the log for such messages.", journal.fetches),
        sum("log_fetched_bytes_total", "Bytes of these.", journal.fetched_bytes),
        gauge("spill_messages", "Messages of these whose bytes are in the spill.", spill.live),
        gauge("spill_disk_bytes", "Bytes of the files of the spill.", spill.disk_bytes),
        sum("spill_bodies_total", "Bodies written to the spill.", spill.bodies),
        sum("spill_body_bytes_total", "Bytes of these.", spill.body_bytes),
        sum("spill_fetches_total", "Bodies read back from the spill.", spill.fetches),
        sum("spill_fetched_bytes_total", "Bytes of these.", spill.fetched_bytes),
        sum("spill_refused_total", "Writes for which the device had no room.", spill.refused),
        sum("log_frames_total", "Frames appended to the log.", journal.frames),
        sum("log_payload_bytes_total", "Bytes in these frames.", journal.payload_bytes),
        sum("log_batches_total", "Batches of frames written.", journal.batches),
        sum("log_batch_bytes_total", "Bytes of these with padding.", journal.batch_bytes),
        sum("log_syncs_total", "Flushes of the log to the device.", journal.syncs),
        gauge(
            "log_unsynced_bytes",
            "Bytes that are confirmed and lost if power failed now.",
            journal.unsynced_bytes,
        ),
        gauge("log_live_bytes", "Bytes of the log that still matter.", journal.live_bytes),
        gauge("log_segments", "Segments of the log that hold frames.", journal.segments),
        gauge("log_disk_bytes", "Bytes of all files of the log.", journal.disk_bytes),
        sum("log_compactions_total", "Segments whose live rest was copied.", journal.compactions),
        sum("log_restated_records_total", "Records copied by that.", journal.restated_records),
        sum("log_snapshots_total", "Snapshots completed.", journal.snapshots),
        sum("disk_writes_total", "Writes to the disk.", disk.writes),
        sum("disk_written_bytes_total", "Bytes of these.", disk.written_bytes),
        sum("disk_syncs_total", "Flushes to the device, housekeeping too.", disk.syncs),
    ]
}

fn summary(name: &'static str, help: &'static str, micros: &Histogram<u64>) -> Summary {
    let seconds = |micros: f64| micros / 1e6;
    let at = |quantile| (quantile, seconds(micros.value_at_quantile(quantile) as f64));
    Summary {
        name,
        help,
        quantiles: [0.5, 0.99, 0.999].map(at).to_vec(),
        sum: seconds(micros.mean() * micros.len() as f64),
        count: micros.len(),
    }
}

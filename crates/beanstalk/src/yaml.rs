//! The bodies of `stats`, `stats-tube`, `stats-job` and the lists: the YAML that clients parse, in
//! beanstalkd's order of keys.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use model::{BrokerStatistics, MessageState, MessageStatistics, Nanos, QueueName, QueueStatistics};

use crate::shared::ListenerState;

/// A document that grows by a line at a time.
struct Document(String);

impl Document {
    fn new() -> Self {
        Self(String::from("---\n"))
    }

    /// A key with a number or word.
    fn plain(&mut self, key: &str, value: impl Display) {
        self.0.push_str(&format!("{key}: {value}\n"));
    }

    fn quoted(&mut self, key: &str, value: &str) {
        self.plain(key, quote(value));
    }

    fn seconds(&mut self, key: &str, span: Nanos) {
        self.plain(key, span.as_secs());
    }
}

/// From beanstalkd 1.13 on strings are quoted, or a tube named `123` would be read as a number.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A list of tubes. Their names stand unquoted, as in beanstalkd.
pub(crate) fn list<'a>(tubes: impl IntoIterator<Item = &'a QueueName>) -> String {
    let mut document = Document::new();
    for tube in tubes {
        document.0.push_str("- ");
        document.0.push_str(tube.as_str());
        document.0.push('\n');
    }
    document.0
}

/// `stats-job`. There is no file number: a message may lie in any segment.
pub(crate) fn job(job: &MessageStatistics) -> String {
    let mut document = Document::new();
    document.plain("id", job.message);
    document.quoted("tube", job.queue.as_str());
    document.plain("state", state(job.state));
    document.plain("pri", job.priority);
    document.seconds("age", job.age);
    document.seconds("delay", job.delay);
    document.seconds("ttr", job.lease);
    document.seconds("time-left", job.time_left);
    document.plain("file", 0);
    document.plain("reserves", job.delivered);
    document.plain("timeouts", job.expired);
    document.plain("releases", job.released);
    document.plain("buries", job.buried);
    document.plain("kicks", job.kicked);
    document.0
}

const fn state(state: MessageState) -> &'static str {
    match state {
        MessageState::Ready => "ready",
        MessageState::Delayed => "delayed",
        MessageState::Leased => "reserved",
        MessageState::Buried => "buried",
    }
}

/// `stats-tube`.
pub(crate) fn tube(tube: &QueueStatistics) -> String {
    let mut document = Document::new();
    document.quoted("name", tube.queue.as_str());
    document.plain("current-jobs-urgent", tube.urgent);
    document.plain("current-jobs-ready", tube.ready);
    document.plain("current-jobs-reserved", tube.leased);
    document.plain("current-jobs-delayed", tube.delayed);
    document.plain("current-jobs-buried", tube.buried);
    document.plain("total-jobs", tube.messages_total);
    document.plain("current-using", tube.producers);
    document.plain("current-watching", tube.consumers);
    document.plain("current-waiting", tube.waiting);
    document.plain("cmd-delete", tube.deleted_total);
    document.plain("cmd-pause-tube", tube.paused_total);
    document.seconds("pause", tube.pause);
    document.seconds("pause-time-left", tube.pause_left);
    document.0
}

/// `stats`.
pub(crate) fn server(broker: &BrokerStatistics, shared: &ListenerState) -> String {
    let mut document = Document::new();
    document.plain("current-jobs-urgent", broker.urgent);
    document.plain("current-jobs-ready", broker.ready);
    document.plain("current-jobs-reserved", broker.leased);
    document.plain("current-jobs-delayed", broker.delayed);
    document.plain("current-jobs-buried", broker.buried);
    for (key, count) in shared.counts.entries() {
        document.plain(key, count);
    }
    document.plain("job-timeouts", broker.expired_total);
    document.plain("total-jobs", broker.messages_total);
    document.plain("max-job-size", shared.body_bytes_max);
    document.plain("current-tubes", broker.queues);
    document.plain("current-connections", shared.connections.open);
    document.plain("current-producers", shared.connections.producers);
    document.plain("current-workers", shared.connections.workers);
    document.plain("current-waiting", broker.waiting);
    document.plain("total-connections", shared.connections.total);
    process(&mut document, shared);
    document.0
}

/// The second half of `stats`: the process, its journal and its machine.
fn process(document: &mut Document, shared: &ListenerState) {
    let facts = &shared.facts;
    document.plain("pid", facts.pid());
    document.quoted("version", facts.version());
    document.plain("rusage-utime", seconds_and_micros(facts.user_time()));
    document.plain("rusage-stime", seconds_and_micros(facts.system_time()));
    document.seconds("uptime", facts.uptime());
    let journal = facts.journal();
    document.plain("binlog-oldest-index", journal.oldest_segment);
    document.plain("binlog-current-index", journal.current_segment);
    document.plain("binlog-records-migrated", journal.records_migrated);
    document.plain("binlog-records-written", journal.records_written);
    document.plain("binlog-max-size", journal.segment_bytes);
    document.plain("draining", shared.draining.has_begun());
    document.plain("id", format!("{:016x}", facts.instance_id()));
    document.quoted("hostname", facts.hostname());
    document.quoted("os", facts.os());
    document.quoted("platform", facts.platform());
}

fn seconds_and_micros(span: Nanos) -> String {
    let micros = span.0 % Nanos::SECOND.0 / 1_000;
    format!("{}.{micros:06}", span.as_secs())
}

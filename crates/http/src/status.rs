//! The state of the server: for people, for monitoring, and for programs that discover its
//! resources.

use std::fmt::Write as _;
use std::time::Duration;

use hyper::StatusCode;
use model::QueueStatistics;
use serde_json::json;

use crate::app::{App, Asked, json, text};
use crate::body::Answer;
use crate::gateway::{Figures, Gateway, Readiness};
use crate::latest::{Aged, SAMPLED_QUEUES_MAX};
use crate::problem::{DRAINING, Problem, Result};

impl<G: Gateway> App<G> {
    pub(crate) fn index(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        Ok(text("text/plain; charset=utf-8", INDEX))
    }

    /// The answer that the process serves: after a failure of its log it ends.
    pub(crate) fn health(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        Ok(json(StatusCode::OK, &json!({ "status": "ok" })))
    }

    /// Answers if messages are taken.
    pub(crate) fn ready(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        match self.gateway.readiness() {
            Readiness::Ready => Ok(json(StatusCode::OK, &json!({ "status": "ready" }))),
            Readiness::Stopping => Err(Problem::unready("stopping", "the server stops")),
            Readiness::Draining => Err(Problem::unready("draining", DRAINING)),
            Readiness::Full => Err(Problem::unready(
                "store-full",
                "the device is full, or the journal as large as --disk-limit lets it be, or it has \
                 as many files as `ulimit -n` lets it: receive and delete messages or let it have \
                 more",
            )),
        }
    }

    pub(crate) async fn metrics(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        self.check_operator()?;
        let Aged { value: page, age } = self.page_or_latest(None, SAMPLED_QUEUES_MAX).await?;
        let text_of = exposition(&self.gateway.figures(), &page.queues, age);
        Ok(text("text/plain; version=0.0.4; charset=utf-8", text_of))
    }

    pub(crate) fn open_api(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        Ok(text("application/json", OPEN_API))
    }
}

/// All figures in the text format of Prometheus.
fn exposition(figures: &Figures, queues: &[QueueStatistics], age: Duration) -> String {
    let mut out = String::new();
    let broker = &figures.broker;
    head(&mut out, "messages", "Messages in all queues, by state.", "gauge");
    let states = [
        ("ready", broker.ready),
        ("leased", broker.leased),
        ("delayed", broker.delayed),
        ("buried", broker.buried),
    ];
    for (state, count) in states {
        line(&mut out, "messages", &format!("{{state=\"{state}\"}}"), count);
    }
    for (name, help, kind, value) in [
        ("queues", "Queues that exist.", "gauge", broker.queues),
        ("consumers_waiting", "Consumers that wait for a message.", "gauge", broker.waiting),
        ("messages_stored_total", "Messages stored.", "counter", broker.messages_total),
        ("leases_expired_total", "Leases that ended by time.", "counter", broker.expired_total),
        ("denied_total", "Commands that a user had no right to.", "counter", broker.denied_total),
        (
            "over_quota_total",
            "Commands that a quota of their user stood against.",
            "counter",
            broker.over_quota_total,
        ),
        (
            "dead_letters_total",
            "Messages that became dead letters.",
            "counter",
            broker.dead_letters.parked_total,
        ),
        (
            "dead_letters_dropped_total",
            "Messages that were deleted instead, as the rules of their queue say.",
            "counter",
            broker.dead_letters.dropped_total,
        ),
        (
            "dead_letters_evicted_total",
            "Dead letters that were deleted, the oldest, since their queue may hold no more.",
            "counter",
            broker.dead_letters.evicted_total,
        ),
        (
            "dead_letters_evicted_durable_total",
            "Durable ones of these.",
            "counter",
            broker.dead_letters.evicted_durable_total,
        ),
    ] {
        head(&mut out, name, help, kind);
        line(&mut out, name, "", value);
    }
    for sample in &figures.samples {
        let kind = if sample.is_counter { "counter" } else { "gauge" };
        head(&mut out, sample.name, sample.help, kind);
        line(&mut out, sample.name, "", sample.value);
    }
    summaries(&mut out, figures);
    let help = "How old the figures of queues are: above 0 where the log does not answer.";
    head(&mut out, "queue_figures_age_seconds", help, "gauge");
    line(&mut out, "queue_figures_age_seconds", "", age.as_secs_f64());
    of_queues(&mut out, queues);
    out
}

fn summaries(out: &mut String, figures: &Figures) {
    for summary in &figures.summaries {
        let name = summary.name;
        head(out, name, summary.help, "summary");
        for (quantile, seconds) in &summary.quantiles {
            line(out, name, &format!("{{quantile=\"{quantile}\"}}"), seconds);
        }
        line(out, &format!("{name}_sum"), "", summary.sum);
        line(out, &format!("{name}_count"), "", summary.count);
    }
}

fn of_queues(out: &mut String, queues: &[QueueStatistics]) {
    head(out, "queue_messages", "Messages of a queue, by state.", "gauge");
    for queue in queues {
        let states = [
            ("ready", queue.ready),
            ("leased", queue.leased),
            ("delayed", queue.delayed),
            ("buried", queue.buried),
        ];
        let name = label(queue.queue.as_str());
        for (state, count) in states {
            let labels = format!("{{queue=\"{name}\",state=\"{state}\"}}");
            line(out, "queue_messages", &labels, count);
        }
    }
    head(out, "queue_consumers", "Consumers of a queue.", "gauge");
    for queue in queues {
        let labels = format!("{{queue=\"{}\"}}", label(queue.queue.as_str()));
        line(out, "queue_consumers", &labels, queue.consumers);
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "# HELP dunlin_{name} {help}\n# TYPE dunlin_{name} {kind}\n");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "dunlin_{name}{labels} {value}");
}

/// A name between the quotes of a label; it holds no line end.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

const INDEX: &str = "\
Dunlin, a message broker.

  POST   /queues/NAME/messages          send (the body is the message)
  GET    /queues/NAME/messages?wait=20s receive, with a lease (header Dunlin-Lease)
  DELETE /leases/LEASE                  it is done: delete it
  POST   /leases/LEASE/release          give it back; also extend, bury, fail
  GET    /queues/NAME/messages?browse   look without receiving
  POST   /topics/NAME/messages          publish
  GET    /topics/NAME/events            follow (server-sent events)
  GET    /tables/NAME/KEY               a value; also PUT, DELETE, POST ?add=5
  GET    /tables  /tables/NAME          tables; the keys of one
  POST   /transactions                  send, settle, change tables: as one
  GET    /queues  /queues/NAME  /topics  /subscriptions  /policies
  PUT    /queues/NAME/policy            rules of its own; also GET, PATCH, DELETE
  GET    /health  /ready  /metrics  /journal  /openapi.json
";

const OPEN_API: &str = include_str!("openapi.json");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::{Sample, Summary};

    #[test]
    fn metrics_are_what_prometheus_reads() {
        let sample = Sample { name: "log_syncs_total", help: "H.", is_counter: true, value: 3 };
        let summary = Summary {
            name: "sync_seconds",
            help: "H.",
            quantiles: vec![(0.5, 0.25)],
            sum: 1.5,
            count: 6,
        };
        let figures =
            Figures { samples: vec![sample], summaries: vec![summary], ..Figures::default() };
        let text = exposition(&figures, &[], Duration::ZERO);
        for expected in [
            "# TYPE dunlin_messages gauge\ndunlin_messages{state=\"ready\"} 0\n",
            "# TYPE dunlin_log_syncs_total counter\ndunlin_log_syncs_total 3\n",
            "dunlin_sync_seconds{quantile=\"0.5\"} 0.25\n",
            "dunlin_sync_seconds_sum 1.5\ndunlin_sync_seconds_count 6\n",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert_eq!(label("a\"b\\c"), "a\\\"b\\\\c");
    }
}

//! How long messages travel while a producer saturates the broker: the test of the JORAM document.
//!
//! One client sends as fast as it may, one takes. The mean time from send to receipt of each tenth
//! of the messages tells whether the consumer starves. In the end a consumer takes a backlog, by
//! itself and beside such a producer: see [`crate::backlog`].

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use crate::Progress;
use crate::backlog::{self, Backlog};
use crate::broker::{Broker, Brokers, Store};
use crate::client::{
    BodyForm, Extent, Kind, Meanwhile, Promise, Sending, Settling, Shape, Travel, Wanted,
};
use crate::closing::Rate;
use crate::error::BenchError;
use crate::report::{Report, Section};
use crate::rounds::{BODY_BYTES_MAX, Load, Passing, Rounds, within};
use crate::table::{Cell, Table};

/// Options of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long the producer sends in each case. Default 2 s.
    pub span: Duration,
    /// Bytes of each body. Default 1024.
    pub body_bytes: usize,
    /// Messages that the producer may have unanswered. Default 100.
    pub outstanding: usize,
    /// The queue to use, which must be empty. Default: queues of its own.
    pub queue: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { span: Duration::from_secs(2), body_bytes: 1024, outstanding: 100, queue: None }
    }
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        within("body", self.body_bytes as u64, 0, BODY_BYTES_MAX)?;
        within("outstanding", self.outstanding as u64, 1, OUTSTANDING_MAX)
    }

    fn load(&self, durable: bool) -> Load {
        Load {
            clients: 1,
            sending: Sending::Plain { outstanding: self.outstanding },
            shape: Shape::new(durable, BodyForm::Bytes, self.body_bytes),
            extent: Extent::Span(self.span),
        }
    }
}

/// A way from producer to consumer.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    kind: Kind,
    subscribed: bool,
    durable: bool,
}

/// The figures of one case.
struct Found {
    name: &'static str,
    sent: Rate,
    /// Until the producer was done.
    received: Rate,
    means: Vec<Option<f64>>,
    mean: Option<f64>,
}

/// Measures to the end, or until `cancel` is set: the report then covers the finished part.
///
/// # Errors
/// Any that leaves no figures: bad options, a broker that cannot be reached, closes a connection or
/// stops answering, a queue with foreign messages.
pub fn run(
    options: &Options,
    brokers: &mut Brokers<'_>,
    cancel: &AtomicBool,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut rounds = Rounds::new(brokers, options.queue.as_deref(), cancel, watch);
    rounds.report.title = format!(
        "travel time: one client sends messages of {} bytes, {} unanswered, one takes them",
        options.body_bytes, options.outstanding
    );
    rounds.report.options = json!({
        "seconds": options.span.as_secs_f64(),
        "body_bytes": options.body_bytes,
        "outstanding": options.outstanding,
    });
    let mut found = Vec::new();
    let mut backlog = None;
    let report = rounds.complete(|rounds| {
        let broker = rounds.open(Store::AsSet)?;
        let warm_up = Load { extent: Extent::Messages(1000), ..options.load(true) };
        rounds.send(&*broker, "warming up", &warm_up)?;
        for way in WAYS {
            rounds.go_on()?;
            found.push(travel(options, way, &*broker, rounds)?);
        }
        rounds.go_on()?;
        let load = options.load(true);
        backlog = Some(backlog::measure(options.span / 2, &load, EACH, &*broker, rounds)?);
        Ok(())
    });
    report.map(|mut report| {
        report.sections.push(rates(&found));
        report.sections.extend(backlog.as_ref().map(Backlog::section));
        report.sections.push(tenths(&found));
        report
    })
}

fn travel(
    options: &Options,
    way: Way,
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<Found, BenchError> {
    let subscription = way.subscribed.then(|| "dunlin-bench".to_owned());
    let passing = Passing {
        load: options.load(way.durable),
        kind: way.kind,
        wanted: Wanted { subscription, ..Wanted::default() },
        settling: EACH,
        travels: true,
    };
    let (field, written) = rounds.pass(broker, way.name, &passing)?;
    let sent = Rate { messages: field.ledger.confirmed(), elapsed: field.confirming() };
    let Meanwhile { messages, elapsed, .. } = field.meanwhile();
    let closing = &mut rounds.report.closing;
    match (way.kind, way.durable) {
        (Kind::Queue, true) => {
            closing.load = "one producer and one consumer of a queue".to_owned();
            closing.durable = Rate { messages: sent.messages, elapsed: field.taking() };
            closing.written = written;
        }
        (Kind::Queue, false) => {
            closing.undurable = Rate { messages: sent.messages, elapsed: field.taking() };
        }
        _ => {}
    }
    let travels = field.travels.as_deref().unwrap_or_default();
    Ok(Found {
        name: way.name,
        sent,
        received: Rate { messages, elapsed },
        means: means(travels, field.ledger.sent()),
        mean: mean(travels.iter()),
    })
}

fn rates(found: &[Found]) -> Section {
    let mut table = Table::new([
        ("way", "way"),
        ("sent", "sent"),
        ("sent_per_second", "sent/s"),
        ("received_per_second", "received/s"),
        ("mean_milliseconds", "mean ms"),
        ("last_tenth_of_second", "last of second"),
    ]);
    for Found { name, sent, received, means, mean } in found {
        let (second, last) = (means.get(1).copied().flatten(), means.last().copied().flatten());
        table.push([
            Cell::text(*name),
            Cell::Count(sent.messages),
            Cell::number(sent.per_second(), 0),
            Cell::number(received.per_second(), 0),
            Cell::number(*mean, 2),
            Cell::number(last.zip(second).map(|(last, second)| last / second), 2),
        ]);
    }
    let heading = "rates while the producer sends; travel times of all that it sent".to_owned();
    Section { key: "rates", heading, table }
}

fn tenths(found: &[Found]) -> Section {
    let mut table = Table::new([
        ("tenth", "tenth"),
        ("queue", QUEUE),
        ("topic", "topic"),
        ("topic_durable", "topic, durable"),
        ("queue_not_persistent", "queue, not persistent"),
    ]);
    for tenth in 0..TENTHS {
        let mean = |way: usize| {
            let means = found.get(way).map(|found| &found.means);
            Cell::number(means.and_then(|means| means.get(tenth).copied().flatten()), 2)
        };
        table.push([Cell::Count(tenth as u64 + 1), mean(0), mean(1), mean(2), mean(3)]);
    }
    let heading = "mean travel time in ms of each tenth of what was sent".to_owned();
    Section { key: "tenths", heading, table }
}

/// The mean milliseconds of each tenth of `sent` messages.
fn means(travels: &[Travel], sent: u64) -> Vec<Option<f64>> {
    let tenth = |travel: &Travel| travel.place * TENTHS as u64 / sent.max(1);
    let of = |index: usize| travels.iter().filter(move |travel| tenth(travel) == index as u64);
    (0..TENTHS).map(|index| mean(of(index))).collect()
}

fn mean<'t>(travels: impl Iterator<Item = &'t Travel>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u64);
    for travel in travels {
        sum += travel.time.as_secs_f64() * 1e3;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

const WAYS: [Way; 4] = [
    Way { name: QUEUE, kind: Kind::Queue, subscribed: false, durable: true },
    Way { name: "topic", kind: Kind::Topic, subscribed: false, durable: true },
    Way { name: "topic, durable", kind: Kind::Topic, subscribed: true, durable: true },
    Way { name: "queue, not persistent", kind: Kind::Queue, subscribed: false, durable: false },
];
const QUEUE: &str = "queue";
/// Each message by itself, without waiting: as JMS clients do by AUTO_ACKNOWLEDGE.
const EACH: Settling = Settling { group: 1, promise: Promise::None };
const TENTHS: usize = 10;
const OUTSTANDING_MAX: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_are_of_sent_messages() {
        let travel = |place, millis| Travel { place, time: Duration::from_millis(millis) };
        let travels = [travel(0, 1), travel(1, 3), travel(19, 7), travel(4, 5)];
        let means = means(&travels, 20);
        assert_eq!(means.len(), TENTHS);
        assert_eq!((means[0], means[2], means[9]), (Some(2.0), Some(5.0), Some(7.0)));
        assert_eq!(means.iter().flatten().count(), 3);
    }

    #[test]
    fn unmeasured_cells_are_empty() {
        let found = [Found {
            name: QUEUE,
            sent: Rate { messages: 10, elapsed: Duration::from_secs(1) },
            received: Rate::default(),
            means: vec![Some(1.0), Some(2.0), None, Some(6.0)],
            mean: Some(3.0),
        }];
        let rates = rates(&found).table.to_value();
        assert_eq!(rates[0]["last_tenth_of_second"], 3.0);
        let tenths = tenths(&found).table.to_value();
        assert_eq!(tenths[3]["queue"], 6.0);
        assert!(tenths[2]["queue"].is_null() && tenths[0]["topic"].is_null());
    }

    #[test]
    fn senseless_options_are_refused() {
        Options::default().check().unwrap();
        assert!(Options { outstanding: 0, ..Options::default() }.check().is_err());
        assert!(Options { body_bytes: usize::MAX, ..Options::default() }.check().is_err());
    }
}

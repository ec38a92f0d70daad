//! The cost of each way to send and receive: the test of Open MQ's document on design factors.
//!
//! One client sends and waits for each message, one takes; the rate is of all messages over the
//! time until the consumer has them. The first line is the base, each other line differs from it
//! in one factor.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use crate::Progress;
use crate::broker::{Broker, Brokers, Store};
use crate::client::{BodyForm, Extent, Kind, Promise, SELECTOR, Sending, Settling, Shape, Wanted};
use crate::closing::Rate;
use crate::error::BenchError;
use crate::report::{Report, Section};
use crate::rounds::{BODY_BYTES_MAX, Load, Passing, Rounds, within};
use crate::table::{Cell, Table};

/// Options of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long the producer sends with each factor. Default 1 s.
    pub span: Duration,
    /// Bytes of each body, but for the larger ones. Default 1024.
    pub body_bytes: usize,
    /// Messages that the producer may have unanswered. Default 1, as with JMS.
    pub outstanding: usize,
    /// The queue to use, which must be empty. Default: queues of its own.
    pub queue: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { span: Duration::from_secs(1), body_bytes: 1024, outstanding: 1, queue: None }
    }
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        within("body", self.body_bytes as u64, 0, BODY_BYTES_MAX / 100)?;
        within("outstanding", self.outstanding as u64, 1, 1000)
    }
}

/// One line.
#[derive(Clone, Copy, Debug)]
struct Factor {
    name: &'static str,
    durable: bool,
    transacted: bool,
    settling: Settling,
    kind: Kind,
    subscribed: bool,
    select: bool,
    form: BodyForm,
    /// Bodies are so many times as long.
    times: usize,
}

impl Factor {
    /// For a broker that does not say when an acknowledgement is safe.
    fn without_answers(self) -> Self {
        let Settling { group, promise } = self.settling;
        let promise = if promise == Promise::Answered { Promise::None } else { promise };
        Self { settling: Settling { group, promise }, ..self }
    }

    fn passing(&self, options: &Options, span: Duration) -> Passing {
        let sending = match self.transacted {
            true => Sending::Transacted { messages: 1, roll_back_every: None },
            false => Sending::Plain { outstanding: options.outstanding },
        };
        let subscription = self.subscribed.then(|| "dunlin-bench".to_owned());
        let selector = self.select.then(|| SELECTOR.to_owned());
        Passing {
            load: Load {
                clients: 1,
                sending,
                shape: Shape::new(self.durable, self.form, self.times * options.body_bytes),
                extent: Extent::Span(span),
            },
            kind: self.kind,
            wanted: Wanted { browse: false, selector, subscription },
            settling: self.settling,
            travels: false,
        }
    }
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
        "factors: one client sends messages of {} bytes, {} unanswered, one takes them",
        options.body_bytes, options.outstanding
    );
    rounds.report.options = json!({
        "seconds": options.span.as_secs_f64(),
        "body_bytes": options.body_bytes,
        "outstanding": options.outstanding,
    });
    let heading = "each line differs from the first in what it names".to_owned();
    rounds.report.sections.push(Section { key: "factors", heading, table: table() });
    rounds.complete(|rounds| {
        let broker = rounds.open(Store::AsSet)?;
        let warm_up = BASE.passing(options, options.span.min(WARM_UP));
        let (field, _) = rounds.pass(&*broker, "warming up", &warm_up)?;
        if field.leaves_unanswered {
            note(UNANSWERED, rounds);
        }
        let mut base = None;
        for factor in FACTORS {
            rounds.go_on()?;
            let factor = if field.leaves_unanswered { factor.without_answers() } else { factor };
            measure(options, factor, &mut base, &*broker, rounds)?;
        }
        Ok(())
    })
}

/// Above the table.
fn note(what: &str, rounds: &mut Rounds<'_, '_>) {
    if let Some(section) = rounds.report.sections.first_mut() {
        section.heading = format!("{}\n{what}", section.heading);
    }
}

fn table() -> Table {
    Table::new([
        ("factor", "factor"),
        ("messages", "messages"),
        ("messages_per_second", "messages/s"),
        ("price_percent", "price, %"),
        ("syncs_per_message", "syncs a message"),
    ])
}

fn measure(
    options: &Options,
    factor: Factor,
    base: &mut Option<f64>,
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<(), BenchError> {
    let passing = factor.passing(options, options.span);
    let (field, written) = rounds.pass(broker, factor.name, &passing)?;
    let rate = Rate { messages: field.ledger.seen(), elapsed: field.taking() };
    let per_second = rate.per_second();
    let closing = &mut rounds.report.closing;
    if factor.name == BASE.name {
        *base = per_second;
        closing.load = "one producer that waits for each message, one consumer".to_owned();
        (closing.durable, closing.written) = (rate, written);
    } else if factor.name == UNDURABLE.name {
        closing.undurable = rate;
    }
    let messages = rate.messages.max(1) as f64;
    let syncs = written.map(|written| written.syncs as f64 / messages);
    if let Some(section) = rounds.report.sections.first_mut() {
        section.table.push([
            Cell::text(factor.name),
            Cell::Count(rate.messages),
            Cell::number(per_second, 0),
            Cell::number(price(per_second, *base), 1),
            Cell::number(syncs, 3),
        ]);
    }
    Ok(())
}

/// How much less than the base, in percent; below 0 it is more.
fn price(rate: Option<f64>, base: Option<f64>) -> Option<f64> {
    rate.zip(base).map(|(rate, base)| (1.0 - rate / base) * 100.0)
}

const BASE: Factor = Factor {
    name: "queue, persistent, each acknowledged, bytes",
    durable: true,
    transacted: false,
    settling: Settling { group: 1, promise: Promise::Answered },
    kind: Kind::Queue,
    subscribed: false,
    select: false,
    form: BodyForm::Bytes,
    times: 1,
};
const UNDURABLE: Factor = Factor { name: "not persistent", durable: false, ..BASE };
const TOPIC: Factor = Factor { name: "topic, not durable", kind: Kind::Topic, ..BASE };
const FACTORS: [Factor; 13] = [
    BASE,
    UNDURABLE,
    Factor {
        name: "transacted, a commit each",
        transacted: true,
        settling: Settling { group: 1, promise: Promise::Committed },
        ..BASE
    },
    Factor {
        name: "a hundred acknowledged at once",
        settling: Settling { group: 100, promise: Promise::Answered },
        ..BASE
    },
    Factor { name: "acknowledged lazily", settling: Settling::LAZY, ..BASE },
    TOPIC,
    Factor { name: "topic, durable", subscribed: true, ..TOPIC },
    Factor { name: "selector", select: true, ..BASE },
    Factor { name: "topic, not durable, selector", select: true, ..TOPIC },
    Factor { name: "10 times the bytes", times: 10, ..BASE },
    Factor { name: "100 times the bytes", times: 100, ..BASE },
    Factor { name: "text", form: BodyForm::Text, ..BASE },
    Factor { name: "no body", form: BodyForm::Nothing, ..BASE },
];
const UNANSWERED: &str =
    "(this broker does not say when an acknowledgement is safe: nobody waits for that)";
const WARM_UP: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_is_the_missing_percentage() {
        assert_eq!(price(Some(75.0), Some(100.0)), Some(25.0));
        assert_eq!(price(Some(150.0), Some(100.0)), Some(-50.0));
        assert_eq!(price(None, Some(100.0)), None);
    }

    #[test]
    fn names_tell_the_factors_apart() {
        let mut names = FACTORS.map(|factor| factor.name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FACTORS.len());
    }

    #[test]
    fn senseless_options_are_refused() {
        Options::default().check().unwrap();
        assert!(Options { outstanding: 0, ..Options::default() }.check().is_err());
        assert!(Options { body_bytes: 1 << 20, ..Options::default() }.check().is_err());
    }
}

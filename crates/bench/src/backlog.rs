//! Shows if a consumer with a backlog starves while a producer saturates the broker. The figures
//! are its rate, and the processor time of a message, by itself and beside the producer.
//!
//! Without a backlog, a consumer takes no more than is sent, and its rate tells nothing about
//! starving.

use std::time::Duration;

use crate::broker::Broker;
use crate::client::{
    Consumer, Extent, Field, Kind, Place, Producer, Sending, Settling, Wanted, Work,
};
use crate::closing::Rate;
use crate::error::BenchError;
use crate::processor;
use crate::report::Section;
use crate::rounds::{Load, Rounds};
use crate::table::{Cell, Table};

/// The figures of both.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    alone: Taking,
    beside: Taking,
    /// Of the processor, for a message that is sent and not taken.
    sending: Option<Duration>,
}

/// A consumer at work.
#[derive(Clone, Copy, Debug, Default)]
struct Taking {
    received: Rate,
    sent: Rate,
    /// Of the processor, by clients and broker; nothing where the broker is another process.
    spent: Option<Duration>,
}

/// Measures it in a queue: with a backlog of the messages sent in `span`, a consumer that settles
/// as said, and the producer of `load`.
///
/// # Errors
/// Those of the clients.
pub(crate) fn measure(
    span: Duration,
    load: &Load,
    settling: Settling,
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<Backlog, BenchError> {
    let scene = Scene { span, load, settling, broker };
    let sending = scene.sending(rounds)?;
    rounds.go_on()?;
    let alone = scene.taking("alone", None, rounds)?;
    rounds.go_on()?;
    let beside = scene.taking("beside a producer", Some(load.sending), rounds)?;
    Ok(Backlog { alone, beside, sending })
}

struct Scene<'s> {
    span: Duration,
    load: &'s Load,
    settling: Settling,
    broker: &'s dyn Broker,
}

impl Scene<'_> {
    /// Processor time of a message that no consumer takes.
    fn sending(&self, rounds: &mut Rounds<'_, '_>) -> Result<Option<Duration>, BenchError> {
        let load = Load { extent: Extent::Span(self.span), ..self.load.clone() };
        let place = rounds.place(Kind::Queue);
        let mut field = self.field();
        let meter = Meter::start(self.broker);
        let producer = producers(&place, load.sending);
        rounds.stage(self.broker).run("sending alone", producer, &mut field)?;
        let spent = meter.read();
        let count = u32::try_from(field.ledger.confirmed()).unwrap_or(u32::MAX);
        rounds.clear(self.broker, "sending alone", &place, &mut field)?;
        Ok(spent.and_then(|spent| spent.checked_div(count)))
    }

    /// A consumer takes a backlog, maybe while a producer adds to it.
    fn taking(
        &self,
        label: &str,
        beside: Option<Sending>,
        rounds: &mut Rounds<'_, '_>,
    ) -> Result<Taking, BenchError> {
        let place = rounds.place(Kind::Queue);
        let mut field = self.field();
        let fill = producers(&place, FILL);
        rounds.stage(self.broker).run(&format!("{label}: a backlog"), fill, &mut field)?;
        let filled = field.ledger.confirmed();
        let producing = usize::from(beside.is_some());
        let extent = beside.map_or(Extent::Messages(0), |_| Extent::Span(self.span));
        field.extend(extent, producing);
        let consumer = Consumer::new(&place, Wanted::default(), self.settling);
        let mut workers: Vec<Box<dyn Work>> = vec![Box::new(consumer)];
        workers.extend(beside.into_iter().flat_map(|sending| producers(&place, sending)));
        let meter = Meter::start(self.broker);
        let taken = rounds.stage(self.broker).run(label, workers, &mut field);
        let was_cancelled = rounds.is_cancelled();
        rounds.check(label, &field, taken.is_ok() && !was_cancelled);
        taken?;
        if beside.is_none() {
            let received = Rate { messages: field.ledger.seen(), elapsed: field.taking() };
            return Ok(Taking { received, sent: Rate::default(), spent: meter.read() });
        }
        let meanwhile = field.meanwhile();
        let sent = field.ledger.confirmed() - filled;
        Ok(Taking {
            received: Rate { messages: meanwhile.messages, elapsed: meanwhile.elapsed },
            sent: Rate { messages: sent, elapsed: field.confirming() },
            spent: meter.until(meanwhile.spent),
        })
    }

    fn field(&self) -> Field {
        let mut field = Field::new(self.load.shape.clone(), Extent::Span(self.span));
        field.producing = 1;
        field
    }
}

fn producers(place: &Place, sending: Sending) -> Vec<Box<dyn Work>> {
    vec![Box::new(Producer::new(place, sending))]
}

impl Backlog {
    /// Both as a table.
    pub(crate) fn section(&self) -> Section {
        let mut table = Table::new([
            ("consumer", "consumer"),
            ("received_per_second", "received/s"),
            ("of_alone", "of alone"),
            ("sent_per_second", "sent/s"),
            ("microseconds_each", "us each"),
            ("core_for_core", "core for core"),
        ]);
        for (name, taking) in [("alone", &self.alone), ("beside a producer", &self.beside)] {
            let rate = taking.received.per_second();
            let of_alone = rate.zip(self.alone.received.per_second());
            let each = self.each(taking);
            let of_each = each.zip(self.each(&self.alone));
            table.push([
                Cell::text(name),
                Cell::number(rate, 0),
                Cell::number(of_alone.map(|(rate, alone)| rate / alone), 2),
                Cell::number(taking.sent.per_second(), 0),
                Cell::number(each.map(|each| each * 1e6), 1),
                Cell::number(of_each.map(|(each, alone)| alone / each), 2),
            ]);
        }
        let heading =
            "a consumer of a queue with a backlog; us each: of the processor, for a message \
                       taken, without what sending costs"
                .to_owned();
        Section { key: "backlog", heading, table }
    }

    /// Seconds of the processor for a message taken.
    fn each(&self, taking: &Taking) -> Option<f64> {
        let sending = match taking.sent.messages {
            0 => 0.0,
            messages => self.sending?.as_secs_f64() * messages as f64,
        };
        let spent = taking.spent?.as_secs_f64() - sending;
        (taking.received.messages > 0 && spent > 0.0)
            .then(|| spent / taking.received.messages as f64)
    }
}

/// Processor time of this process, if the broker is part of it.
struct Meter(Option<Duration>);

impl Meter {
    fn start(broker: &dyn Broker) -> Self {
        Self(broker.written().is_some().then(processor::of_process))
    }

    fn read(&self) -> Option<Duration> {
        self.until(processor::of_process())
    }

    fn until(&self, end: Duration) -> Option<Duration> {
        self.0.map(|start| end.saturating_sub(start))
    }
}

/// A backlog is made quickly, so that it lasts.
const FILL: Sending = Sending::Transacted { messages: 1000, roll_back_every: None };

#[cfg(test)]
mod tests {
    use super::*;

    const fn rate(messages: u64) -> Rate {
        Rate { messages, elapsed: Duration::from_secs(1) }
    }

    #[test]
    fn backlog_subtracts_the_cost_of_sending() {
        let spent = |millis| Some(Duration::from_millis(millis));
        let backlog = Backlog {
            alone: Taking { received: rate(1000), sent: Rate::default(), spent: spent(10) },
            beside: Taking { received: rate(500), sent: rate(100), spent: spent(10) },
            sending: Some(Duration::from_micros(40)),
        };
        let rows = backlog.section().table.to_value();
        assert_eq!(rows[0]["microseconds_each"], 10.0);
        assert_eq!(rows[1]["of_alone"], 0.5);
        assert_eq!(rows[1]["microseconds_each"], 12.0);
        assert!((rows[1]["core_for_core"].as_f64().unwrap() - 10.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn another_process_spends_unseen() {
        let taking = Taking { received: rate(10), sent: rate(10), spent: None };
        let backlog = Backlog { alone: taking, beside: taking, sending: None };
        let rows = backlog.section().table.to_value();
        assert_eq!(rows[1]["of_alone"], 1.0);
        assert!(rows[1]["core_for_core"].is_null());
    }
}

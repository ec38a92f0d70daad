//! The cost of transactions and of the disk for a sender: the test of the ActiveMQ document.
//!
//! One client sends some messages to a queue, persistent or not, in transactions or not, with three
//! policies of the store; the time ends when the broker has answered for all. The document found
//! that a transaction which holds nothing persistent was flushed all the same. Then many clients do
//! so at once, the load that group commit is for.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use crate::Progress;
use crate::broker::{Broker, Brokers, Store, Written};
use crate::client::{BodyForm, Extent, Sending, Shape};
use crate::closing::Rate;
use crate::error::BenchError;
use crate::report::{Report, Section};
use crate::rounds::{BODY_BYTES_MAX, CLIENTS_MAX, Load, Rounds, median, within};
use crate::table::{Cell, Table};

/// Options of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Messages of a cell. Default 1000, as in the document.
    pub messages: u64,
    /// Bytes of each body. Default 1024.
    pub body_bytes: usize,
    /// Messages of a transaction. Default 1: each send is committed.
    pub commit_every: usize,
    /// How often each cell is measured; the median counts. Default 3.
    pub rounds: usize,
    /// Clients at once in the comparison at the end. Default 64.
    pub clients: usize,
    /// How long each half of the comparison takes. Default 2 s.
    pub span: Duration,
    /// The queue to use, which must be empty. Default: queues of its own.
    pub queue: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            messages: 1000,
            body_bytes: 1024,
            commit_every: 1,
            rounds: 3,
            clients: 64,
            span: Duration::from_secs(2),
            queue: None,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        within("messages", self.messages, 1, 1_000_000)?;
        within("body", self.body_bytes as u64, 0, BODY_BYTES_MAX)?;
        within("commit-every", self.commit_every as u64, 1, self.messages.min(10_000))?;
        within("rounds", self.rounds as u64, 1, 100)?;
        within("clients", self.clients as u64, 1, CLIENTS_MAX)
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
    watch: &mut dyn FnMut(&Progress),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut rounds = Rounds::new(brokers, options.queue.as_deref(), cancel, watch);
    rounds.report.title = format!(
        "matrix: {} messages of {} bytes by one client, {} a transaction, median of {}",
        options.messages, options.body_bytes, options.commit_every, options.rounds
    );
    rounds.report.options = json!({
        "messages": options.messages,
        "body_bytes": options.body_bytes,
        "commit_every": options.commit_every,
        "rounds": options.rounds,
        "clients": options.clients,
        "seconds": options.span.as_secs_f64(),
    });
    rounds.report.sections.push(Section { key: "cells", heading: HEADING.into(), table: table() });
    rounds.complete(|rounds| {
        for store in rounds.brokers.stores() {
            rounds.go_on()?;
            measure(options, *store, rounds)?;
        }
        Ok(())
    })
}

fn table() -> Table {
    Table::new([
        ("store", "store"),
        ("session", "session"),
        ("delivery", "delivery"),
        ("milliseconds", "ms"),
        ("messages_per_second", "messages/s"),
        ("messages", "confirmed"),
        ("syncs_per_message", "syncs a message"),
    ])
}

/// All cells of a store.
fn measure(options: &Options, store: Store, rounds: &mut Rounds<'_, '_>) -> Result<(), BenchError> {
    let broker = rounds.open(store)?;
    let warm_up = Options { messages: options.messages.min(200), ..options.clone() };
    for (transacted, durable) in CELLS {
        let load = warm_up.load(transacted, durable);
        rounds.send(&*broker, &format!("{}: warming up", store.name()), &load)?;
    }
    for (transacted, durable) in CELLS {
        rounds.go_on()?;
        cell(options, store, (transacted, durable), &*broker, rounds)?;
    }
    if matches!(store, Store::Always | Store::AsSet) {
        let shape = |durable| Shape::new(durable, BodyForm::Bytes, options.body_bytes);
        let load = |durable| Load {
            clients: options.clients,
            sending: Sending::Plain { outstanding: 1 },
            shape: shape(durable),
            extent: Extent::Span(options.span),
        };
        let name = format!("{} clients, a message each at a time", options.clients);
        rounds.compare(&*broker, &name, load)?;
    }
    Ok(())
}

fn cell(
    options: &Options,
    store: Store,
    (transacted, durable): (bool, bool),
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<(), BenchError> {
    let (session, delivery) = (session(transacted), delivery(durable));
    let label = format!("{} {session} {delivery}", store.name());
    let load = options.load(transacted, durable);
    let (mut times, mut messages, mut written) = (Vec::new(), 0, None);
    for _ in 0..options.rounds {
        let sent = rounds.send(broker, &label, &load)?;
        times.push(sent.rate.elapsed);
        messages += sent.rate.messages;
        written = sum(written, sent.written);
        if rounds.is_cancelled() {
            break;
        }
    }
    let each = messages / times.len() as u64;
    let rate = median(times).map(|elapsed| Rate { messages: each, elapsed });
    let millis = rate.map(|rate| rate.elapsed.as_secs_f64() * 1e3);
    let syncs = written.map(|written| written.syncs as f64 / messages.max(1) as f64);
    if let Some(section) = rounds.report.sections.first_mut() {
        section.table.push([
            Cell::text(store.name()),
            Cell::text(session),
            Cell::text(delivery),
            Cell::number(millis, 1),
            Cell::number(rate.and_then(Rate::per_second), 0),
            Cell::Count(messages),
            Cell::number(syncs, 3),
        ]);
    }
    Ok(())
}

impl Options {
    /// The load of a cell. A lone client waits for each persistent message, as JMS does, and for
    /// others only at the end.
    fn load(&self, transacted: bool, durable: bool) -> Load {
        let outstanding = if durable { 1 } else { OUTSTANDING };
        let sending = match transacted {
            true => Sending::Transacted { messages: self.commit_every, roll_back_every: None },
            false => Sending::Plain { outstanding },
        };
        let shape = Shape::new(durable, BodyForm::Bytes, self.body_bytes);
        Load { clients: 1, sending, shape, extent: Extent::Messages(self.messages) }
    }
}

fn sum(one: Option<Written>, other: Option<Written>) -> Option<Written> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    Some(Written {
        batches: one.batches + other.batches,
        syncs: one.syncs + other.syncs,
        bytes: one.bytes + other.bytes,
    })
}

fn session(transacted: bool) -> &'static str {
    if transacted { "transacted" } else { "plain" }
}

fn delivery(durable: bool) -> &'static str {
    if durable { "persistent" } else { "non-persistent" }
}

/// Transacted or not, persistent or not, in the order of the document.
const CELLS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];
/// As many as brokers give credit for.
const OUTSTANDING: usize = 1000;
const HEADING: &str = "time until the broker has answered for all";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_options_are_refused() {
        Options::default().check().unwrap();
        for change in [
            (|o| o.messages = 0) as fn(&mut Options),
            |o| o.commit_every = 1001,
            |o| o.rounds = 0,
            |o| o.clients = 1001,
            |o| o.body_bytes = usize::MAX,
        ] {
            let mut options = Options::default();
            change(&mut options);
            assert!(matches!(options.check(), Err(BenchError::Options(_))), "{options:?}");
        }
    }

    #[test]
    fn sole_client_awaits_durable_messages() {
        let options = Options::default();
        let sending = |transacted, durable| options.load(transacted, durable).sending;
        assert_eq!(sending(false, true), Sending::Plain { outstanding: 1 });
        assert_eq!(sending(false, false), Sending::Plain { outstanding: 1000 });
        let each = Sending::Transacted { messages: 1, roll_back_every: None };
        assert_eq!((sending(true, true), sending(true, false)), (each, each));
    }
}

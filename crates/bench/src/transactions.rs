//! Shows if commits share syncs: the test of the bigdata Journal document.
//!
//! More and more clients send a hundred messages a transaction, a tenth of which is rolled back.
//! Without group commit two hundred clients commit no more than one. Then readers look through a
//! queue, while one client writes.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use crate::Progress;
use crate::broker::{Broker, Brokers, Store};
use crate::client::{
    BodyForm, Browser, Extent, Field, Kind, Place, Producer, Sending, Shape, Work,
};
use crate::error::BenchError;
use crate::report::{Report, Section};
use crate::rounds::{BODY_BYTES_MAX, CLIENTS_MAX, Load, Rounds, Sent, within};
use crate::table::{Cell, Table};

/// Options of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many clients at a time, one after the other. Default 1, 2, 10, 20, 100, 200.
    pub clients: Vec<usize>,
    /// Messages of a transaction. Default 100.
    pub operations: usize,
    /// Which transactions are rolled back: every so manieth. Default 10.
    pub roll_back_every: u64,
    /// Bytes of each body. Default 100.
    pub body_bytes: usize,
    /// How long each number of clients is measured. Default 2 s.
    pub span: Duration,
    /// Clients that read while one writes; 0: none. Default 20.
    pub readers: usize,
    /// The queue to use, which must be empty. Default: queues of its own.
    pub queue: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clients: vec![1, 2, 10, 20, 100, 200],
            operations: 100,
            roll_back_every: 10,
            body_bytes: 100,
            span: Duration::from_secs(2),
            readers: 20,
            queue: None,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        within("the numbers of clients", self.clients.len() as u64, 1, 100)?;
        for clients in &self.clients {
            within("clients", *clients as u64, 1, CLIENTS_MAX)?;
        }
        within("operations", self.operations as u64, 1, OPERATIONS_MAX)?;
        within("roll-back-every", self.roll_back_every, 2, u64::MAX)?;
        within("body", self.body_bytes as u64, 0, BODY_BYTES_MAX)?;
        within("readers", self.readers as u64, 0, CLIENTS_MAX)
    }

    fn load(&self, clients: usize, durable: bool) -> Load {
        let roll_back_every = Some(self.roll_back_every);
        let sending = Sending::Transacted { messages: self.operations, roll_back_every };
        let shape = Shape::new(durable, BodyForm::Bytes, self.body_bytes);
        Load { clients, sending, shape, extent: Extent::Span(self.span) }
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
        "transactions: {} persistent messages of {} bytes each, one of {} rolled back",
        options.operations, options.body_bytes, options.roll_back_every
    );
    rounds.report.options = json!({
        "clients": options.clients,
        "operations": options.operations,
        "roll_back_every": options.roll_back_every,
        "body_bytes": options.body_bytes,
        "seconds": options.span.as_secs_f64(),
        "readers": options.readers,
    });
    let heading = "transactions by concurrent clients".to_owned();
    rounds.report.sections.push(Section { key: "clients", heading, table: clients_table() });
    rounds.complete(|rounds| {
        let broker = rounds.open(Store::AsSet)?;
        let warm_up = Load { extent: Extent::Messages(1), ..options.load(1, true) };
        rounds.send(&*broker, "warming up", &warm_up)?;
        by_clients(options, &*broker, rounds)?;
        if options.readers > 0 {
            rounds.go_on()?;
            read(options, &*broker, rounds)?;
        }
        Ok(())
    })
}

fn clients_table() -> Table {
    Table::new([
        ("clients", "clients"),
        ("committed", "committed"),
        ("aborted", "aborted"),
        ("failed", "failed"),
        ("seconds", "seconds"),
        ("transactions_per_second", "TPS"),
        ("ratio_to_first", "of the first"),
        ("syncs_per_commit", "syncs a commit"),
    ])
}

/// The numbers of clients, and the last of them without durability.
fn by_clients(
    options: &Options,
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<(), BenchError> {
    let mut first = None;
    for clients in &options.clients {
        rounds.go_on()?;
        let sent = rounds.send(broker, &clients_label(*clients), &options.load(*clients, true))?;
        let rate = per_second(&sent);
        first = first.or(rate);
        let ratio = rate.zip(first).map(|(rate, first)| rate / first);
        rounds.report.closing.load = format!("{}, in transactions", clients_label(*clients));
        rounds.report.closing.durable = sent.rate;
        rounds.report.closing.written = sent.written;
        let row = row(*clients, &sent, rate, ratio);
        if let Some(section) = rounds.report.sections.first_mut() {
            section.table.push(row);
        }
    }
    rounds.go_on()?;
    let most = options.clients.last().copied().unwrap_or(1);
    let label = format!("{}, not persistent", clients_label(most));
    let undurable = rounds.send(broker, &label, &options.load(most, false))?;
    rounds.report.closing.undurable = undurable.rate;
    Ok(())
}

fn row(clients: usize, sent: &Sent, rate: Option<f64>, ratio: Option<f64>) -> [Cell; 8] {
    let ended = sent.transactions;
    let commits = ended.committed.max(1) as f64;
    [
        Cell::Count(clients as u64),
        Cell::Count(ended.committed),
        Cell::Count(ended.aborted),
        Cell::Count(ended.failed),
        Cell::Number(sent.rate.elapsed.as_secs_f64(), 2),
        Cell::number(rate, 1),
        Cell::number(ratio, 2),
        Cell::number(sent.written.map(|written| written.syncs as f64 / commits), 3),
    ]
}

/// Commits a second.
fn per_second(sent: &Sent) -> Option<f64> {
    let seconds = sent.rate.elapsed.as_secs_f64();
    (seconds > 0.0).then(|| sent.transactions.committed as f64 / seconds)
}

fn clients_label(clients: usize) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}

/// Readers that look through a queue while one client writes to it.
fn read(
    options: &Options,
    broker: &dyn Broker,
    rounds: &mut Rounds<'_, '_>,
) -> Result<(), BenchError> {
    let place = rounds.place(Kind::Queue);
    let shape = Shape::new(true, BodyForm::Bytes, options.body_bytes);
    let mut field = Field::new(shape, Extent::Messages(u64::from(10 * READS)));
    field.producing = 1;
    let filler: Vec<Box<dyn Work>> = vec![writer(&place, 100)];
    rounds.stage(broker).run("readers: filling the queue", filler, &mut field)?;
    let before = field.ledger.confirmed();
    field.extend(Extent::Span(options.span), 1);
    let reader = || Box::new(Browser::new(&place, READS)) as Box<dyn Work>;
    let mut workers: Vec<_> = std::iter::repeat_with(reader).take(options.readers).collect();
    workers.push(writer(&place, 1));
    let ran = rounds.stage(broker).run("readers", workers, &mut field);
    let seconds = field.confirming().as_secs_f64();
    let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    let written = field.ledger.confirmed() - before;
    let mut table = Table::new([
        ("readers", "readers"),
        ("trials", "trials"),
        ("trials_per_second", "trials/s"),
        ("reads_per_second", "reads/s"),
        ("written", "written"),
        ("written_per_second", "written/s"),
    ]);
    table.push([
        Cell::Count(options.readers as u64),
        Cell::Count(field.trials),
        Cell::number(rate(field.trials), 1),
        Cell::number(rate(field.trials * u64::from(READS)), 0),
        Cell::Count(written),
        Cell::number(rate(written), 0),
    ]);
    let heading = format!("trials of {READS} reads, while one client writes message by message");
    if ran.is_ok() {
        rounds.report.sections.push(Section { key: "readers", heading, table });
    }
    field.extend(Extent::Messages(0), 0);
    rounds.clear(broker, "readers", &place, &mut field).and(ran)
}

fn writer(to: &Place, outstanding: usize) -> Box<dyn Work> {
    Box::new(Producer::new(to, Sending::Plain { outstanding }))
}

/// Reads of a trial, as in the document.
const READS: u32 = 100;
/// More would not fit into the credit that brokers give.
const OPERATIONS_MAX: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_options_are_refused() {
        Options::default().check().unwrap();
        for change in [
            (|o| o.clients.clear()) as fn(&mut Options),
            |o| o.clients.push(0),
            |o| o.operations = 0,
            |o| o.roll_back_every = 1,
            |o| o.readers = 1001,
        ] {
            let mut options = Options::default();
            change(&mut options);
            assert!(matches!(options.check(), Err(BenchError::Options(_))), "{options:?}");
        }
    }
}

//! Common parts of all benchmarks over AMQP: places of their own, loads with messages that are
//! taken away and checked, and the end of every run.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Progress;
use crate::broker::{Broker, Brokers, Store, Written};
use crate::client::{
    BodyForm, Consumer, Extent, Field, Kind, Place, Probe, Producer, Sending, Settling, Shape,
    Stage, Transactions, Wanted, Work,
};
use crate::closing::Rate;
use crate::error::BenchError;
use crate::report::Report;

/// A run under way.
pub(crate) struct Rounds<'r, 'b> {
    pub(crate) brokers: &'r mut Brokers<'b>,
    pub(crate) report: Report,
    cancel: &'r AtomicBool,
    watch: &'r mut dyn FnMut(&Progress),
    queue: Option<String>,
    /// Places that it has named.
    places: u32,
}

/// The messages that some clients send.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    pub(crate) sending: Sending,
    pub(crate) shape: Shape,
    pub(crate) extent: Extent,
}

/// A load that is taken meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub(crate) load: Load,
    pub(crate) kind: Kind,
    pub(crate) wanted: Wanted,
    pub(crate) settling: Settling,
    /// True if the time of each message on its way is kept.
    pub(crate) travels: bool,
}

/// The results of a load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Messages that the broker confirmed, until the last was.
    pub(crate) rate: Rate,
    pub(crate) transactions: Transactions,
    /// The broker's writes meanwhile.
    pub(crate) written: Option<Written>,
}

impl<'r, 'b> Rounds<'r, 'b> {
    /// With a queue that must be empty, or ones of its own.
    pub(crate) fn new(
        brokers: &'r mut Brokers<'b>,
        queue: Option<&str>,
        cancel: &'r AtomicBool,
        watch: &'r mut dyn FnMut(&Progress),
    ) -> Self {
        let report = Report { broker: brokers.name(), ..Report::default() };
        Self { brokers, report, cancel, watch, queue: queue.map(str::to_owned), places: 0 }
    }

    /// The run by `steps`, and its end. When it is called off, the figures found until then count.
    pub(crate) fn complete(
        mut self,
        steps: impl FnOnce(&mut Self) -> Result<(), BenchError>,
    ) -> Result<Report, BenchError> {
        if let Some(directory) = self.brokers.directory() {
            self.report.closing.measure_disk(directory, false)?;
        }
        match steps(&mut self) {
            Ok(()) | Err(BenchError::Cancelled) => {}
            Err(error) => return Err(error),
        }
        self.report.cancelled = self.is_cancelled();
        if !self.report.cancelled
            && let Some(directory) = self.brokers.directory()
        {
            let phase = "measuring the disk";
            (self.watch)(&Progress { phase, done: 0, total: 1 });
            self.report.closing.measure_disk(directory, true)?;
        }
        Ok(self.report)
    }

    /// Opens a broker. If a queue was named, it must be empty.
    pub(crate) fn open(&mut self, store: Store) -> Result<Box<dyn Broker>, BenchError> {
        let broker = self.brokers.open(store)?;
        if let Some(queue) = self.queue.clone() {
            let place = Place { name: queue.clone(), kind: Kind::Queue };
            let shape = Shape::new(false, BodyForm::Nothing, 0);
            let mut field = Field::new(shape, Extent::Messages(0));
            let probe: Vec<Box<dyn Work>> = vec![Box::new(Probe::new(&place))];
            self.stage(&*broker).run("looking into the queue", probe, &mut field)?;
            if !field.ledger.problems(false).is_empty() {
                return Err(BenchError::HoldsMessages { queue });
            }
        }
        Ok(broker)
    }

    /// A place that no other client uses: the named queue, or one with a new name.
    pub(crate) fn place(&mut self, kind: Kind) -> Place {
        if let (Kind::Queue, Some(name)) = (kind, &self.queue) {
            return Place { name: name.clone(), kind };
        }
        self.places += 1;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (process, time) = (std::process::id(), since.as_nanos());
        Place { name: format!("dunlin-bench-{process}-{time}-{}", self.places), kind }
    }

    /// Runs some clients against the broker.
    pub(crate) fn stage(&mut self, broker: &dyn Broker) -> Stage<'_> {
        Stage { target: broker.target(), cancel: self.cancel, watch: self.watch }
    }

    /// True if the run was called off.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// An error once the run was called off: for between two measurements.
    pub(crate) fn go_on(&self) -> Result<(), BenchError> {
        if self.is_cancelled() { Err(BenchError::Cancelled) } else { Ok(()) }
    }

    /// Notes the problems of a phase; with `taken` all of its messages should have come.
    pub(crate) fn check(&mut self, label: &str, field: &Field, taken: bool) {
        self.report.problems.extend(field.problems(label, taken));
    }

    /// Lets clients send, and takes everything away again: each confirmed message must come once.
    pub(crate) fn send(
        &mut self,
        broker: &dyn Broker,
        label: &str,
        load: &Load,
    ) -> Result<Sent, BenchError> {
        let place = self.place(Kind::Queue);
        let mut field = Field::new(load.shape.clone(), load.extent);
        field.producing = load.clients;
        let producer = || Box::new(Producer::new(&place, load.sending)) as Box<dyn Work>;
        let producers = std::iter::repeat_with(producer).take(load.clients).collect();
        let before = broker.written();
        self.stage(broker).run(label, producers, &mut field)?;
        let written = broker.written().zip(before).map(|(after, before)| after.since(before));
        let messages = field.ledger.confirmed();
        let rate = Rate { messages, elapsed: field.confirming() };
        let transactions = field.transactions;
        self.clear(broker, label, &place, &mut field)?;
        Ok(Sent { rate, transactions, written })
    }

    /// Lets clients send while one takes, until it has all.
    pub(crate) fn pass(
        &mut self,
        broker: &dyn Broker,
        label: &str,
        passing: &Passing,
    ) -> Result<(Field, Option<Written>), BenchError> {
        let place = self.place(passing.kind);
        let load = &passing.load;
        let mut field = Field::new(load.shape.clone(), load.extent);
        field.producing = load.clients;
        field.travels = passing.travels.then(Vec::new);
        let consumer = Consumer::new(&place, passing.wanted.clone(), passing.settling);
        let mut workers: Vec<Box<dyn Work>> = vec![Box::new(consumer)];
        let producer = || Box::new(Producer::new(&place, load.sending)) as Box<dyn Work>;
        workers.extend(std::iter::repeat_with(producer).take(load.clients));
        let before = broker.written();
        self.stage(broker).run(label, workers, &mut field)?;
        let written = broker.written().zip(before).map(|(after, before)| after.since(before));
        let was_cancelled = self.is_cancelled();
        self.check(label, &field, !was_cancelled);
        Ok((field, written))
    }

    /// Takes away and checks the messages left in a place.
    pub(crate) fn clear(
        &mut self,
        broker: &dyn Broker,
        label: &str,
        place: &Place,
        field: &mut Field,
    ) -> Result<(), BenchError> {
        let taker = Consumer::new(place, Wanted::default(), Settling::LAZY);
        let checking = format!("{label}: checking");
        let taken = self.stage(broker).run(&checking, vec![Box::new(taker)], field);
        let was_cancelled = self.is_cancelled();
        self.check(label, field, taken.is_ok() && !was_cancelled);
        taken
    }

    /// The load persistent and not, for the closing lines.
    pub(crate) fn compare(
        &mut self,
        broker: &dyn Broker,
        load: &str,
        of: impl Fn(bool) -> Load,
    ) -> Result<(), BenchError> {
        self.go_on()?;
        self.report.closing.load = load.to_owned();
        let durable = self.send(broker, &format!("{load}, persistent"), &of(true))?;
        self.report.closing.durable = durable.rate;
        self.report.closing.written = durable.written;
        self.go_on()?;
        let undurable = self.send(broker, &format!("{load}, not persistent"), &of(false))?;
        self.report.closing.undurable = undurable.rate;
        Ok(())
    }
}

/// The one in the middle; nothing of nothing.
pub(crate) fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// An option that has to be within bounds.
pub(crate) fn within(name: &str, value: u64, min: u64, max: u64) -> Result<(), BenchError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(BenchError::Options(format!("{name} must be from {min} to {max}, not {value}")))
}

/// Bodies of all benchmarks: as large as a broker takes messages at least.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 20;
/// Connections at a time, which one thread still drives.
pub(crate) const CLIENTS_MAX: u64 = 1000;

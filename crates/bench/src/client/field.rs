//! The state that all clients of a phase share: the ledger, the clock, and the counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::letter::{Odd, Shape, Stamp};
use crate::processor;

/// The common ground of the clients of a phase.
#[derive(Debug)]
pub(crate) struct Field {
    /// The fate of each message.
    pub(crate) ledger: Ledger,
    /// The body and header of the messages.
    pub(crate) shape: Shape,
    /// Transactions that ended.
    pub(crate) transactions: Transactions,
    /// Trials of browsers.
    pub(crate) trials: u64,
    /// Travels in the order in which messages came, where they are wanted.
    pub(crate) travels: Option<Vec<Travel>>,
    /// True if the broker did not say that an acknowledgement is safe, though it was asked to.
    pub(crate) leaves_unanswered: bool,
    /// Producers that are not done.
    pub(crate) producing: usize,
    clock: Instant,
    started: Option<Instant>,
    extent: Extent,
    is_stopped: bool,
    /// Transactions begun.
    begun: u64,
    /// Once the last producer was done.
    produced: Option<Meanwhile>,
    answered: Option<Instant>,
    taken: Option<Instant>,
    refused: BTreeMap<String, u64>,
}

/// How much is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many messages.
    Messages(u64),
    /// As many as go in a time.
    Span(Duration),
}

/// How transactions ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transactions {
    pub(crate) committed: u64,
    /// Rolled back as was asked.
    pub(crate) aborted: u64,
    /// Refused.
    pub(crate) failed: u64,
}

/// How long a message was on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Travel {
    /// Its place among all that were sent.
    pub(crate) place: u64,
    pub(crate) time: Duration,
}

/// Counts over the time with a producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meanwhile {
    /// How much came.
    pub(crate) messages: u64,
    pub(crate) elapsed: Duration,
    /// Processor time that this process had spent by its end.
    pub(crate) spent: Duration,
}

impl Field {
    pub(crate) fn new(shape: Shape, extent: Extent) -> Self {
        Self {
            ledger: Ledger::new(),
            shape,
            transactions: Transactions::default(),
            trials: 0,
            travels: None,
            leaves_unanswered: false,
            producing: 0,
            clock: Instant::now(),
            started: None,
            extent,
            is_stopped: false,
            begun: 0,
            produced: None,
            answered: None,
            taken: None,
            refused: BTreeMap::new(),
        }
    }

    /// The clients are ready: from now on it counts.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// More is to be sent, by so many producers; a new phase with the messages of the former one.
    pub(crate) fn extend(&mut self, extent: Extent, producing: usize) {
        (self.extent, self.producing) = (extent, producing);
        (self.started, self.produced, self.answered, self.taken) = (None, None, None, None);
    }

    /// One more transaction is begun; which one it is of all, from 1.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// A producer is done.
    pub(crate) fn produced(&mut self, now: Instant) {
        assert!(self.producing > 0, "no more producers end than were begun");
        self.producing -= 1;
        if self.producing == 0 {
            let elapsed = self.since_start(Some(now));
            let spent = processor::of_process();
            let messages = self.ledger.seen();
            self.produced = Some(Meanwhile { messages, elapsed, spent });
        }
    }

    /// Nothing more is begun.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// True if more messages or transactions may be begun.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        let Some(started) = self.started else { return false };
        !self.is_stopped
            && match self.extent {
                Extent::Messages(count) => self.ledger.sent() < count,
                Extent::Span(span) => now.saturating_duration_since(started) < span,
            }
    }

    /// Appends the next message; returns its number.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> u64 {
        let number = self.ledger.send();
        let sent_ns = self.clock.elapsed().as_nanos() as u64;
        self.shape.encode(Stamp { number, sent_ns }, out);
        number
    }

    /// Notes a message that came.
    pub(crate) fn see(&mut self, bytes: &[u8], now: Instant) {
        let Some(stamp) = self.stamp(bytes) else { return };
        let place = self.ledger.see(stamp.number);
        let sent = self.clock + Duration::from_nanos(stamp.sent_ns);
        if let (Some(place), Some(travels)) = (place, &mut self.travels) {
            travels.push(Travel { place, time: now.saturating_duration_since(sent) });
        }
    }

    /// Notes a copy of a message.
    pub(crate) fn glimpse(&mut self, bytes: &[u8]) {
        if let Some(stamp) = self.stamp(bytes) {
            self.ledger.glimpse(stamp.number);
        }
    }

    fn stamp(&mut self, bytes: &[u8]) -> Option<Stamp> {
        match self.shape.check(bytes) {
            Ok(stamp) => return Some(stamp),
            Err(Odd::Foreign) => self.ledger.foreign(),
            Err(Odd::Changed) => self.ledger.changed(),
        }
        None
    }

    /// The broker confirmed something.
    pub(crate) fn answered(&mut self, now: Instant) {
        self.answered = Some(now);
    }

    /// The broker refused something, in these words.
    pub(crate) fn refused(&mut self, why: String) {
        *self.refused.entry(why).or_default() += 1;
    }

    /// True if nothing more will be sent and all that was confirmed has come.
    pub(crate) fn is_taken(&self) -> bool {
        self.producing == 0 && self.ledger.seen() >= self.ledger.confirmed()
    }

    /// All has come, and all of it is settled.
    pub(crate) fn taken(&mut self, now: Instant) {
        self.taken.get_or_insert(now);
    }

    /// From the start until the last confirmation.
    pub(crate) fn confirming(&self) -> Duration {
        self.since_start(self.answered)
    }

    /// From the start until all was taken.
    pub(crate) fn taking(&self) -> Duration {
        self.since_start(self.taken)
    }

    /// Messages that came while there was a producer, and the length of that time.
    pub(crate) fn meanwhile(&self) -> Meanwhile {
        self.produced.unwrap_or_default()
    }

    fn since_start(&self, end: Option<Instant>) -> Duration {
        let span = self.started.zip(end).map(|(from, to)| to.saturating_duration_since(from));
        span.unwrap_or_default()
    }

    /// How far it is, and how far it goes: in messages or milliseconds.
    pub(crate) fn progress(&self, now: Instant) -> (u64, u64) {
        let elapsed = self.since_start(Some(now));
        match self.extent {
            _ if self.producing == 0 => (self.ledger.seen(), self.ledger.confirmed()),
            Extent::Messages(count) => (self.ledger.confirmed(), count),
            Extent::Span(span) => (elapsed.min(span).as_millis() as u64, span.as_millis() as u64),
        }
    }

    /// Problems that a user must not overlook; with `taken` all messages should have come.
    pub(crate) fn problems(&self, label: &str, taken: bool) -> Vec<String> {
        let refused = self.refused.iter().map(|(why, count)| format!("refused, {why}: {count}"));
        let all = refused.chain(self.ledger.problems(taken));
        all.map(|problem| format!("{label}: {problem}")).collect()
    }
}

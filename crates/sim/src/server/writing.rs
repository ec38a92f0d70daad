//! When the log is written: by the server's own scheduler, or by any thread at any time.
//!
//! The threads of the real server learn two things and sleep in between: if a write is due, and the
//! next deadline. Here both stand in [`Writing::announced`]; a thread that has done something with
//! the broker announces them again. The gateway takes in replies that others caused only when it
//! wakes, after that.

use broker::{ScheduledWrite, WriteScheduler};
use journal::{Disk, DiskError, JournalFailed};
use model::{DependsOn, Nanos};

use super::{Call, Outside, Server};
use crate::Paged;

/// The decision that the log is written.
#[derive(Debug, Default)]
pub(super) struct Writing {
    scheduler: WriteScheduler,
    /// The scheduler decides; else everything is written as soon as it can be, two writes at once.
    pub(super) is_scheduled: bool,
    /// When frames are written for which no client waits, as the threads know it.
    announced: Option<Nanos>,
    /// A defect: see [`super::ServerDefects::forgets_mail`].
    forgets_mail: bool,
}

/// A write that has begun.
pub(super) struct InFlight<D: Disk> {
    pub(super) write: ScheduledWrite<D::File>,
    pub(super) call: Call,
    pub(super) result: Option<Result<(), DiskError>>,
}

impl Writing {
    pub(super) fn new(forgets_mail: bool) -> Self {
        Self { forgets_mail, ..Self::default() }
    }

    /// A client is told something once the log is so durable.
    pub(super) fn note_awaited(&mut self, after: DependsOn) {
        self.scheduler.note_awaited(after);
    }

    /// From now on no write is delayed.
    pub(super) const fn begin_to_end(&mut self) {
        self.scheduler.begin_to_end();
    }

    /// When the first reactor wakes to write frames that no client waits for.
    pub(super) fn deadline(&self) -> Nanos {
        self.announced.filter(|_| self.is_scheduled).unwrap_or(Nanos::MAX)
    }

    /// The next write that begins now.
    fn poll<F: Clone>(&mut self, broker: &mut Paged<F>, now: Nanos) -> Option<ScheduledWrite<F>> {
        let eager = self.scheduler.poll_eager(broker, now);
        if eager.is_some() || self.is_scheduled && !self.scheduler.is_due(broker, now) {
            return eager;
        }
        if self.is_scheduled {
            self.scheduler.poll_idle(broker, now)
        } else {
            self.scheduler.poll_any(broker, now)
        }
    }
}

impl<D: Disk> Server<D> {
    /// A thread has done something with the broker: it begins the writes that are due, and all
    /// others learn when the rest is due.
    pub(super) fn commit(&mut self, outside: &mut Outside) {
        loop {
            while let Some(write) = self.writing.poll(&mut self.broker, self.now) {
                self.writes.push(InFlight { write, call: Call::at(self.now), result: None });
            }
            self.writing.scheduler.check(&self.broker, self.now);
            if !self.wake_gateway(outside) || self.writing.forgets_mail {
                break;
            }
        }
        self.writing.announced = self.writing.scheduler.deadline(&self.broker, self.now);
    }

    /// Time passes only when every thread sleeps: then no write is due that none of them knows of.
    pub(super) fn assert_no_write_forgotten(&self) {
        let is_due = self.writing.scheduler.is_due(&self.broker, self.now);
        let is_known = !self.writing.is_scheduled || self.writing.deadline() <= self.now;
        assert!(!is_due || is_known, "a client waits for a write that no thread begins");
    }

    /// Hands a performed write back.
    pub(super) fn complete_write(
        &mut self,
        write: ScheduledWrite<D::File>,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        self.writing.scheduler.complete(&mut self.broker, self.now, write, result)
    }
}

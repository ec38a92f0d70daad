//! Decides when a write of the log begins, and which thread performs it.
//!
//! The scheduler is pure: it holds no thread and reads no clock. The server and the simulation ask
//! it after each step, before the last reactor sleeps, and after each write. Its rules:
//!
//! | frames that wait to be written | when their write begins |
//! |---|---|
//! | need no sync, or are many | at once, beside a write under way (`poll_eager`) |
//! | are awaited by a client | when all reactors are idle and no write is under way (`poll_idle`) |
//! | are awaited by no client | with the next awaited one, or after [`IDLE_WRITE_DELAY`] (ADR 19) |
//!
//! While a chore moves the watermark of the journal no batch behind it begins: the thread that
//! completes the chore asks again. At every moment frames that wait are therefore due now, or
//! behind a write or a chore under way, or have a [`WriteScheduler::deadline`]:
//! [`WriteScheduler::check`] asserts it.

use journal::{DiskError, JournalFailed, Write};
use model::{DependsOn, Durability, Lsn, Nanos, SessionId};

use crate::Broker;

/// Decides when a write begins, and which thread performs it.
#[derive(Debug, Default)]
pub struct WriteScheduler {
    writes_in_flight: usize,
    sole_client: SoleClient,
    latency: WriteLatency,
    /// The last frame that a client waits for.
    awaited: Lsn,
    /// Frames among those to be written that a client waits for; at most as many as there are.
    awaited_frames: u32,
    /// The process ends: no write is delayed.
    is_ending: bool,
}

/// A write that has begun.
#[derive(Debug)]
pub struct ScheduledWrite<F> {
    /// The write to perform.
    pub write: Write<F>,
    begun: Nanos,
    awaited_frames: u32,
}

impl WriteScheduler {
    /// Notes which sessions gave commands in a turn.
    pub fn note_active(&mut self, sessions: &[SessionId]) {
        self.sole_client.note(sessions);
    }

    /// A client is told something once the log is as durable as `after` says.
    pub fn note_awaited(&mut self, after: DependsOn) {
        if after.level > Durability::None && after.lsn > self.awaited {
            self.awaited = after.lsn;
            self.awaited_frames += 1;
        }
    }

    /// Forgets how long writes took: tests of a reactor's own writes run on any disk.
    pub fn forget_latency(&mut self) {
        self.latency = WriteLatency::default();
    }

    /// From now on no write is delayed.
    pub const fn begin_to_end(&mut self) {
        self.is_ending = true;
    }

    /// The write that does not wait for more frames: one without a sync, or a large one. All other
    /// writes wait until the reactors are idle, so that one sync serves every client that asked
    /// meanwhile.
    pub fn poll_eager<F: Clone>(
        &mut self,
        broker: &mut Broker<F>,
        now: Nanos,
    ) -> Option<ScheduledWrite<F>> {
        let unwritten = broker.unwritten();
        let waits = unwritten.syncs && unwritten.bytes < EAGER_BYTES;
        if waits { None } else { self.begin(broker, now) }
    }

    /// The write that begins when the reactors are idle. It is one at a time, since a second one
    /// would only split the next batch, and none that can wait for an awaited frame.
    pub fn poll_idle<F: Clone>(
        &mut self,
        broker: &mut Broker<F>,
        now: Nanos,
    ) -> Option<ScheduledWrite<F>> {
        let waits = self.writes_in_flight > 0 || self.can_wait(broker, now);
        if waits { self.poll_eager(broker, now) } else { self.begin(broker, now) }
    }

    /// Any write that can begin, beside any other work under way: for a simulation in which every
    /// thread writes whenever it can.
    pub fn poll_any<F: Clone>(
        &mut self,
        broker: &mut Broker<F>,
        now: Nanos,
    ) -> Option<ScheduledWrite<F>> {
        self.begin(broker, now)
    }

    /// True if a write is to begin as soon as the reactors are idle. While another is under way, or
    /// a chore that it waits for, it is not: the thread that completes that one asks again.
    #[must_use]
    pub fn is_due<F: Clone>(&self, broker: &Broker<F>, now: Nanos) -> bool {
        let waits = self.writes_in_flight > 0 || self.can_wait(broker, now);
        let unwritten = broker.unwritten();
        unwritten.bytes > 0 && !unwritten.waits_for_chore && !waits
    }

    /// When [`WriteScheduler::is_due`] becomes true by itself.
    #[must_use]
    pub fn deadline<F: Clone>(&self, broker: &Broker<F>, now: Nanos) -> Option<Nanos> {
        self.delayed_until(broker).filter(|until| now < *until)
    }

    /// True if a reactor performs the write itself. `waiting` connections wait for the log, and
    /// none asks for anything else. A reactor performs three kinds of writes. A write without a
    /// sync is over sooner than another thread would wake. No other client waits behind the write
    /// of a sole client. And if each awaited frame has a waiting connection of its own, all
    /// connections wait for the write anyway (ADR 15).
    #[must_use]
    pub fn belongs_to_reactor<F: Clone>(&self, write: &ScheduledWrite<F>, waiting: usize) -> bool {
        let awaited = write.awaited_frames as usize;
        let all_wait = (1..=waiting).contains(&awaited) && self.latency.is_quick();
        let alone = self.writes_in_flight == 1 && (self.sole_client.is_sure() || all_wait);
        // A mere flush is awaited by no client, and would hold up the next one that asks.
        !write.write.syncs() || (alone && write.write.frames() > 0)
    }

    /// Hands a performed write back to the broker; gives how long it was under way.
    ///
    /// # Errors
    /// When the disk failed: nothing more is confirmed, and the process is to end.
    ///
    /// # Panics
    /// When no write is under way.
    pub fn complete<F: Clone>(
        &mut self,
        broker: &mut Broker<F>,
        now: Nanos,
        done: ScheduledWrite<F>,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        assert!(self.writes_in_flight > 0, "a completed write was under way");
        self.writes_in_flight -= 1;
        if done.write.syncs() {
            self.latency.note(done.performed(now));
        }
        broker.handle_write(now, done.write, result)
    }

    /// No frame is forgotten: each that waits is due, behind a write or a chore under way, or has a
    /// deadline.
    ///
    /// # Panics
    /// When one is forgotten, or more frames are awaited than there are.
    pub fn check<F: Clone>(&self, broker: &Broker<F>, now: Nanos) {
        let unwritten = broker.unwritten();
        let is_behind = self.writes_in_flight > 0 || unwritten.waits_for_chore;
        let waits = unwritten.bytes > 0 && !is_behind;
        let is_seen = self.is_due(broker, now) || self.deadline(broker, now).is_some();
        assert!(!waits || is_seen, "frames wait for no event: {unwritten:?} {self:?}");
        let is_awaited = self.awaited > broker.durable().written && unwritten.bytes > 0;
        assert!(
            !is_awaited || is_behind || self.is_due(broker, now),
            "an awaited frame is not due: {unwritten:?} {self:?}"
        );
    }

    fn can_wait<F: Clone>(&self, broker: &Broker<F>, now: Nanos) -> bool {
        self.delayed_until(broker).is_some_and(|until| now < until)
    }

    /// The deadline of a write that no client waits for; `None` if one does, if there is much
    /// to write, or if the log holds commands back until it has gone on.
    fn delayed_until<F: Clone>(&self, broker: &Broker<F>) -> Option<Nanos> {
        let unwritten = broker.unwritten();
        let is_awaited = self.awaited > broker.durable().written;
        let matters = is_awaited || unwritten.bytes >= EAGER_BYTES || broker.holds_back();
        let since = unwritten.since.filter(|_| unwritten.syncs && !matters && !self.is_ending)?;
        Some(since + IDLE_WRITE_DELAY)
    }

    fn begin<F: Clone>(&mut self, broker: &mut Broker<F>, now: Nanos) -> Option<ScheduledWrite<F>> {
        let write = broker.poll_write(now)?;
        self.writes_in_flight += 1;
        let awaited_frames = self.awaited_frames.min(write.frames());
        // Some may belong to a write that was under way already.
        let rest = broker.unwritten().frames;
        self.awaited_frames = (self.awaited_frames - awaited_frames).min(rest);
        Some(ScheduledWrite { write, begun: now, awaited_frames })
    }
}

impl<F: Clone> ScheduledWrite<F> {
    /// How long it waited before it began: since its first frame was appended.
    #[must_use]
    pub fn queued(&self) -> Nanos {
        self.write.queued_since().map_or(Nanos::ZERO, |since| self.begun.since(since))
    }

    /// How long it has been under way.
    #[must_use]
    pub fn performed(&self, now: Nanos) -> Nanos {
        now.since(self.begun)
    }
}

/// Finds out if one connection has been the only one to ask for anything lately.
#[derive(Debug, Default)]
struct SoleClient {
    session: Option<SessionId>,
    turns: u32,
}

impl SoleClient {
    fn note(&mut self, active: &[SessionId]) {
        match active {
            [] => {}
            [one] if self.session == Some(*one) => self.turns = self.turns.saturating_add(1),
            [one] => *self = Self { session: Some(*one), turns: 1 },
            _ => *self = Self::default(),
        }
    }

    /// A sole client gains 60 to 80 us a write when no other thread is woken for it.
    const fn is_sure(&self) -> bool {
        self.turns >= SOLE_TURNS
    }
}

/// How long the device takes for a synced write lately; a slow one is remembered for some writes.
#[derive(Debug, Default)]
struct WriteLatency {
    span: Nanos,
}

impl WriteLatency {
    fn note(&mut self, performed: Nanos) {
        self.span = performed.max(Nanos(self.span.0 - self.span.0 / 8));
    }

    /// True if a thread that has other clients to serve may be kept so long.
    fn is_quick(&self) -> bool {
        self.span < QUICK_WRITE
    }
}

/// How long frames may be delayed that no client waits for: a message that its consumer settled
/// without asking for an answer, or that its sender sent so.
pub const IDLE_WRITE_DELAY: Nanos = Nanos::from_millis(5);

/// A reactor that writes is away for no longer than a turn of many commands takes.
const QUICK_WRITE: Nanos = Nanos::from_millis(2);

/// Turns in a row before a connection counts as the sole client. They are a few round trips, so
/// that clients that only happen to take turns do not wait for each other's syncs.
const SOLE_TURNS: u32 = 4;

/// Bytes that are worth a write of their own beside the one under way: from here on a write takes
/// longer the more it has.
const EAGER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sole_client_asks_several_turns_alone() {
        let (one, other) = (SessionId(1), SessionId(2));
        let mut sole = SoleClient::default();
        for _ in 0..SOLE_TURNS {
            assert!(!sole.is_sure());
            sole.note(&[one]);
            sole.note(&[]);
        }
        assert!(sole.is_sure());
        sole.note(&[one, other]);
        assert!(!sole.is_sure());
        for _ in 0..SOLE_TURNS {
            sole.note(&[one]);
        }
        assert!(sole.is_sure());
        sole.note(&[other]);
        assert!(!sole.is_sure());
    }

    #[test]
    fn slow_write_is_remembered_a_while() {
        let mut latency = WriteLatency::default();
        latency.note(Nanos(200_000));
        assert!(latency.is_quick());
        latency.note(Nanos::from_millis(50));
        latency.note(Nanos(200_000));
        assert!(!latency.is_quick());
        for _ in 0..40 {
            latency.note(Nanos(200_000));
        }
        assert!(latency.is_quick());
    }
}

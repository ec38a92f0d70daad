//! What lies behind the one lock: the broker, what its connections share, and what is on its way
//! from one thread to another.

use std::collections::VecDeque;

use broker::{Broker, Chore, ChoreDone, Fetch, FetchDone, JournalFailed, Write};
use disk::{File, RealDisk};
use journal::DiskError;
use model::{After, Durability, Lsn, Nanos, Output, SessionId};

use crate::connections::reactor_of;
use crate::counters::{Latencies, Span};
use crate::peer::Commons;
use crate::post::Post;

/// Everything behind the one lock. A reactor takes it once a turn, a committer twice a write.
pub(crate) struct Core {
    pub(crate) broker: Broker<File>,
    pub(crate) commons: Commons,
    /// What the broker says; drained by whoever made it speak.
    pub(crate) outputs: Vec<Output>,
    pub(crate) latencies: Latencies,
    /// Per reactor: replies for its sessions that others caused.
    mailboxes: Vec<VecDeque<Output>>,
    /// Writes that were taken from the broker for the committers.
    handed: VecDeque<Transfer>,
    /// Committers that wait for something to write.
    pub(crate) committers_idle: usize,
    writes_in_flight: usize,
    chore: Option<Chore<File>>,
    chore_in_flight: bool,
    lone: Lone,
    pub(crate) pace: Pace,
    /// The last frame that somebody waits for.
    awaited: Lsn,
    /// How many of those that are to be written somebody waits for.
    heard: u32,
    /// The server ends: nothing is put off.
    is_ending: bool,
}

impl Core {
    pub(crate) fn new(broker: Broker<File>, commons: Commons, reactors: usize) -> Self {
        Self {
            broker,
            commons,
            outputs: Vec::new(),
            latencies: Latencies::new(),
            mailboxes: std::iter::repeat_with(VecDeque::new).take(reactors).collect(),
            handed: VecDeque::new(),
            committers_idle: 0,
            writes_in_flight: 0,
            chore: None,
            chore_in_flight: false,
            lone: Lone::default(),
            pace: Pace::default(),
            awaited: Lsn::ZERO,
            heard: 0,
            is_ending: false,
        }
    }

    /// The replies for the sessions of this reactor that others caused.
    pub(crate) fn take_mail(&mut self, reactor: usize) -> VecDeque<Output> {
        self.mailboxes.get_mut(reactor).map(std::mem::take).unwrap_or_default()
    }

    /// The first of them.
    pub(crate) fn next_mail(&mut self, reactor: usize) -> Option<Output> {
        self.mailboxes.get_mut(reactor)?.pop_front()
    }

    /// Whether there is mail for a reactor.
    pub(crate) fn has_mail(&self, reactor: usize) -> bool {
        self.mailboxes.get(reactor).is_some_and(|mail| !mail.is_empty())
    }

    /// Puts what the broker has said into the mailboxes of those whom it concerns, and lets them
    /// know, but for the reactor `own`, which looks anyway.
    pub(crate) fn post_outputs(&mut self, own: usize, posts: &[Post]) {
        for output in self.outputs.drain(..) {
            let reactor = reactor_of(output.session);
            let addressee = self.mailboxes.get_mut(reactor).zip(posts.get(reactor));
            let (mailbox, post) = addressee.expect("invariant: every session has a reactor");
            mailbox.push_back(output);
            if reactor != own {
                post.notify_mail();
            }
        }
    }

    /// Notes who asked for something in a turn.
    pub(crate) fn note_active(&mut self, active: &[SessionId]) {
        self.lone.note(active);
    }

    /// What is to be written without waiting for more to come: what needs no sync, and what is much
    /// already. Everything else waits until the reactors have nothing else to do, so that one sync
    /// serves everybody who asked meanwhile.
    pub(crate) fn eager_write(&mut self, now: Nanos) -> Option<Transfer> {
        let unwritten = self.broker.unwritten();
        let waits = unwritten.syncs && unwritten.bytes < EAGER_BYTES;
        if waits { None } else { self.next_write(now) }
    }

    /// What is to be written when nobody brings more: one write at a time, since a second one would
    /// only split the next batch; and nothing that can wait for what somebody waits for.
    pub(crate) fn idle_write(&mut self, now: Nanos) -> Option<Transfer> {
        let waits = self.writes_in_flight > 0 || self.can_wait(now);
        if waits { self.eager_write(now) } else { self.next_write(now) }
    }

    /// Whether frames wait until the reactors have nothing else to do.
    pub(crate) fn has_uncommitted(&self, now: Nanos) -> bool {
        self.broker.unwritten().bytes > 0 && !self.can_wait(now)
    }

    /// When something is to be done even if nothing happens.
    pub(crate) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let put_off = self.unheard().filter(|until| now < *until);
        put_off.into_iter().chain(self.broker.poll_timeout()).min()
    }

    /// Somebody is told something once the log is so durable.
    pub(crate) fn note_awaited(&mut self, after: After) {
        if after.level > Durability::None && after.lsn > self.awaited {
            self.awaited = after.lsn;
            self.heard += 1;
        }
    }

    /// From now on nothing is put off.
    pub(crate) const fn begin_to_end(&mut self) {
        self.is_ending = true;
    }

    /// Whether what is to be written, and synced, need not be yet.
    fn can_wait(&self, now: Nanos) -> bool {
        self.unheard().is_some_and(|until| now < until)
    }

    /// Where nobody waits for any of the frames that are to be written: until when they may be put
    /// off, so that they share the sync of one that somebody waits for.
    fn unheard(&self) -> Option<Nanos> {
        let unwritten = self.broker.unwritten();
        let is_awaited = self.awaited > self.broker.durable().written;
        let matters = is_awaited || unwritten.bytes >= EAGER_BYTES || self.broker.holds_back();
        let since = unwritten.since.filter(|_| unwritten.syncs && !matters && !self.is_ending)?;
        Some(since + PATIENCE)
    }

    /// What is to be written next, begun now.
    fn next_write(&mut self, now: Nanos) -> Option<Transfer> {
        let write = self.broker.poll_write(now)?;
        self.writes_in_flight += 1;
        let heard = self.heard.min(write.frames());
        // Some may be of a write that was under way already.
        let rest = self.broker.unwritten().frames;
        self.heard = (self.heard - heard).min(rest);
        Some(Transfer { write, begun: now, heard })
    }

    /// Whether a reactor writes it itself: a write without sync is over sooner than another thread
    /// would wake; a lone client has nobody who would wait meanwhile; and where each frame has
    /// somebody of its own among those `waiting` for the log, all who ask wait for it anyway.
    pub(crate) fn belongs_here(&self, transfer: &Transfer, waiting: usize) -> bool {
        let frames = transfer.write.frames();
        let all_wait = (1..=waiting).contains(&(transfer.heard as usize)) && self.pace.is_quick();
        let alone = self.writes_in_flight == 1 && (self.lone.is_sure() || all_wait);
        // Nobody waits for a mere flush; whoever asks next would.
        !transfer.write.syncs() || (alone && frames > 0)
    }

    /// Leaves a write to the committers.
    pub(crate) fn hand_over(&mut self, transfer: Transfer) {
        self.handed.push_back(transfer);
    }

    /// A write that was left to the committers.
    pub(crate) fn take_handed(&mut self) -> Option<Transfer> {
        self.handed.pop_front()
    }

    /// Hands a performed write back to the broker.
    pub(crate) fn complete(
        &mut self,
        now: Nanos,
        transfer: Transfer,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        self.writes_in_flight -= 1;
        let span = transfer.span(now);
        self.latencies.record(span);
        if span.syncs {
            self.pace.note(span.performed);
        }
        self.broker.handle_write(now, transfer.write, result)
    }

    /// Asks the broker for a chore unless one is under way; tells whether there is a new one.
    pub(crate) fn poll_chore(&mut self, now: Nanos) -> bool {
        if self.chore_in_flight {
            return false;
        }
        self.chore = self.broker.poll_chore(now);
        self.chore_in_flight = self.chore.is_some();
        self.chore_in_flight
    }

    pub(crate) const fn take_chore(&mut self) -> Option<Chore<File>> {
        self.chore.take()
    }

    /// The next piece of the log that is to be read back, unless one is.
    pub(crate) fn poll_fetch(&mut self) -> Option<Fetch<File>> {
        self.broker.poll_fetch()
    }

    /// Whether there is something to be read back.
    pub(crate) fn wants_fetch(&mut self) -> bool {
        self.broker.wants_fetch()
    }

    /// Hands what was read back to the broker; what was waited for goes out.
    pub(crate) fn complete_fetch(
        &mut self,
        done: FetchDone<File>,
        posts: &[Post],
    ) -> Result<(), JournalFailed> {
        self.broker.handle_fetch(done, &mut self.outputs)?;
        self.post_outputs(usize::MAX, posts);
        Ok(())
    }

    /// Hands a performed chore back to the broker.
    pub(crate) fn complete_chore(
        &mut self,
        now: Nanos,
        done: ChoreDone<File>,
    ) -> Result<(), JournalFailed> {
        self.chore_in_flight = false;
        self.broker.handle_chore(now, done)
    }
}

/// One write on its way to the disk.
pub(crate) struct Transfer {
    write: Write<File>,
    begun: Nanos,
    /// How many of its frames somebody waits for.
    heard: u32,
}

impl Transfer {
    /// The write, and the sync if it is one that syncs. Blocks; the lock must not be held.
    pub(crate) fn perform(&self, disk: &RealDisk) -> Result<(), DiskError> {
        self.write.perform(disk)
    }

    fn span(&self, now: Nanos) -> Span {
        Span {
            queued: self.write.queued_since().map_or(Nanos::ZERO, |since| self.begun.since(since)),
            performed: now.since(self.begun),
            syncs: self.write.syncs(),
        }
    }
}

/// Whether one connection has been the only one to ask for anything lately.
#[derive(Debug, Default)]
struct Lone {
    session: Option<SessionId>,
    turns: u32,
}

impl Lone {
    fn note(&mut self, active: &[SessionId]) {
        match active {
            [] => {}
            [one] if self.session == Some(*one) => self.turns = self.turns.saturating_add(1),
            [one] => *self = Self { session: Some(*one), turns: 1 },
            _ => *self = Self::default(),
        }
    }

    /// A lone client gains 60 to 80 us a write when no other thread is woken for it.
    const fn is_sure(&self) -> bool {
        self.turns >= LONE_TURNS
    }
}

/// What the device takes for a synced write lately; a slow one is remembered for some writes.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    span: Nanos,
}

impl Pace {
    fn note(&mut self, performed: Nanos) {
        self.span = performed.max(Nanos(self.span.0 - self.span.0 / 8));
    }

    /// Whether a thread that has others to serve may be kept so long.
    fn is_quick(&self) -> bool {
        self.span < QUICK_WRITE
    }
}

/// A reactor that writes is away for no longer than a turn of many commands takes.
const QUICK_WRITE: Nanos = Nanos::from_millis(2);

/// Turns in a row before a connection counts as alone: a few round trips, so that clients who only
/// happen to take turns do not wait for each other's syncs.
const LONE_TURNS: u32 = 4;

/// How long frames may be put off for which nobody waits: a message that its consumer settled
/// without asking for an answer, or that its sender sent so.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(5);

/// Bytes that are worth a write of their own beside the one in flight: from here on a write takes
/// longer the more it has.
const EAGER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_is_who_asks_again_and_again_while_nobody_else_does() {
        let (one, other) = (SessionId(1), SessionId(2));
        let mut lone = Lone::default();
        for _ in 0..LONE_TURNS {
            assert!(!lone.is_sure());
            lone.note(&[one]);
            lone.note(&[]);
        }
        assert!(lone.is_sure());
        lone.note(&[one, other]);
        assert!(!lone.is_sure());
        for _ in 0..LONE_TURNS {
            lone.note(&[one]);
        }
        assert!(lone.is_sure());
        lone.note(&[other]);
        assert!(!lone.is_sure());
    }

    #[test]
    fn a_slow_write_is_remembered_for_some_writes() {
        let mut pace = Pace::default();
        pace.note(Nanos(200_000));
        assert!(pace.is_quick());
        pace.note(Nanos::from_millis(50));
        pace.note(Nanos(200_000));
        assert!(!pace.is_quick());
        for _ in 0..40 {
            pace.note(Nanos(200_000));
        }
        assert!(pace.is_quick());
    }
}

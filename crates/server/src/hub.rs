//! What the threads of a server share: the core behind its one lock, and the few words beside the
//! lock by which they find out without it whether they have to take it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use broker::{Chore, ChoreDone, Fetch, FetchDone, JournalFailed};
use disk::{File, RealDisk};
use input::WrongProtocol;
use journal::{DiskError, Durable};
use model::{Lsn, Nanos, SessionId};

use crate::buffered::Buffered;
use crate::clock::Clock;
use crate::config::Limits;
use crate::core::{Core, Transfer};
use crate::counters::Counters;
use crate::facts::JournalGauges;
use crate::gateway::Inbox;
use crate::log::Complaint;
use crate::memory::receives_max;
use crate::post::Post;
use crate::seats::{Exit, Origin, Seat, Seats};
use crate::wrong_protocol::Advice;
use crate::{Failure, Log};

/// What all threads share.
pub(crate) struct Hub {
    core: Mutex<Core>,
    /// Committers wait here for something to write.
    work: Condvar,
    /// The housekeeper waits here for a chore.
    chores: Condvar,
    /// The reader waits here for something to be read back.
    fetches: Condvar,
    /// Whoever stops the server waits here for writes and chores to end.
    settled: Condvar,
    /// Of each reactor, and last that of the gateway.
    posts: Vec<Post>,
    written: AtomicU64,
    synced: AtomicU64,
    /// Writes and chores completed so far.
    completions: AtomicU64,
    /// When the broker next wants its timers handled.
    deadline: AtomicU64,
    /// Frames wait to be written until no reactor has anything else to do.
    uncommitted: AtomicBool,
    /// Reactors that are not asleep.
    awake: AtomicUsize,
    /// Threads that serve: reactors, and that of HTTP.
    serving: AtomicUsize,
    phase: AtomicU8,
    ending: Mutex<Ending>,
    ended: Condvar,
    gauges: Arc<JournalGauges>,
    /// What the gateway's tasks ask for.
    pub(crate) inbox: Arc<Inbox>,
    /// Who may have a connection.
    pub(crate) seats: Arc<Seats>,
    pub(crate) buffered: Buffered,
    /// What requests and answers of HTTP hold.
    pub(crate) http_bytes: Arc<AtomicUsize>,
    pub(crate) disk: Option<RealDisk>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    memory_limit: u64,
    pub(crate) log: Log,
    /// That clients speak the wrong protocol.
    wrong_protocols: Mutex<Complaint>,
    /// That connections are refused.
    refusals: Mutex<Complaint>,
    /// That connections without a command gave way.
    dismissals: Mutex<Complaint>,
}

/// What a hub is made of besides its core.
pub(crate) struct Parts {
    /// One a reactor, and one for the gateway.
    pub(crate) posts: Vec<Post>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) gauges: Arc<JournalGauges>,
    pub(crate) disk: Option<RealDisk>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    /// Bytes that everything together may take.
    pub(crate) memory_limit: u64,
    pub(crate) log: Log,
}

/// How far a server's life has come. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serves.
    Serving,
    /// Accepts nothing more and finishes what is in flight.
    Stopping,
    /// Every thread ends without another word to any peer.
    Halted,
}

#[derive(Debug, Default)]
struct Ending {
    requested: bool,
    failure: Option<Failure>,
}

/// A thread that serves, until it is dropped.
pub(crate) struct Serving<'a>(&'a Hub);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.serving.fetch_sub(1, Ordering::SeqCst);
        if let Some(first) = self.0.posts.first() {
            first.notify_mail();
        }
    }
}

/// What to do about the journal after a turn's commands.
pub(crate) enum Commit {
    /// Nothing is to be written, or others do it.
    Elsewhere,
    /// Write now, in this thread.
    Here(Transfer),
}

impl Hub {
    pub(crate) fn new(core: Core, parts: Parts) -> Self {
        let Parts { posts, inbox, gauges, disk, clock, limits, memory_limit, log } = parts;
        let durable = core.broker.durable();
        let reactors = posts.len() - 1;
        Self {
            core: Mutex::new(core),
            work: Condvar::new(),
            chores: Condvar::new(),
            fetches: Condvar::new(),
            settled: Condvar::new(),
            posts,
            written: AtomicU64::new(durable.written.0),
            synced: AtomicU64::new(durable.synced.0),
            completions: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            uncommitted: AtomicBool::new(false),
            awake: AtomicUsize::new(reactors),
            serving: AtomicUsize::new(0),
            phase: AtomicU8::new(Phase::Serving as u8),
            ending: Mutex::default(),
            ended: Condvar::new(),
            inbox,
            gauges,
            seats: Seats::new(limits.connections),
            buffered: Buffered::new(limits.buffered_bytes),
            http_bytes: Arc::default(),
            disk,
            clock,
            limits,
            memory_limit,
            log,
            wrong_protocols: Mutex::default(),
            refusals: Mutex::default(),
            dismissals: Mutex::default(),
        }
    }

    /// A seat for a connection, unless all are taken, which is logged.
    pub(crate) fn admit(
        &self,
        now: Nanos,
        peer: Option<SocketAddr>,
        exit: Exit,
        is_operator: bool,
    ) -> Option<Seat> {
        let seats_max = self.seats.seats_max();
        let admission = self.seats.admit(Origin::of(peer), exit, is_operator);
        let why = format_args!("{seats_max} are open (--max-connections)");
        match admission.as_ref().map(|admission| admission.gave_way) {
            Some(None) => {}
            None => {
                let mut complaint = self.refusals.lock().expect(POISONED);
                complaint.line(self.log, now, format_args!("refusing connections: {why}"));
            }
            Some(Some(origin)) => {
                let what = format_args!("closed a connection from {origin} without a command");
                let mut complaint = self.dismissals.lock().expect(POISONED);
                complaint.line(self.log, now, format_args!("{what}, since others come: {why}"));
            }
        }
        admission.map(|admission| admission.seat)
    }

    /// Logs that a client speaks the wrong protocol.
    pub(crate) fn tell_wrong_protocol(&self, now: Nanos, connection: &str, wrong: WrongProtocol) {
        let mut complaint = self.wrong_protocols.lock().expect(POISONED);
        complaint.line(self.log, now, format_args!("{}", Advice { connection, wrong }));
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect(POISONED)
    }
}

/// What is done under the lock.
impl Hub {
    /// Ends a reactor's turn with the core. `active` asked for something in this turn.
    pub(crate) fn commit(&self, core: &mut Core, active: &[SessionId], now: Nanos) -> Commit {
        core.note_active(active);
        self.offer_chore(core, now);
        let transfer = core.eager_write(now);
        self.uncommitted.store(core.has_uncommitted(now), Ordering::SeqCst);
        self.deadline.store(self.next_deadline(core), Ordering::SeqCst);
        self.assign(core, transfer, 0)
    }

    /// The last reactor falls asleep: what has come together is written now. So many connections
    /// are `waiting` for it, and nobody else asks for anything; none where others may.
    pub(crate) fn commit_idle(&self, waiting: usize) -> Commit {
        let core = &mut *self.lock();
        let now = self.clock.now();
        let transfer = core.idle_write(now);
        self.uncommitted.store(core.has_uncommitted(now) && transfer.is_some(), Ordering::SeqCst);
        self.assign(core, transfer, waiting)
    }

    /// Ends a turn of the gateway with the core, which leaves all writing to others: to the reactor
    /// that falls asleep last, or, where all sleep, to the committers.
    pub(crate) fn commit_elsewhere(&self, core: &mut Core, active: SessionId, now: Nanos) {
        core.note_active(&[active]);
        self.offer_chore(core, now);
        if let Some(transfer) = core.eager_write(now) {
            self.leave_to_committers(core, transfer);
        }
        self.publish_deadline(core);
        // In this order: a reactor that falls asleep from here on sees it, and who sleeps already
        // is seen.
        self.uncommitted.store(core.has_uncommitted(now), Ordering::SeqCst);
        if self.awake.load(Ordering::SeqCst) == 0 {
            self.hand_over(core);
        }
    }

    /// Decides who writes it.
    fn assign(&self, core: &mut Core, transfer: Option<Transfer>, waiting: usize) -> Commit {
        match transfer {
            None => Commit::Elsewhere,
            Some(transfer) if core.belongs_here(&transfer, waiting) => Commit::Here(transfer),
            Some(transfer) => {
                self.leave_to_committers(core, transfer);
                Commit::Elsewhere
            }
        }
    }

    /// Hands a performed write back to the broker, and lets everybody know how durable the log is
    /// now.
    ///
    /// # Errors
    /// The write failed: nothing more may be confirmed.
    pub(crate) fn complete(
        &self,
        core: &mut Core,
        transfer: Transfer,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        let now = self.clock.now();
        core.complete(now, transfer, result)?;
        self.offer_chore(core, now);
        // In this order: who is woken by the publishing and falls asleep again before this thread
        // goes on has seen that frames wait; who falls asleep without it is seen here.
        self.uncommitted.store(core.has_uncommitted(now), Ordering::SeqCst);
        let heard = self.publish(core);
        if !heard && self.awake.load(Ordering::SeqCst) == 0 {
            // Who asked for what waits is gone: no reactor will come back to it.
            self.hand_over(core);
        }
        Ok(())
    }

    /// The next write for a committer, waiting for one; `None` when the server ends.
    pub(crate) fn wait_for_write<'a>(
        &self,
        mut core: MutexGuard<'a, Core>,
    ) -> Option<(MutexGuard<'a, Core>, Transfer)> {
        while self.phase() < Phase::Halted {
            let now = self.clock.now();
            if let Some(transfer) = core.take_handed().or_else(|| core.eager_write(now)) {
                return Some((core, transfer));
            }
            core.committers_idle += 1;
            core = self.work.wait(core).expect(POISONED);
            core.committers_idle -= 1;
        }
        None
    }

    /// Leaves to the committers what came to be written while somebody else was writing.
    pub(crate) fn hand_over(&self, core: &mut Core) {
        if let Some(transfer) = core.idle_write(self.clock.now()) {
            self.leave_to_committers(core, transfer);
        }
    }

    fn leave_to_committers(&self, core: &mut Core, transfer: Transfer) {
        core.hand_over(transfer);
        // A busy one looks again by itself; ringing is a system call.
        if core.committers_idle > 0 {
            self.work.notify_one();
        }
    }

    /// The next chore for the housekeeper, waiting for one until `deadline` since the start;
    /// `None` when the server ends.
    pub(crate) fn wait_for_chore<'a>(
        &self,
        mut core: MutexGuard<'a, Core>,
        deadline: Nanos,
    ) -> Option<(MutexGuard<'a, Core>, Option<Chore<File>>)> {
        while self.phase() < Phase::Halted {
            self.poll_chore(&mut core, self.clock.now());
            if let Some(chore) = core.take_chore() {
                return Some((core, Some(chore)));
            }
            let left = deadline.since(self.clock.uptime());
            if left == Nanos::ZERO {
                return Some((core, None));
            }
            let left = Duration::from_nanos(left.0);
            core = self.chores.wait_timeout(core, left).expect(POISONED).0;
        }
        None
    }

    /// Hands a performed chore back to the broker.
    ///
    /// # Errors
    /// The disk failed: nothing more may be confirmed.
    pub(crate) fn complete_chore(
        &self,
        core: &mut Core,
        done: ChoreDone<File>,
    ) -> Result<(), JournalFailed> {
        core.complete_chore(self.clock.now(), done)?;
        self.hand_over(core);
        self.publish(core);
        Ok(())
    }

    /// Asks for a chore. That may show that nothing more can leave memory: who waits for it goes
    /// on.
    fn poll_chore(&self, core: &mut Core, now: Nanos) -> bool {
        let waited = core.broker.holds_back();
        let is_new = core.poll_chore(now);
        if waited && !core.broker.holds_back() {
            self.publish(core);
        }
        is_new
    }

    fn offer_chore(&self, core: &mut Core, now: Nanos) {
        if self.disk.is_none() {
            return;
        }
        if self.poll_chore(core, now) {
            self.chores.notify_one();
        }
        if core.wants_fetch() {
            self.fetches.notify_one();
        }
    }

    /// The next piece of the log for the reader, waiting for one; `None` when the server ends.
    pub(crate) fn wait_for_fetch<'a>(
        &self,
        mut core: MutexGuard<'a, Core>,
    ) -> Option<(MutexGuard<'a, Core>, Fetch<File>)> {
        while self.phase() < Phase::Halted {
            if let Some(fetch) = core.poll_fetch() {
                return Some((core, fetch));
            }
            core = self.fetches.wait(core).expect(POISONED);
        }
        None
    }

    /// Hands what was read back to the broker, and what waited for it to whom it concerns.
    ///
    /// # Errors
    /// The disk failed: nothing more may be confirmed.
    pub(crate) fn complete_fetch(
        &self,
        core: &mut Core,
        done: FetchDone<File>,
    ) -> Result<(), JournalFailed> {
        core.complete_fetch(done, &self.posts)?;
        self.publish_deadline(core);
        Ok(())
    }

    /// Everybody may see how durable the log is now, and those who wait for it are woken; tells
    /// whether there are such.
    fn publish(&self, core: &Core) -> bool {
        let durable = core.broker.durable();
        self.written.store(durable.written.0, Ordering::Release);
        self.synced.store(durable.synced.0, Ordering::Release);
        self.completions.fetch_add(1, Ordering::SeqCst);
        self.gauges.note(&core.broker.counters());
        let mut heard = false;
        for post in &self.posts {
            heard |= post.notify_write();
        }
        if self.phase() > Phase::Serving {
            self.settled.notify_all();
        }
        self.publish_deadline(core);
        heard
    }

    /// Reactors sleep until the deadline that they saw last. One that this thread made is seen by
    /// none, so the first is woken to see it.
    pub(crate) fn publish_deadline(&self, core: &Core) {
        let deadline = self.next_deadline(core);
        let before = self.deadline.swap(deadline, Ordering::SeqCst);
        if deadline < before
            && let Some(first) = self.posts.first()
        {
            first.notify_mail();
        }
    }

    fn next_deadline(&self, core: &Core) -> u64 {
        core.deadline(self.clock.now()).unwrap_or(Nanos::MAX).0
    }

    /// What connections hold, those of HTTP too.
    fn connections_bytes(&self) -> usize {
        self.buffered.bytes() + self.http_bytes.load(Ordering::Relaxed)
    }

    /// How many receives of HTTP may wait.
    pub(crate) fn receives_max(&self) -> usize {
        receives_max(self.memory_limit)
    }

    /// Everything that was counted.
    pub(crate) fn counters(&self) -> Counters {
        let core = self.lock();
        Counters {
            journal: core.broker.counters(),
            disk: self.disk.as_ref().map(RealDisk::counters).unwrap_or_default(),
            latencies: core.latencies.clone(),
            connections: self.seats.open(),
            buffered_bytes: self.buffered.bytes(),
            memory_limit: self.memory_limit,
            memory_bytes: core.broker.memory_bytes() + self.connections_bytes() as u64,
            memory_waits: core.broker.memory_waits(),
            bodies_away: core.broker.away(),
            spill: core.broker.spill_counters(),
        }
    }
}

/// What is found out and said without the lock.
impl Hub {
    pub(crate) fn durable(&self) -> Durable {
        // In this order: `written` never shows less than `synced`.
        let synced = Lsn(self.synced.load(Ordering::Acquire));
        Durable { written: Lsn(self.written.load(Ordering::Acquire)), synced }
    }

    pub(crate) fn completions(&self) -> u64 {
        self.completions.load(Ordering::SeqCst)
    }

    pub(crate) fn has_uncommitted(&self) -> bool {
        self.uncommitted.load(Ordering::SeqCst)
    }

    /// A reactor is about to sleep; tells whether all others do.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.awake.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// A reactor is awake again.
    pub(crate) fn wake_up(&self) {
        self.awake.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn deadline(&self) -> Nanos {
        Nanos(self.deadline.load(Ordering::SeqCst))
    }

    pub(crate) fn post(&self, reactor: usize) -> &Post {
        self.posts.get(reactor).expect("invariant: each reactor has a post")
    }

    pub(crate) fn posts(&self) -> &[Post] {
        &self.posts
    }

    /// How many reactors there are; the post of this index is the gateway's.
    pub(crate) fn reactors(&self) -> usize {
        self.posts.len() - 1
    }

    /// This thread begins to serve.
    pub(crate) fn begin_to_serve(&self) -> Serving<'_> {
        self.serving.fetch_add(1, Ordering::SeqCst);
        Serving(self)
    }

    /// Whether a reactor may end: the first keeps the broker's time for all others.
    pub(crate) fn can_spare(&self, reactor: usize) -> bool {
        reactor > 0 || self.serving.load(Ordering::SeqCst) <= 1
    }

    /// Whether all reactors sleep: then nobody else will see that frames wait.
    pub(crate) fn all_asleep(&self) -> bool {
        self.awake.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Serving,
            1 => Phase::Stopping,
            _ => Phase::Halted,
        }
    }

    /// Refuses from now on what would be stored, and what waits for a place in a queue.
    pub(crate) fn drain(&self) {
        let core = &mut *self.lock();
        core.commons.draining.begin();
        core.broker.refuse_waiting();
        self.publish_deadline(core);
    }
}

/// How a server ends.
impl Hub {
    /// Wishes for the end; who waits for it sees to it.
    pub(crate) fn request_end(&self) {
        self.ending().requested = true;
        self.ended.notify_all();
    }

    /// Ends everything at once: a promise can no longer be kept. The lock must not be held.
    pub(crate) fn fail(&self, failure: Failure) {
        self.ending().failure.get_or_insert(failure);
        self.enter(Phase::Halted);
        self.ended.notify_all();
    }

    /// Waits until the end is wished for, or has come.
    pub(crate) fn wait_for_end(&self) -> Result<(), Failure> {
        let goes_on = |ending: &mut Ending| !ending.requested && ending.failure.is_none();
        let ending = self.ended.wait_while(self.ending(), goes_on).expect(POISONED);
        ending.failure.clone().map_or(Ok(()), Err)
    }

    /// Goes on to a later phase, and lets every thread see it.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        for post in &self.posts {
            post.notify_mail();
        }
        // A thread between its look at the phase and its waiting holds the lock: it is waited out.
        // Where a panic broke the lock nobody waits.
        drop(self.core.lock());
        self.work.notify_all();
        self.chores.notify_all();
        self.fetches.notify_all();
        self.settled.notify_all();
    }

    /// Brings the journal to rest after the last session is gone: flushed, with a snapshot, in
    /// files that are there for the next start. The committers and the housekeeper do it.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        let mut core = self.lock();
        core.begin_to_end();
        core.broker.begin_shutdown();
        self.offer_chore(&mut core, self.clock.now());
        self.hand_over(&mut core);
        while !core.broker.is_idle() {
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            core = self.settled.wait(core).expect(POISONED);
            self.hand_over(&mut core);
        }
        let files = core.broker.watched_files(0);
        drop(core);
        let in_place = self.disk.as_ref().map_or(Ok(()), |disk| disk.check_in_place(&files));
        in_place.map_err(|error| Failure::Journal(error.to_string()))
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.ending().failure.clone()
    }

    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().expect(POISONED)
    }
}

/// A panic of one thread inside the engine ends the others as soon as they touch it.
const POISONED: &str = "invariant: no thread panicked before with what the lock protects";

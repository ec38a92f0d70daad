//! The state that the threads of a server share: the core behind its one lock, and a few words
//! beside the lock. By these words a thread finds out whether it has to take the lock.

mod users;

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use broker::{Chore, ChoreDone, Fetch, FetchDone, JournalFailed};
use disk::{File, RealDisk};
use http_api::{Adjustable, RequestQueue};
use input::WrongProtocol;
use journal::{DiskError, Durable};
use model::{Lsn, Nanos, SessionId, WallClock};

use crate::audit::AuditLog;
use crate::buffered::Buffered;
use crate::clock::Clock;
use crate::config::{Config, Limits};
use crate::connection_permits::{ConnectionPermit, ConnectionPermits, Exit, Origin};
use crate::core::{Core, Transfer};
use crate::counters::Counters;
use crate::facts::JournalGauges;
use crate::log::Complaint;
use crate::logins::Logins;
use crate::mailbox::Mailbox;
use crate::memory::receives_max;
use crate::tls::{FailedHandshake, TlsKeeper};
use crate::turned_away::TurnedAway;
use crate::user_quotas::UserQuotas;
use crate::wrong_protocol::Advice;
use crate::{Failure, Logger};

/// The state that all threads share.
pub(crate) struct Hub {
    core: Mutex<Core>,
    /// Committers wait here for something to write.
    work: Condvar,
    /// The housekeeper waits here for a chore.
    chores: Condvar,
    /// The reader waits here for something to be read back.
    fetches: Condvar,
    /// The thread that stops the server waits here for writes and chores to end.
    idle: Condvar,
    /// The mailboxes of the reactors, and last that of the gateway.
    mailboxes: Arc<[Mailbox]>,
    written: AtomicU64,
    synced: AtomicU64,
    /// Writes and chores completed so far.
    completions: AtomicU64,
    /// When the broker next wants its timers handled.
    deadline: AtomicU64,
    /// A write is to begin as soon as no reactor has anything else to do.
    write_due: AtomicBool,
    /// Reactors that are not asleep.
    awake: AtomicUsize,
    /// Threads that serve: reactors, and that of HTTP.
    serving: AtomicUsize,
    phase: AtomicU8,
    ending: Mutex<Ending>,
    ended: Condvar,
    gauges: Arc<JournalGauges>,
    /// The requests of the gateway's tasks.
    pub(crate) requests: Arc<RequestQueue>,
    /// Connections that may be open.
    pub(crate) permits: Arc<ConnectionPermits>,
    pub(crate) buffered: Buffered,
    /// Bytes that requests and answers of HTTP hold.
    pub(crate) http_bytes: Arc<AtomicUsize>,
    pub(crate) disk: Option<RealDisk>,
    pub(crate) clock: Clock,
    /// How the machine's clock stands to that, as [`Hub::now`] saw it last.
    pub(crate) wall_clock: WallClock,
    /// The limits and hosts that hold now.
    adjusted: RwLock<Adjusted>,
    memory_limit: u64,
    pub(crate) log: Logger,
    /// The complaint that clients speak the wrong protocol.
    wrong_protocols: Mutex<Complaint>,
    /// The complaint that TLS failed.
    failed_handshakes: Mutex<Complaint>,
    /// The certificates, if a listener speaks TLS.
    tls: Option<TlsKeeper>,
    /// The users, if there are any.
    logins: Option<Logins>,
    /// How often users were to be reviewed.
    users_generation: AtomicU64,
    user_quotas: UserQuotas,
    /// Logins that were refused or put off.
    failed_logins: AtomicU64,
    /// The audit log, if there is one.
    audit: Option<AuditLog>,
    /// The complaint that connections are refused.
    refusals: Mutex<Complaint>,
    /// The complaint that connections without a command gave way.
    dismissals: Mutex<Complaint>,
    /// Connections that listeners did not take.
    pub(crate) turned_away: TurnedAway,
}

/// Settings that may change while the server runs.
#[derive(Debug)]
pub(crate) struct Adjusted {
    pub(crate) limits: Limits,
    /// All settings as they were asked for.
    pub(crate) asked: Config,
}

/// The parts of a hub besides its core.
pub(crate) struct Parts {
    /// One a reactor, and one for the gateway.
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) requests: Arc<RequestQueue>,
    pub(crate) gauges: Arc<JournalGauges>,
    pub(crate) disk: Option<RealDisk>,
    pub(crate) clock: Clock,
    pub(crate) adjusted: Adjusted,
    /// Bytes that everything together may take.
    pub(crate) memory_limit: u64,
    pub(crate) tls: Option<TlsKeeper>,
    pub(crate) logins: Option<Logins>,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) log: Logger,
}

/// How far a server's life has come. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serves.
    Serving,
    /// Accepts nothing more and finishes the work in flight.
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
        if let Some(first) = self.0.mailboxes.first() {
            first.notify_mail();
        }
    }
}

/// The next act on the journal after a turn's commands.
pub(crate) enum Commit {
    /// Nothing is to be written, or others do it.
    Elsewhere,
    /// Write now, in this thread.
    Here(Transfer),
}

impl Hub {
    pub(crate) fn new(core: Core, parts: Parts) -> Self {
        let Parts {
            mailboxes,
            requests,
            gauges,
            disk,
            clock,
            adjusted,
            memory_limit,
            tls,
            logins,
            audit,
            log,
        } = parts;
        let durable = core.broker.durable();
        let wall_clock = core.commons.wall_clock.clone();
        wall_clock.set(clock.now(), Clock::wall());
        let reactors = mailboxes.len() - 1;
        Self {
            core: Mutex::new(core),
            work: Condvar::new(),
            chores: Condvar::new(),
            fetches: Condvar::new(),
            idle: Condvar::new(),
            mailboxes: mailboxes.into(),
            written: AtomicU64::new(durable.written.0),
            synced: AtomicU64::new(durable.synced.0),
            completions: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            write_due: AtomicBool::new(false),
            awake: AtomicUsize::new(reactors),
            serving: AtomicUsize::new(0),
            phase: AtomicU8::new(Phase::Serving as u8),
            ending: Mutex::default(),
            ended: Condvar::new(),
            requests,
            gauges,
            permits: ConnectionPermits::new(adjusted.limits.connections, logins.is_some()),
            buffered: Buffered::new(adjusted.limits.buffered_bytes),
            http_bytes: Arc::default(),
            disk,
            clock,
            wall_clock,
            adjusted: RwLock::new(adjusted),
            memory_limit,
            log,
            wrong_protocols: Mutex::default(),
            failed_handshakes: Mutex::default(),
            tls,
            logins,
            users_generation: AtomicU64::new(0),
            audit,
            refusals: Mutex::default(),
            dismissals: Mutex::default(),
            user_quotas: UserQuotas::default(),
            failed_logins: AtomicU64::new(0),
            turned_away: TurnedAway::default(),
        }
    }

    /// A permit for a connection, unless connections that gave commands have all of them, which is
    /// logged.
    pub(crate) fn admit(
        &self,
        now: Nanos,
        origin: Origin,
        exit: Exit,
        is_operator: bool,
    ) -> Option<ConnectionPermit> {
        let Some(admission) = self.permits.admit(origin, exit, is_operator) else {
            let connections_max = self.permits.connections_max();
            let why = format_args!("{connections_max} are open (--max-connections)");
            let mut complaint = self.refusals.lock().expect(POISONED);
            complaint.line(self.log, now, format_args!("refusing connections: {why}"));
            return None;
        };
        self.tell_dismissal(now, admission.gave_way);
        Some(admission.permit)
    }

    /// Counts a connection for the client that its proxy has told. Gives false if it has to end.
    pub(crate) fn count_for(
        &self,
        now: Nanos,
        permit: &mut ConnectionPermit,
        client: SocketAddr,
    ) -> bool {
        let gave_way = permit.count_for(Origin::of(Some(client)));
        self.tell_dismissal(now, gave_way.unwrap_or_default());
        gave_way.is_ok()
    }

    fn tell_dismissal(&self, now: Nanos, gave_way: Option<Origin>) {
        let Some(origin) = gave_way else { return };
        let connections_max = self.permits.connections_max();
        let why = format_args!("{connections_max} are open (--max-connections)");
        let what = format_args!("closed a connection from {origin} without a command");
        let mut complaint = self.dismissals.lock().expect(POISONED);
        complaint.line(self.log, now, format_args!("{what}, since others come: {why}"));
    }

    /// Logs that a client speaks the wrong protocol.
    pub(crate) fn tell_wrong_protocol(&self, now: Nanos, connection: &str, wrong: WrongProtocol) {
        let mut complaint = self.wrong_protocols.lock().expect(POISONED);
        complaint.line(self.log, now, format_args!("{}", Advice { connection, wrong }));
    }

    /// Logs that a peer and the server could not agree about TLS.
    pub(crate) fn tell_failed_handshake(
        &self,
        now: Nanos,
        connection: &str,
        error: &rustls::Error,
    ) {
        let mut complaint = self.failed_handshakes.lock().expect(POISONED);
        complaint.line(self.log, now, format_args!("{}", FailedHandshake { connection, error }));
    }

    /// The certificates, if a listener speaks TLS.
    pub(crate) const fn tls(&self) -> Option<&TlsKeeper> {
        self.tls.as_ref()
    }

    /// The audit log, if there is one.
    #[inline]
    pub(crate) const fn audit(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    /// The moment by the machine's clock, for lines of the audit log.
    pub(crate) fn wall_now(&self) -> Nanos {
        self.wall_clock.wall_time(self.clock.now())
    }

    /// The limits that hold now.
    pub(crate) fn limits(&self) -> Limits {
        self.adjusted.read().expect(POISONED).limits
    }

    /// The options of new connections of HTTP.
    pub(crate) fn http_options(&self) -> Adjustable {
        let adjusted = self.adjusted.read().expect(POISONED);
        let Limits { half_sent, http_idle, .. } = adjusted.limits;
        let allowed_hosts = adjusted.asked.allowed_hosts.clone();
        Adjustable { half_sent, idle: http_idle, allowed_hosts }
    }

    /// All settings as they were asked for.
    pub(crate) fn asked(&self) -> Config {
        self.adjusted.read().expect(POISONED).asked.clone()
    }

    /// Changes limits and hosts.
    pub(crate) fn adjust(&self, change: impl FnOnce(&mut Adjusted)) {
        change(&mut self.adjusted.write().expect(POISONED));
        self.mailboxes.iter().for_each(Mailbox::notify_mail);
    }

    /// The present moment. The machine's clock is read beside it: it may have been set.
    pub(crate) fn now(&self) -> Nanos {
        let now = self.clock.now();
        self.wall_clock.set(now, Clock::wall());
        now
    }

    /// Locks the core. A deadline that becomes earlier meanwhile wakes a reactor.
    pub(crate) fn lock(&self) -> CoreGuard<'_> {
        self.lock_with(Deadline::Wakes)
    }

    /// Locks the core for the step of a reactor's turn. The reactor looks at the deadline after it
    /// and before it sleeps, so that none has to be woken.
    pub(crate) fn lock_in_turn(&self) -> CoreGuard<'_> {
        self.lock_with(Deadline::IsSeen)
    }

    fn lock_with(&self, deadline: Deadline) -> CoreGuard<'_> {
        CoreGuard { hub: self, deadline, core: Some(self.core.lock().expect(POISONED)) }
    }
}

/// The core while a thread holds its lock. Before the release, every thread that may sleep learns
/// of due work, for any act of the holder: frames that are to be written and deadlines.
pub(crate) struct CoreGuard<'a> {
    hub: &'a Hub,
    deadline: Deadline,
    /// Held until the guard is dropped.
    core: Option<MutexGuard<'a, Core>>,
}

/// The need to wake a reactor for a deadline that became earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deadline {
    Wakes,
    IsSeen,
}

impl CoreGuard<'_> {
    /// Releases the lock until `condvar` is notified.
    fn wait(mut self, condvar: &Condvar) -> Self {
        self.announce();
        self.core = self.core.take().map(|core| condvar.wait(core).expect(POISONED));
        self
    }

    /// The same, for so long at most.
    fn wait_timeout(mut self, condvar: &Condvar, span: Duration) -> Self {
        self.announce();
        let core = self.core.take();
        self.core = core.map(|core| condvar.wait_timeout(core, span).expect(POISONED).0);
        self
    }

    fn announce(&mut self) {
        let (hub, deadline) = (self.hub, self.deadline);
        hub.announce(self, deadline);
    }
}

impl Deref for CoreGuard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.core.as_ref().expect(HELD)
    }
}

impl DerefMut for CoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        self.core.as_mut().expect(HELD)
    }
}

impl Drop for CoreGuard<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.announce();
        }
    }
}

/// The operations under the lock.
impl Hub {
    /// Shows due work to every thread that may sleep: the next deadline, and a write that is to
    /// begin. A committer begins the write if no reactor is awake to do it.
    fn announce(&self, core: &mut Core, deadline: Deadline) {
        let now = self.clock.now();
        if cfg!(debug_assertions) {
            core.scheduler.check(&core.broker, now);
        }
        let is_due = core.is_write_due(now);
        // In this order: a reactor that falls asleep from here on sees it, and one that sleeps
        // already is seen.
        self.write_due.store(is_due, Ordering::SeqCst);
        let is_seen = std::mem::take(&mut core.reactor_woken);
        if is_due && !is_seen && self.awake.load(Ordering::SeqCst) == 0 {
            self.hand_over(core);
            self.write_due.store(core.is_write_due(now), Ordering::SeqCst);
        }
        self.publish_deadline(core, now, deadline);
    }

    /// Ends a reactor's turn with the core. `active` asked for something in this turn.
    pub(crate) fn commit(&self, core: &mut Core, active: &[SessionId], now: Nanos) -> Commit {
        core.scheduler.note_active(active);
        self.offer_chore(core, now);
        core.evictions.tell(self.log, now, core.broker.dead_letters());
        let transfer = core.eager_write(now);
        self.assign(core, transfer, 0)
    }

    /// The last reactor falls asleep: writes the accumulated frames now. `waiting` counts the
    /// connections that wait for it while no other asks for anything; zero if others may ask.
    pub(crate) fn commit_idle(&self, waiting: usize) -> Commit {
        let core = &mut *self.lock();
        let transfer = core.idle_write(self.clock.now());
        self.assign(core, transfer, waiting)
    }

    /// Ends a turn of the gateway with the core, which leaves all writing to others.
    pub(crate) fn commit_elsewhere(&self, core: &mut Core, active: &[SessionId], now: Nanos) {
        core.scheduler.note_active(active);
        self.offer_chore(core, now);
        core.evictions.tell(self.log, now, core.broker.dead_letters());
        if let Some(transfer) = core.eager_write(now) {
            self.leave_to_committers(core, transfer);
        }
    }

    /// Decides which thread writes it.
    fn assign(&self, core: &mut Core, transfer: Option<Transfer>, waiting: usize) -> Commit {
        match transfer {
            None => Commit::Elsewhere,
            Some(transfer) if core.scheduler.belongs_to_reactor(&transfer, waiting) => {
                Commit::Here(transfer)
            }
            Some(transfer) => {
                self.leave_to_committers(core, transfer);
                Commit::Elsewhere
            }
        }
    }

    /// Hands a performed write back to the broker, and tells all reactors and the gateway how
    /// durable the log is now.
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
        self.publish(core);
        Ok(())
    }

    /// The next write for a committer, waiting for one; `None` when the server ends.
    pub(crate) fn wait_for_write<'a>(
        &self,
        mut core: CoreGuard<'a>,
    ) -> Option<(CoreGuard<'a>, Transfer)> {
        while self.phase() < Phase::Halted {
            let now = self.clock.now();
            if let Some(transfer) = core.take_handed().or_else(|| core.eager_write(now)) {
                return Some((core, transfer));
            }
            core.committers_idle += 1;
            core = core.wait(&self.work);
            core.committers_idle -= 1;
        }
        None
    }

    /// Leaves to the committers the frames that accumulated while another thread was writing.
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
        mut core: CoreGuard<'a>,
        deadline: Nanos,
    ) -> Option<(CoreGuard<'a>, Option<Chore<File>>)> {
        while self.phase() < Phase::Halted {
            self.poll_chore(&mut core, self.clock.now());
            if let Some(chore) = core.take_chore() {
                return Some((core, Some(chore)));
            }
            let left = deadline.since(self.clock.uptime());
            if left == Nanos::ZERO {
                return Some((core, None));
            }
            core = core.wait_timeout(&self.chores, Duration::from_nanos(left.0));
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

    /// Asks for a chore. It may show that no more bodies can leave memory: then sends that wait for
    /// it go on.
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
        mut core: CoreGuard<'a>,
    ) -> Option<(CoreGuard<'a>, Fetch<File>)> {
        while self.phase() < Phase::Halted {
            if let Some(fetch) = core.poll_fetch() {
                return Some((core, fetch));
            }
            core = core.wait(&self.fetches);
        }
        None
    }

    /// Hands the bodies read back to the broker, and the outputs that waited for them to their
    /// reactors.
    ///
    /// # Errors
    /// The disk failed: nothing more may be confirmed.
    pub(crate) fn complete_fetch(
        &self,
        core: &mut Core,
        done: FetchDone<File>,
    ) -> Result<(), JournalFailed> {
        core.complete_fetch(done, &self.mailboxes)
    }

    /// Every thread may see how durable the log is now, and those that wait for it are woken.
    fn publish(&self, core: &mut Core) {
        // In this order: a reactor that is woken and falls asleep again before this thread goes on
        // has seen whether a write is due.
        let is_due = core.is_write_due(self.clock.now());
        self.write_due.store(is_due, Ordering::SeqCst);
        let durable = core.broker.durable();
        self.written.store(durable.written.0, Ordering::Release);
        self.synced.store(durable.synced.0, Ordering::Release);
        self.completions.fetch_add(1, Ordering::SeqCst);
        self.gauges.note(&core.broker.counters());
        for (index, mailbox) in self.mailboxes.iter().enumerate() {
            let is_woken = mailbox.notify_write();
            core.reactor_woken |= is_woken && is_due && index < self.reactors();
        }
        if self.phase() > Phase::Serving {
            self.idle.notify_all();
        }
    }

    /// Reactors sleep until the deadline that they saw last. One that another thread made is seen
    /// by none, so the first is woken to see it.
    fn publish_deadline(&self, core: &Core, now: Nanos, deadline: Deadline) {
        let next = core.deadline(now).unwrap_or(Nanos::MAX).0;
        let before = self.deadline.swap(next, Ordering::SeqCst);
        if next < before
            && deadline == Deadline::Wakes
            && let Some(first) = self.mailboxes.first()
        {
            first.notify_mail();
        }
    }

    /// Bytes that connections hold, those of HTTP too.
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
            connections: self.permits.open(),
            turned_away: self.turned_away.count(),
            buffered_bytes: self.buffered.bytes(),
            memory_limit: self.memory_limit,
            memory_bytes: core.broker.memory_bytes() + self.connections_bytes() as u64,
            memory_waits: core.broker.memory_waits(),
            certificate_end: self.tls.as_ref().and_then(TlsKeeper::ends_at),
            bodies_paged_out: core.broker.paged_out(),
            spill: core.broker.spill_counters(),
            failed_logins: self.failed_logins.load(Ordering::Relaxed),
        }
    }
}

/// The operations without the lock.
impl Hub {
    pub(crate) fn durable(&self) -> Durable {
        // In this order: `written` never shows less than `synced`.
        let synced = Lsn(self.synced.load(Ordering::Acquire));
        Durable { written: Lsn(self.written.load(Ordering::Acquire)), synced }
    }

    pub(crate) fn completions(&self) -> u64 {
        self.completions.load(Ordering::SeqCst)
    }

    /// True if a write is to begin as soon as no reactor has anything else to do.
    pub(crate) fn is_write_due(&self) -> bool {
        self.write_due.load(Ordering::SeqCst)
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

    pub(crate) fn mailbox(&self, reactor: usize) -> &Mailbox {
        self.mailboxes.get(reactor).expect("invariant: each reactor has a mailbox")
    }

    pub(crate) fn mailboxes(&self) -> &[Mailbox] {
        &self.mailboxes
    }

    /// How many reactors there are; the mailbox of this index is the gateway's.
    pub(crate) fn reactors(&self) -> usize {
        self.mailboxes.len() - 1
    }

    /// This thread begins to serve.
    pub(crate) fn begin_to_serve(&self) -> Serving<'_> {
        self.serving.fetch_add(1, Ordering::SeqCst);
        Serving(self)
    }

    /// True if a reactor may end: the first keeps the broker's time for all others.
    pub(crate) fn can_spare(&self, reactor: usize) -> bool {
        reactor > 0 || self.serving.load(Ordering::SeqCst) <= 1
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Serving,
            1 => Phase::Stopping,
            _ => Phase::Halted,
        }
    }

    /// Refuses from now on every store, and every send that waits for a place in a queue.
    pub(crate) fn drain(&self) {
        let core = &mut *self.lock();
        core.commons.draining.begin();
        core.broker.refuse_waiting();
    }
}

/// How a server ends.
impl Hub {
    /// Asks for the end. The thread that waits for it sees to it.
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
        for mailbox in self.mailboxes.iter() {
            mailbox.notify_mail();
        }
        // A thread between its look at the phase and its wait holds the lock: this waits it out.
        // If a panic broke the lock, no thread waits.
        drop(self.core.lock());
        self.work.notify_all();
        self.chores.notify_all();
        self.fetches.notify_all();
        self.idle.notify_all();
    }

    /// Brings the journal to rest after the last session is gone: flushed, with a snapshot, in
    /// files that are there for the next start. The committers and the housekeeper do it.
    pub(crate) fn quiesce(&self) -> Result<(), Failure> {
        let mut core = self.lock();
        core.scheduler.begin_to_end();
        core.broker.begin_shutdown();
        self.offer_chore(&mut core, self.clock.now());
        self.hand_over(&mut core);
        while !core.broker.is_idle() {
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            core = core.wait(&self.idle);
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

const HELD: &str = "invariant: the guard holds the lock until it is dropped";

/// A panic of one thread inside the engine ends the others as soon as they touch it.
const POISONED: &str = "invariant: no thread panicked before with what the lock protects";

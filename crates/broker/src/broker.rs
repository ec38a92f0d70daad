//! The joint of engine and journal.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions, RecordError, SnapshotCursor};
use journal::{
    ChainReadiness, Disk, DiskError, Durable, JournalCounters, JournalFailed, JournalOptions,
    OldFrames, OpenError, Unwritten, Write,
};
use model::{
    BrokerStatistics, Capacity, Command, DeadLetterStatistics, LiveRecords, Lsn, MessageId, Nanos,
    Output, Principal, SessionId, StorePolicy, UserRights,
};

use crate::explain::Explaining;
use crate::fetching::Fetching;
use crate::log::Log;
use crate::recovery::{Recovery, recover};
use crate::returning::Returning;
use crate::spilling::Spilling;
use crate::work::{Chore, ChoreDone};

/// The options of a broker.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// The meaning of "persistent", and the policies of the queues.
    pub engine: EngineOptions,
    /// The log; unused if the policy is [`StorePolicy::Memory`].
    pub journal: JournalOptions,
}

/// An engine and its log. See the crate's documentation for the order of calls.
pub struct Broker<F> {
    pub(crate) engine: Engine,
    pub(crate) journal: Option<Log<F>>,
    pub(crate) effects: Effects,
    /// The snapshot that is being taken.
    snapshot: Option<SnapshotCursor>,
    chunk: Vec<u8>,
    /// Sessions that ended while the log took no frames: their deliveries are returned later.
    ended: VecDeque<(SessionId, Fault)>,
    /// Replies with bodies that are to be fetched.
    pub(crate) returning: Returning,
    pub(crate) fetching: Fetching,
    pub(crate) spilling: Option<Spilling<F>>,
    /// The last chore was for the spill; the log is next.
    served_spill: bool,
    /// Bodies were away when the engine was stepped: its outputs may name some.
    had_paged_out: bool,
    /// How often one had gone by then: some may go meanwhile.
    paged_out_total: u64,
    /// Time never goes back, even if the clock of this start is behind.
    started_at: Nanos,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Its client is gone.
    Theirs,
    /// The server ends it.
    Ours,
}

impl<F: Clone> Broker<F> {
    /// A broker that keeps nothing.
    #[must_use]
    pub fn in_memory(options: EngineOptions) -> Self {
        let options = EngineOptions { policy: StorePolicy::Memory, ..options };
        Self::new(Engine::new(options), None, Nanos::ZERO)
    }

    /// A broker with its log in a directory, recovered from the files there.
    ///
    /// # Errors
    /// [`OpenError`]: see `Journal::open`.
    pub fn open<D: Disk<File = F>>(
        disk: &D,
        options: BrokerOptions,
    ) -> Result<(Self, Recovery), OpenError> {
        let spilling = Spilling::new(&options.journal);
        let (engine, journal, recovery) = recover(disk, options)?;
        let broker = Self::new(engine, Some(Log::new(journal)), recovery.latest);
        Ok((Self { spilling, ..broker }, recovery))
    }

    fn new(engine: Engine, journal: Option<Log<F>>, started_at: Nanos) -> Self {
        Self {
            engine,
            journal,
            effects: Effects::default(),
            snapshot: None,
            chunk: Vec::new(),
            ended: VecDeque::new(),
            returning: Returning::default(),
            fetching: Fetching::default(),
            spilling: None,
            served_spill: false,
            had_paged_out: false,
            paged_out_total: 0,
            started_at,
        }
    }

    /// A client begins.
    pub fn open_session(&mut self, session: SessionId) {
        self.engine.open_session(session);
    }

    /// Sets the name of a client for operators.
    pub fn name_session(&mut self, session: SessionId, name: Arc<str>) {
        self.engine.name_session(session, name);
    }

    /// A client acts for this one from now on: see [`Engine::act_for`].
    pub fn act_for(&mut self, session: SessionId, principal: Principal) {
        self.engine.act_for(session, principal);
    }

    /// The rights of all users: see [`Engine::set_users`].
    pub fn set_users(&mut self, users: Option<Arc<UserRights>>) {
        self.engine.set_users(users);
    }

    /// A client is gone: its deliveries are ready again, as failed attempts; its waits end.
    pub fn close_session(&mut self, now: Nanos, session: SessionId, outputs: &mut Vec<Output>) {
        self.end_session(now, session, Fault::Theirs, outputs);
    }

    /// The messages that a lost client can have begun: see [`Engine::note_begun`].
    pub fn note_begun(&mut self, session: SessionId, begun: BTreeSet<MessageId>) {
        self.engine.note_begun(session, begun);
    }

    /// A client is known to be gone, and will be closed: see [`Engine::stop_serving`].
    pub fn stop_serving(&mut self, session: SessionId) {
        self.engine.stop_serving(session);
    }

    /// The end of a client through no fault of its own: nothing that it held counts as failed.
    pub fn dismiss_session(&mut self, now: Nanos, session: SessionId, outputs: &mut Vec<Output>) {
        self.end_session(now, session, Fault::Ours, outputs);
    }

    /// One command of a client.
    pub fn handle(
        &mut self,
        now: Nanos,
        session: SessionId,
        command: Command,
        outputs: &mut Vec<Output>,
    ) {
        let capacity = self.begin_call();
        self.engine.handle(now, session, command, capacity, &mut self.effects);
        self.commit_effects(now, outputs);
        self.commit_awaiting(now, outputs);
    }

    /// Lets time pass for the engine: ends sessions that could not end before, and a bounded number
    /// of delays, leases, waits and pauses; commits that waited for room go on. Expiry is
    /// journalled, and so are the deliveries of a client that is gone: all of it waits while the
    /// broker is stalled.
    pub fn handle_timeout(&mut self, now: Nanos, outputs: &mut Vec<Output>) {
        while !self.stalled()
            && let Some((session, fault)) = self.ended.pop_front()
        {
            self.end_session(now, session, fault, outputs);
        }
        if !self.stalled() {
            let capacity = self.begin_call();
            self.engine.handle_timeout(now, capacity, &mut self.effects);
            self.commit_effects(now, outputs);
        }
        self.commit_awaiting(now, outputs);
    }

    /// When something is to be done even if nothing happens: [`Broker::handle_timeout`],
    /// [`Broker::poll_write`] or [`Broker::poll_chore`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let spill = self.spilling.as_ref().and_then(Spilling::retry_at);
        let journal = self.journal.as_ref().and_then(|journal| journal.poll_timeout());
        let journal = journal.into_iter().chain(spill).min();
        let commit = (self.readiness() != ChainReadiness::Awaited).then_some(Nanos::ZERO);
        if self.stalled() {
            return journal.into_iter().chain(commit).min();
        }
        let ended = (!self.ended.is_empty()).then_some(Nanos::ZERO);
        let engine = self.engine.poll_timeout();
        journal.into_iter().chain(engine).chain(ended).chain(commit).min()
    }

    /// True if commands must wait until a write or a chore completes.
    #[must_use]
    pub fn stalled(&self) -> bool {
        self.journal.as_ref().is_some_and(Log::stalled)
    }

    /// Returns true if the broker takes a command now: none while it is stalled. Commands that add
    /// to the log wait while it is behind. Commands that add to memory wait while it is full of
    /// bodies that are about to leave. So settling need not wait.
    #[must_use]
    pub fn takes(&self, session: SessionId, command: &Command) -> bool {
        let Some(journal) = &self.journal else { return true };
        if !self.holds_back() {
            return true;
        }
        let waits = |bytes| journal.holds_back(bytes);
        let waits_for_log = self.engine.adds_to_log(session, command).is_some_and(waits);
        let waits_for_memory = self.waits_for_spill() && engine::adds_to_memory(command);
        !journal.stalled() && !waits_for_log && !waits_for_memory
    }

    /// True if something that adds to the log or to memory may have to wait, or everything.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.capacity().is_behind || self.waits_for_spill()
    }

    /// Bytes of log that puts may use now; all there can be if nothing is kept.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.capacity().room_bytes
    }

    /// Nothing that waits for a place in a queue is stored: see [`Engine::refuse_waiting`].
    pub fn refuse_waiting(&mut self) {
        self.engine.refuse_waiting();
    }

    /// How far the log is durable; an output without a dependency needs no log.
    #[must_use]
    pub fn durable(&self) -> Durable {
        self.journal.as_ref().map_or_else(Durable::default, |journal| journal.durable())
    }

    /// The frames that wait to be written: see `Journal::unwritten`.
    #[must_use]
    pub fn unwritten(&self) -> Unwritten {
        self.journal.as_ref().map_or_else(Unwritten::default, |journal| journal.unwritten())
    }

    /// The next thing to be done for the log: see `Journal::poll_write`.
    pub fn poll_write(&mut self, now: Nanos) -> Option<Write<F>> {
        self.journal.as_mut()?.poll_write(now)
    }

    /// Takes a performed write back.
    ///
    /// # Errors
    /// When the disk failed: nothing more is confirmed, and the process is to end.
    ///
    /// # Panics
    /// When there is no log.
    pub fn handle_write(
        &mut self,
        now: Nanos,
        write: Write<F>,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        self.journal_mut().handle_write(now, write, result)?;
        self.tell_who_waits();
        Ok(())
    }

    /// The next piece of housekeeping; at most one is outstanding. The log and the spill take
    /// turns.
    pub fn poll_chore(&mut self, now: Nanos) -> Option<Chore<F>> {
        let chore = self.next_chore(now);
        if self.engine.waits_for_log() {
            // The chore may have shown just now that there is no more room: then sends do not wait
            // for it, but are refused.
            self.engine.handle_capacity(self.capacity());
        }
        chore
    }

    /// Files of the log that have to stay where they are: see `Journal::watched_files`.
    #[must_use]
    pub fn watched_files(&self, turn: usize) -> Vec<(String, F)> {
        self.journal.as_ref().map_or_else(Vec::new, |journal| journal.watched_files(turn))
    }

    /// Something beside the log failed that it cannot do without: nothing more is confirmed.
    pub fn fail_beside(&mut self, cause: DiskError) -> JournalFailed {
        self.journal_mut().fail_beside(cause)
    }

    fn next_chore(&mut self, now: Nanos) -> Option<Chore<F>> {
        if !self.served_spill
            && let Some(chore) = self.poll_spill_chore(now)
        {
            self.served_spill = true;
            return Some(chore);
        }
        self.served_spill = false;
        let chore = self.poll_log_chore(now).map(Chore::Log);
        chore.or_else(|| self.poll_spill_chore(now))
    }

    fn poll_log_chore(&mut self, now: Nanos) -> Option<journal::LogChore<F>> {
        let journal = self.journal.as_mut()?;
        if let Some(chore) = journal.poll_chore(now) {
            return Some(chore);
        }
        if journal.wants_snapshot() {
            journal.begin_snapshot(now);
            self.snapshot = Some(self.engine.snapshot_begin());
        }
        self.poll_snapshot_chunk()
    }

    /// Takes a performed chore back.
    ///
    /// # Errors
    /// When the disk failed: nothing more is confirmed, and the process is to end.
    ///
    /// # Panics
    /// When there is no log.
    pub fn handle_chore(&mut self, now: Nanos, done: ChoreDone<F>) -> Result<(), JournalFailed> {
        match done {
            ChoreDone::Log(done) => {
                let old = self.journal_mut().handle_chore(now, done)?;
                self.restate(now, &old)?;
                self.tell_who_waits();
                Ok(())
            }
            ChoreDone::Spill(done) => self.handle_spill_write(now, done),
            ChoreDone::SpillMove(done) => self.handle_spill_move(done),
            ChoreDone::Removal(done) => self.handle_spill_removal(done),
        }
    }

    /// From now on does only the work that ends the process well: go on until [`Broker::is_idle`].
    pub fn begin_shutdown(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.begin_shutdown();
        }
    }

    /// True if everything is synced, in a snapshot, and nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.is_settled() && journal.is_tidy())
    }

    /// The journal's counters; zeros if there is none.
    #[must_use]
    pub fn counters(&self) -> JournalCounters {
        self.journal.as_ref().map_or_else(JournalCounters::default, |journal| journal.counters())
    }

    /// Begins to find the reason why the log keeps each file.
    #[must_use]
    pub fn explain(&self) -> Explaining {
        let (segments, last) = match self.journal.as_ref() {
            Some(journal) => (journal.explain(), journal.last()),
            None => (Vec::new(), Lsn::ZERO),
        };
        Explaining::new(segments, last)
    }

    /// Looks at some more messages for this; false when it has seen all.
    pub fn go_on_explaining(&self, explaining: &mut Explaining) -> bool {
        explaining.go_on(&self.engine)
    }

    /// The engine's statistics.
    #[must_use]
    pub fn statistics(&self) -> BrokerStatistics {
        self.engine.statistics()
    }

    /// The fate of dead messages.
    #[must_use]
    pub const fn dead_letters(&self) -> DeadLetterStatistics {
        self.engine.dead_letters()
    }

    /// Bytes of memory that messages take: see [`Engine::memory_bytes`].
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
    }

    /// Bytes that open transactions hold.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> usize {
        self.engine.uncommitted_bytes()
    }

    /// Bytes that open transactions may hold together: see [`engine::Bodies::uncommitted_max`].
    #[must_use]
    pub fn uncommitted_max(&self) -> usize {
        self.engine.bodies().uncommitted_max()
    }

    /// Sends that wait until there is memory for them.
    #[must_use]
    pub fn memory_waits(&self) -> u64 {
        self.engine.memory_waits()
    }

    /// Messages with bodies that have left memory.
    #[must_use]
    pub fn paged_out(&self) -> u64 {
        self.engine.bodies().paged_out()
    }

    /// The cost of all calls so far to the engine: see [`Engine::steps`].
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.engine.steps()
    }

    /// How many messages and keys end by `now`: see [`Engine::ending_by`].
    #[must_use]
    pub fn ending_by(&self, now: Nanos) -> u64 {
        self.engine.ending_by(now)
    }

    /// No `now` before this one may be given: the latest time that recovery found.
    #[must_use]
    pub fn started_at(&self) -> Nanos {
        self.started_at
    }

    /// Every invariant of engine and journal, and between them.
    ///
    /// # Panics
    /// When one is broken.
    pub fn check(&self) {
        self.engine.check();
        if let Some(journal) = &self.journal {
            journal.check();
            let live: u64 = self.engine.live().map(|(_, bytes)| bytes).sum();
            assert_eq!(journal.counters().live_bytes, live, "both count the same live bytes");
        }
        self.check_spill();
    }

    /// Its deliveries count as failed if the fault is its own; that is journalled.
    fn end_session(
        &mut self,
        now: Nanos,
        session: SessionId,
        fault: Fault,
        outputs: &mut Vec<Output>,
    ) {
        if self.stalled() {
            self.forget_replies(session);
            self.engine.stop_serving(session);
            return self.ended.push_back((session, fault));
        }
        self.forget_replies(session);
        let (capacity, effects) = (self.begin_call(), &mut self.effects);
        match fault {
            Fault::Theirs => self.engine.close_session(now, session, capacity, effects),
            Fault::Ours => self.engine.dismiss_session(now, session, capacity, effects),
        }
        self.commit_effects(now, outputs);
        self.commit_awaiting(now, outputs);
    }

    pub(crate) fn journal_mut(&mut self) -> &mut Log<F> {
        self.journal.as_mut().expect("invariant: only a log hands out writes and chores")
    }

    /// The capacity of the log now; the engine uses no more of it.
    pub(crate) fn capacity(&self) -> Capacity {
        self.journal.as_ref().map_or(Capacity::UNBOUNDED, Log::capacity)
    }

    /// The capacity for a call of the engine, of which outputs may come.
    fn begin_call(&mut self) -> Capacity {
        self.had_paged_out = self.engine.bodies().has_paged_out();
        self.paged_out_total = self.engine.bodies().paged_out_total();
        self.capacity()
    }

    /// Bodies that the disk has by now may leave memory, and the log may have caught up.
    fn tell_who_waits(&mut self) {
        if self.engine.memory_waits() > 0 || self.engine.waits_for_log() {
            self.engine.handle_capacity(self.capacity());
        }
    }

    /// Appends the frames of the last step, tells the log which records ceased to matter, and hands
    /// out the outputs.
    fn commit_effects(&mut self, now: Nanos, outputs: &mut Vec<Output>) {
        if let Some(journal) = &mut self.journal {
            let mut start = 0;
            for frame in &self.effects.frames {
                let payload = self.effects.records.get(start..frame.end).unwrap_or_default();
                journal.append(now, frame.lsn, payload, frame.level, frame.live);
                start = frame.end;
            }
            for grown in &self.effects.grown {
                journal.grow(grown.lsn, grown.bytes);
            }
            for freed in &self.effects.freed {
                journal.free(freed.lsn, freed.bytes);
            }
            // Here, so that a caller that asks whether the log is stalled before the next command
            // gets the same numbers as that command.
            journal.need_for_snapshot(self.engine.snapshot_bytes_max());
        }
        let may_be_paged_out =
            self.had_paged_out || self.engine.bodies().paged_out_total() != self.paged_out_total;
        if may_be_paged_out || !self.returning.is_empty() {
            self.hold_back(outputs);
        }
        // Bodies that replies lack stay for them.
        self.free_vacated();
        outputs.append(&mut self.effects.outputs);
        self.effects.clear();
    }

    /// The readiness of the first commit that waits for room; as if one had to wait if
    /// none does.
    fn readiness(&self) -> ChainReadiness {
        let Some(wanted) = self.engine.awaited_room() else { return ChainReadiness::Awaited };
        let readiness = self.journal.as_ref().map(|journal| journal.readiness(&wanted));
        match readiness {
            // A refusal would journal the deliveries it had settled as failed.
            Some(ChainReadiness::NoRoom) if self.stalled() => ChainReadiness::Awaited,
            readiness => readiness.unwrap_or(ChainReadiness::Ready),
        }
    }

    /// Commits go on for which there is room now, or will be none.
    fn commit_awaiting(&mut self, now: Nanos, outputs: &mut Vec<Output>) {
        while let Some(wanted) = self.engine.awaited_room() {
            let readiness = self.readiness();
            if let Some(journal) = &mut self.journal {
                journal.want_room(Some(wanted));
            }
            let capacity = self.begin_call();
            if readiness == ChainReadiness::Awaited {
                return self.engine.handle_capacity(capacity);
            }
            let has_room = readiness == ChainReadiness::Ready;
            self.engine.commit_awaiting(now, has_room, capacity, &mut self.effects);
            self.commit_effects(now, outputs);
            if let Some(journal) = self.journal.as_mut().filter(|_| has_room) {
                journal.end_chain();
            }
        }
        if let Some(journal) = &mut self.journal {
            journal.want_room(None);
        }
    }

    fn restate(&mut self, now: Nanos, old: &OldFrames) -> Result<(), JournalFailed> {
        for (lsn, payload) in &old.frames {
            match self.restate_frame(*lsn, payload) {
                Ok(true) => self.commit_effects(now, &mut Vec::new()),
                Ok(false) => break,
                Err(error) => {
                    return Err(self.journal_mut().fail_rotten(*lsn, &error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// False if there is no room for it now.
    fn restate_frame(&mut self, lsn: Lsn, payload: &[u8]) -> Result<bool, RecordError> {
        let live = self.engine.restated(lsn, payload)?;
        if live != LiveRecords::NONE {
            if !self.journal_mut().takes_restated(live) {
                return Ok(false);
            }
            self.engine.restate(lsn, payload, &mut self.effects)?;
        }
        Ok(true)
    }

    fn poll_snapshot_chunk(&mut self) -> Option<journal::LogChore<F>> {
        let journal = self.journal.as_mut()?;
        if !journal.takes_snapshot_chunk() {
            return None;
        }
        let cursor = self.snapshot.as_mut().expect("invariant: a snapshot began");
        self.chunk.clear();
        let more = self.engine.snapshot_chunk(cursor, &mut self.chunk);
        Some(journal.snapshot_chunk(&self.chunk, !more))
    }
}

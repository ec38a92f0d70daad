//! The state machine: what it is made of, and its dispatch.

use alloc::vec::Vec;

use model::{After, BrokerStatistics, Command, Lsn, Nanos, Refusal, Reply, SessionId};

use crate::{Effects, EngineOptions, RecordError, SnapshotCursor};

/// Queues, leases and timers.
#[derive(Debug)]
pub struct Engine {
    options: EngineOptions,
    last: Lsn,
    latest: Nanos,
    room: u64,
}

impl Engine {
    /// An empty engine.
    #[must_use]
    pub fn new(options: EngineOptions) -> Self {
        Self { options, last: Lsn::ZERO, latest: Nanos::ZERO, room: u64::MAX }
    }
    /// Begins a session.
    pub fn open_session(&mut self, session: SessionId) {
        let _ = session;
    }
    /// Ends a session: leases go back to ready at once, waits end without reply.
    pub fn close_session(&mut self, now: Nanos, session: SessionId, effects: &mut Effects) {
        let _ = (now, session, effects);
    }
    /// Does what a session asks.
    pub fn handle(
        &mut self,
        now: Nanos,
        session: SessionId,
        command: Command,
        effects: &mut Effects,
    ) {
        self.latest = self.latest.max(now);
        drop(command);
        effects.reply(session, After::NOTHING, Reply::Refused(Refusal::NoSuchLink));
    }
    /// When `handle_timeout` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
    /// Fires due timers.
    pub fn handle_timeout(&mut self, now: Nanos, effects: &mut Effects) {
        let _ = (now, effects);
    }
    /// Bytes of log that puts may still use.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }
    /// The position the next frame will have.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        self.last.next()
    }
    /// The position of the last frame.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.last
    }
    /// All queues together.
    #[must_use]
    pub fn statistics(&self) -> BrokerStatistics {
        BrokerStatistics::default()
    }
    /// Panics naming a broken invariant.
    pub fn check(&self) {
        let _ = &self.options;
    }
    /// Takes in a chunk of a snapshot.
    ///
    /// # Errors
    /// When the chunk is damaged.
    pub fn load(&mut self, chunk: &[u8]) -> Result<(), RecordError> {
        let _ = chunk;
        Ok(())
    }
    /// Takes in a frame from after the snapshot's begin.
    ///
    /// # Errors
    /// When the frame is damaged or does not fit.
    pub fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), RecordError> {
        let _ = (lsn, payload, fuzzy);
        Ok(())
    }
    /// Takes bodies from a frame from before the snapshot.
    ///
    /// # Errors
    /// When the frame is damaged.
    pub fn restore_body(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        let _ = (lsn, payload);
        Ok(())
    }
    /// Ends recovery.
    ///
    /// # Errors
    /// When a body is missing.
    pub fn finish_recovery(&mut self, last: Lsn) -> Result<(), RecordError> {
        self.last = last;
        Ok(())
    }
    /// Location and record bytes of each journalled live message.
    pub fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        Vec::new().into_iter()
    }
    /// The latest moment the engine knows.
    #[must_use]
    pub fn latest_time(&self) -> Nanos {
        self.latest
    }
    /// Begins a snapshot.
    #[must_use]
    pub fn snapshot_begin(&self) -> SnapshotCursor {
        SnapshotCursor { next: 0, end: 0, begun: false }
    }
    /// Appends the next chunk; true when more is to come.
    pub fn snapshot_chunk(&self, cursor: &mut SnapshotCursor, out: &mut Vec<u8>) -> bool {
        out.clear();
        cursor.begun = true;
        cursor.next < cursor.end
    }
    /// Stores anew what lives of an old frame.
    ///
    /// # Errors
    /// When the frame is damaged.
    pub fn restate(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        effects: &mut Effects,
    ) -> Result<(), RecordError> {
        let _ = (lsn, payload, effects);
        Ok(())
    }
}

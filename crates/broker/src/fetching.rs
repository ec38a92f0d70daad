//! Bodies come back from the log: for replies that name them, for whoever looks into them, and
//! ahead of whoever reads on.

use std::collections::BTreeSet;

use engine::{RecordError, stored_bodies};
use journal::{Fetch, FetchDone, Fetched, JournalFailed};
use model::{Lsn, Output, SessionId};

use crate::Broker;

/// What is being fetched, and how much at once.
#[derive(Debug, Default)]
pub(crate) struct Fetching {
    in_flight: Option<Lsn>,
    /// Where the last fetch ended.
    end: Lsn,
    bytes: usize,
    /// The last fetch was for the engine; replies are next.
    served_engine: bool,
}

impl Fetching {
    /// Whoever goes on where the last fetch ended gets twice as much.
    fn bytes_for(&mut self, lsn: Lsn) -> usize {
        let goes_on = lsn > self.end && lsn.0 - self.end.0 <= GAP_FRAMES_MAX;
        let bytes = if goes_on { self.bytes * 2 } else { FETCH_BYTES_MIN };
        self.bytes = bytes.clamp(FETCH_BYTES_MIN, FETCH_BYTES_MAX);
        self.bytes
    }
}

impl<F: Clone> Broker<F> {
    /// Later replies of this session need not wait for earlier ones whose bodies are away: it tells
    /// them apart by itself.
    pub fn let_overtake(&mut self, session: SessionId) {
        self.returning.let_overtake(session);
    }

    /// All replies keep the order in which the engine gave them, over all sessions: for one who
    /// watches them.
    pub fn keep_order(&mut self) {
        self.returning.keep_order();
    }

    /// Whether what was fetched lets somebody go on, with [`Broker::handle_timeout`] at once.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stalled() && self.engine.goes_on()
    }

    /// The next piece of the log that is to be read back; one is outstanding at most.
    pub fn poll_fetch(&mut self) -> Option<Fetch<F>> {
        if self.fetching.in_flight.is_some() {
            return None;
        }
        let lsn = self.next_frame()?;
        self.fetching.served_engine = self.engine.wanted_frame() == Some(lsn);
        let bytes = self.fetching.bytes_for(lsn);
        self.fetching.in_flight = Some(lsn);
        Some(self.journal_mut().fetch(lsn, bytes))
    }

    /// Whether [`Broker::poll_fetch`] would give something.
    #[must_use]
    pub fn wants_fetch(&mut self) -> bool {
        self.fetching.in_flight.is_none() && self.next_frame().is_some()
    }

    /// Takes a performed one back.
    ///
    /// # Errors
    /// When the disk failed, or what was read is not what was written: nothing more is confirmed,
    /// and the process is to end.
    pub fn handle_fetch(
        &mut self,
        done: FetchDone<F>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), JournalFailed> {
        self.fetching.in_flight = None;
        let fetched = self.journal_mut().handle_fetch(done)?;
        self.take_in(&fetched, outputs)
            .map_err(|(lsn, error)| self.journal_mut().fail_rotten(lsn, &error.to_string()))
    }

    /// Replies that lack bodies stay here.
    pub(crate) fn hold_back(&mut self, outputs: &mut Vec<Output>) {
        for output in self.effects.outputs.drain(..) {
            let journal = &mut self.journal;
            let pin = |lsn| {
                let journal = journal.as_mut().expect("invariant: only what a log has is away");
                journal.pin(lsn);
            };
            outputs.extend(self.returning.hold(output, pin));
        }
    }

    /// Nobody hears what a session was to be told.
    pub(crate) fn forget_replies(&mut self, session: SessionId) {
        let journal = &mut self.journal;
        self.returning.forget(session, |lsn| {
            journal.as_mut().expect("invariant: only what a log has is away").unpin(lsn);
        });
    }

    /// Replies and those who look into bodies take turns.
    fn next_frame(&mut self) -> Option<Lsn> {
        let for_engine = self.engine.wanted_frame();
        let for_replies = self.returning.next_frame();
        if self.fetching.served_engine {
            for_replies.or(for_engine)
        } else {
            for_engine.or(for_replies)
        }
    }

    fn take_in(
        &mut self,
        fetched: &Fetched,
        outputs: &mut Vec<Output>,
    ) -> Result<(), (Lsn, RecordError)> {
        let mut room = self.engine.restored_bytes_max();
        let mut frames = Vec::new();
        for (lsn, payload) in fetched.frames() {
            self.fill(lsn, payload, outputs).map_err(|error| (lsn, error))?;
            let is_ahead = payload.len() as u64 <= room;
            if is_ahead || self.engine.wants_frame(lsn) {
                frames.push((lsn, payload));
            }
            room = room.saturating_sub(payload.len() as u64);
            self.fetching.end = lsn;
        }
        for (lsn, payload) in frames.into_iter().rev() {
            self.engine.restore(lsn, payload).map_err(|error| (lsn, error))?;
        }
        Ok(())
    }

    /// Replies get the bodies that this frame has for them.
    fn fill(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        outputs: &mut Vec<Output>,
    ) -> Result<(), RecordError> {
        let needed: BTreeSet<_> = self.returning.needed_of(lsn).collect();
        for (message, body) in stored_bodies(payload, needed)? {
            self.returning.fill((lsn, message), &body, &self.formats, outputs);
            self.journal_mut().unpin(lsn);
        }
        Ok(())
    }
}

/// Read at once for one who asks for a message here and there.
const FETCH_BYTES_MIN: usize = 64 * 1024;

/// Read at once for one who reads on and on.
const FETCH_BYTES_MAX: usize = 1024 * 1024;

/// Frames that may lie between what was fetched and what is asked for next by one who reads on.
const GAP_FRAMES_MAX: u64 = 64;

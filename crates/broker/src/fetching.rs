//! Bodies come back from the log and the spill: for replies that name them, for commands that
//! inspect them, and ahead of consumers that read on.

use std::collections::BTreeSet;

use engine::{RecordError, stored_bodies};
use journal::{Fetched, JournalFailed};
use model::{BodyPlace, Lsn, Output, SessionId};

use crate::Broker;
use crate::work::{Fetch, FetchDone};

/// The fetch under way, and the bytes to fetch at once.
#[derive(Debug, Default)]
pub(crate) struct Fetching {
    out: Option<Source>,
    /// The last fetch was of the spill; the log is next.
    served_spill: bool,
    /// The end of the last fetch.
    end: Lsn,
    bytes: usize,
    /// The last fetch was for the engine; replies are next.
    served_engine: bool,
}

/// The source of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Log,
    Spill,
}

impl Fetching {
    pub(crate) fn is_reading_spill(&self) -> bool {
        self.out == Some(Source::Spill)
    }

    /// A read that goes on where the last fetch ended gets twice as much.
    fn bytes_for(&mut self, lsn: Lsn) -> usize {
        let goes_on = lsn > self.end && lsn.0 - self.end.0 <= GAP_FRAMES_MAX;
        let bytes = if goes_on { self.bytes * 2 } else { FETCH_BYTES_MIN };
        self.bytes = bytes.clamp(FETCH_BYTES_MIN, FETCH_BYTES_MAX);
        self.bytes
    }
}

impl<F: Clone> Broker<F> {
    /// Later replies of this session need not wait for earlier ones with bodies that are away: it
    /// tells them apart by itself.
    pub fn let_overtake(&mut self, session: SessionId) {
        self.engine.share_session(session);
        self.returning.let_overtake(session);
    }

    /// All replies keep the order in which the engine gave them, over all sessions: for a caller
    /// that watches them.
    pub fn keep_order(&mut self) {
        self.returning.keep_order();
    }

    /// Returns true if a fetched body lets an operation go on, with [`Broker::handle_timeout`] at
    /// once.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stalled() && self.engine.bodies().is_disturbed()
    }

    /// The next fetch; one is outstanding at most. The log and the spill take turns.
    pub fn poll_fetch(&mut self) -> Option<Fetch<F>> {
        if self.fetching.out.is_some() {
            return None;
        }
        let fetch = if self.fetching.served_spill {
            self.poll_log_fetch().or_else(|| self.poll_spill())
        } else {
            self.poll_spill().or_else(|| self.poll_log_fetch())
        };
        let is_of_spill = matches!(fetch, Some(Fetch::Spill(_)));
        self.fetching.served_spill = is_of_spill;
        let source = if is_of_spill { Source::Spill } else { Source::Log };
        self.fetching.out = fetch.is_some().then_some(source);
        fetch
    }

    /// True if [`Broker::poll_fetch`] would give something.
    #[must_use]
    pub fn wants_fetch(&mut self) -> bool {
        let wants = |it: &mut Self| it.next_frame().is_some() || it.next_spilled().is_some();
        self.fetching.out.is_none() && wants(self)
    }

    /// Takes a performed one back.
    ///
    /// # Errors
    /// If the disk failed, or the bytes read are not the bytes written: nothing more is confirmed,
    /// and the process is to end.
    pub fn handle_fetch(
        &mut self,
        done: FetchDone<F>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), JournalFailed> {
        self.fetching.out = None;
        match done {
            FetchDone::Log(done) => {
                let fetched = self.journal_mut().handle_fetch(done)?;
                self.take_in(&fetched, outputs)
                    .map_err(|(lsn, error)| self.journal_mut().fail_rotten(lsn, &error.to_string()))
            }
            FetchDone::Spill(done) => self.handle_spill_fetch(done, outputs),
        }
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

    /// Drops the replies that wait for a session.
    pub(crate) fn forget_replies(&mut self, session: SessionId) {
        let (journal, spilling) = (&mut self.journal, &mut self.spilling);
        self.returning.forget(session, |place| match place {
            BodyPlace::Frame(lsn) => {
                let journal = journal.as_mut().expect("invariant: a frame is of a log");
                journal.unpin(lsn);
            }
            BodyPlace::Spill(place) => {
                let spilling = spilling.as_mut().expect("invariant: a place is of a spill");
                spilling.unpin(place);
            }
        });
    }

    fn poll_log_fetch(&mut self) -> Option<Fetch<F>> {
        let lsn = self.next_frame()?;
        self.fetching.served_engine = self.engine.bodies().wanted_frame() == Some(lsn);
        let bytes = self.fetching.bytes_for(lsn);
        Some(Fetch::Log(self.journal_mut().fetch(lsn, bytes)))
    }

    fn poll_spill(&mut self) -> Option<Fetch<F>> {
        self.poll_spill_fetch().map(Fetch::Spill)
    }

    /// Replies and inspections of bodies take turns.
    fn next_frame(&mut self) -> Option<Lsn> {
        let for_engine = self.engine.bodies().wanted_frame();
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
            if is_ahead || self.engine.bodies().wants_frame(lsn) {
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
            self.returning.fill((BodyPlace::Frame(lsn), message), &body, outputs);
            self.journal_mut().unpin(lsn);
        }
        Ok(())
    }
}

/// Bytes read at once for a message here and there.
const FETCH_BYTES_MIN: usize = 64 * 1024;

/// Bytes read at once for a consumer that reads on and on.
const FETCH_BYTES_MAX: usize = 1024 * 1024;

/// Frames that may lie between the fetched ones and the next that a consumer asks for as it reads
/// on.
const GAP_FRAMES_MAX: u64 = 64;

//! Bodies that only memory has go to the spill, and what nobody needs there is given up. Where
//! its files are mostly dead, what lives of one is read and put elsewhere, a piece at a time.
//!
//! One write is out at most. What a reply lacks stays where it is until it has it, also when its
//! message is gone meanwhile.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use engine::Spilled;
use journal::{
    DiskErrorKind, JournalFailed, JournalOptions, Spill, SpillCounters, SpillFetch, SpillFetchDone,
    SpillPlace, SpillRemovalDone, SpillWriteDone,
};
use model::{BodyPlace, MessageId, Nanos, Output};

use crate::Broker;
use crate::work::Chore;

/// The spill, and what is out of it.
#[derive(Debug)]
pub(crate) struct Spilling<F> {
    spill: Spill<F>,
    /// What is being written.
    writing: Option<Writing>,
    /// From where bodies are being read.
    reading: Vec<NonZeroU64>,
    /// What is to lie elsewhere, and was or is being read for that.
    moving: Vec<Spilled>,
    /// Its bodies, once they were read.
    moving_bodies: Vec<Arc<[u8]>>,
    /// The last chore was for what is to lie elsewhere; what leaves memory is next.
    served_move: bool,
    /// It took nothing: when it is asked again.
    retry_at: Option<Nanos>,
    /// What only replies need, by where it lies.
    kept: BTreeMap<NonZeroU64, Spilled>,
}

/// A write that is out.
#[derive(Debug)]
enum Writing {
    /// Of bodies that leave memory: their names and sizes.
    Leaving(Vec<(MessageId, u32)>),
    /// Of what lies elsewhere by now.
    Moving(Vec<Spilled>),
}

impl Writing {
    fn count(&self) -> usize {
        match self {
            Self::Leaving(bodies) => bodies.len(),
            Self::Moving(bodies) => bodies.len(),
        }
    }
}

impl<F: Clone> Spilling<F> {
    /// `None` where nothing may lie in it.
    pub(crate) fn new(options: &JournalOptions) -> Option<Self> {
        let bytes_max = options.spill_bytes_max;
        let segment_bytes = (bytes_max / SEGMENTS_IN_LIMIT).min(SPILL_FILE_BYTES);
        (bytes_max > 0).then(|| Self {
            spill: Spill::new(segment_bytes, bytes_max),
            writing: None,
            reading: Vec::new(),
            moving: Vec::new(),
            moving_bodies: Vec::new(),
            served_move: false,
            retry_at: None,
            kept: BTreeMap::new(),
        })
    }

    pub(crate) const fn retry_at(&self) -> Option<Nanos> {
        self.retry_at
    }

    /// Begins to read these.
    fn fetch(&mut self, places: Vec<NonZeroU64>) -> Vec<SpillFetch<F>> {
        let fetches = places.iter().map(|place| self.spill.fetch(SpillPlace::from(*place)));
        let fetches = fetches.collect();
        self.reading = places;
        fetches
    }

    /// No reply needs what lies there.
    pub(crate) fn unpin(&mut self, place: NonZeroU64) {
        if let Some(spilled) = self.kept.remove(&place) {
            self.free(spilled);
        }
    }

    fn free(&mut self, spilled: Spilled) {
        self.spill.free(spilled.place.into(), spilled.bytes as usize);
    }

    /// What was read to lie elsewhere goes there. Where there is no room it stays.
    fn put_moving(&mut self, now: Nanos) -> Option<Chore<F>> {
        let bodies = std::mem::take(&mut self.moving_bodies);
        let moving = std::mem::take(&mut self.moving);
        let write = self.spill.put_again(now, &bodies)?;
        assert!(self.writing.is_none(), "one write is out at most");
        self.writing = Some(Writing::Moving(moving));
        self.served_move = true;
        Some(Chore::Spill(write))
    }
}

impl<F: Clone> Broker<F> {
    /// What was counted about bodies that are in no log and left memory; zeros where none can.
    #[must_use]
    pub fn spill_counters(&self) -> SpillCounters {
        let counters = self.spilling.as_ref().map(|spilling| spilling.spill.counters());
        counters.unwrap_or_default()
    }

    /// Whether so much waits to leave memory that what adds to it waits.
    pub(crate) fn waits_for_spill(&self) -> bool {
        self.spilling.is_some() && self.engine.waits_for_spill()
    }

    /// What is to be done to the disk for the spill.
    pub(crate) fn poll_spill_chore(&mut self, now: Nanos) -> Option<Chore<F>> {
        let spilling = self.spilling.as_mut()?;
        if let Some(removal) = spilling.spill.poll_removal() {
            return Some(Chore::Removal(removal));
        }
        if spilling.retry_at.is_some_and(|retry_at| retry_at <= now) {
            spilling.retry_at = None;
            self.engine.try_spill_again();
            self.tell_room();
        }
        if self.spilling.as_ref()?.served_move {
            self.poll_leaving(now).or_else(|| self.poll_move(now))
        } else {
            self.poll_move(now).or_else(|| self.poll_leaving(now))
        }
    }

    /// Bodies leave memory.
    fn poll_leaving(&mut self, now: Nanos) -> Option<Chore<F>> {
        if !self.engine.has_to_spill() {
            return None;
        }
        let (ids, bodies): (Vec<_>, Vec<_>) =
            self.engine.poll_spill(WRITE_BYTES).into_iter().unzip();
        let spilling = self.spilling.as_mut()?;
        let Some(write) = spilling.spill.put(now, &bodies) else {
            spilling.retry_at = Some(now + RETRY);
            self.engine.handle_unspilled(ids);
            return None;
        };
        assert!(spilling.writing.is_none(), "one write is out at most");
        let bytes = bodies.iter().map(|body| u32::try_from(body.len()).unwrap_or(u32::MAX));
        spilling.writing = Some(Writing::Leaving(ids.into_iter().zip(bytes).collect()));
        spilling.served_move = false;
        Some(Chore::Spill(write))
    }

    /// What lives in a file that is mostly dead is read, or goes elsewhere.
    fn poll_move(&mut self, now: Nanos) -> Option<Chore<F>> {
        let spilling = self.spilling.as_mut()?;
        if !spilling.moving_bodies.is_empty() {
            return spilling.put_moving(now);
        }
        let places = spilling.spill.sparse(now)?;
        let mut bytes = 0;
        let found = self.engine.spilled_within(places).take_while(|spilled| {
            let is_more = bytes >= WRITE_BYTES;
            bytes += u64::from(spilled.bytes);
            !is_more
        });
        let moving: Vec<_> = found.take(MOVED_MAX).collect();
        let places = moving.iter().map(|spilled| SpillPlace::from(spilled.place));
        let fetches: Vec<_> = places.map(|place| spilling.spill.fetch(place)).collect();
        // Replies may need what no message does: that goes soon.
        if moving.is_empty() {
            return None;
        }
        (spilling.moving, spilling.served_move) = (moving, true);
        Some(Chore::SpillMove(fetches))
    }

    /// # Errors
    /// When the disk failed, or what was read is not what was written: it is lost.
    pub(crate) fn handle_spill_move(
        &mut self,
        done: Vec<SpillFetchDone>,
    ) -> Result<(), JournalFailed> {
        let spilling = self.spilling_mut();
        assert_eq!(spilling.moving.len(), done.len(), "what comes back was out");
        let bodies = done.into_iter().map(|done| spilling.spill.handle_fetch(done));
        match bodies.collect::<Result<Vec<_>, _>>() {
            Ok(bodies) => spilling.moving_bodies = bodies,
            Err(error) => return Err(self.journal_mut().fail_beside(error)),
        }
        Ok(())
    }

    /// # Errors
    /// When the disk failed, unless it is full: then bodies stay in memory.
    pub(crate) fn handle_spill_write(
        &mut self,
        now: Nanos,
        done: SpillWriteDone<F>,
    ) -> Result<(), JournalFailed> {
        let spilling = self.spilling_mut();
        let writing = spilling.writing.take().expect("invariant: what comes back was out");
        match (spilling.spill.handle_write(now, done), writing) {
            (Ok(places), Writing::Leaving(bodies)) => {
                let places = places.into_iter().map(NonZeroU64::from);
                let lies = |((name, bytes), place)| (name, Spilled { place, bytes });
                self.engine.handle_spilled(bodies.into_iter().zip(places).map(lies));
            }
            (Ok(places), Writing::Moving(bodies)) => {
                let places = places.into_iter().map(NonZeroU64::from);
                let lies = |(from, place): (Spilled, _)| (from.place, Spilled { place, ..from });
                self.engine.handle_moved(bodies.into_iter().zip(places).map(lies));
            }
            (Err(error), writing) if error.kind == DiskErrorKind::Full => {
                spilling.retry_at = Some(now + RETRY);
                if let Writing::Leaving(bodies) = writing {
                    self.engine.handle_unspilled(bodies.into_iter().map(|(name, _)| name));
                }
            }
            (Err(error), _) => return Err(self.journal_mut().fail_beside(error)),
        }
        self.free_vacated();
        self.tell_room();
        Ok(())
    }

    /// # Errors
    /// When the disk failed.
    pub(crate) fn handle_spill_removal(
        &mut self,
        done: SpillRemovalDone,
    ) -> Result<(), JournalFailed> {
        let removed = self.spilling_mut().spill.handle_removal(done);
        removed.map_err(|error| self.journal_mut().fail_beside(error))
    }

    /// Begins to read back what is needed, and what is soon asked for behind it.
    pub(crate) fn poll_spill_fetch(&mut self) -> Option<Vec<SpillFetch<F>>> {
        let first = self.next_spilled()?;
        let mut room = self.engine.restored_bytes_max().min(FETCH_BYTES);
        let ahead = self.engine.spilled_from(first).filter(|spilled| spilled.place != first);
        let ahead = ahead.map_while(|spilled| {
            room = room.checked_sub(u64::from(spilled.bytes))?;
            Some(spilled.place)
        });
        let places = std::iter::once(first).chain(ahead).collect();
        Some(self.spilling_mut().fetch(places))
    }

    /// Where the next body is that somebody needs, those first that replies lack: they are
    /// bounded.
    pub(crate) fn next_spilled(&mut self) -> Option<NonZeroU64> {
        self.returning.next_spilled().or_else(|| self.engine.wanted_spilled())
    }

    /// # Errors
    /// When the disk failed, or what was read is not what was written: it is lost.
    pub(crate) fn handle_spill_fetch(
        &mut self,
        done: Vec<SpillFetchDone>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), JournalFailed> {
        let spilling = self.spilling_mut();
        let places = std::mem::take(&mut spilling.reading);
        assert_eq!(places.len(), done.len(), "what comes back was out");
        let bodies = done.into_iter().map(|done| spilling.spill.handle_fetch(done));
        let bodies: Vec<_> = bodies.collect();
        let mut found = Vec::with_capacity(bodies.len());
        for (place, body) in places.into_iter().zip(bodies) {
            let body = body.map_err(|error| self.journal_mut().fail_beside(error))?;
            found.push((place, body));
        }
        for (place, body) in &found {
            self.returning.fill_spilled(*place, body, outputs);
            self.spilling_mut().unpin(*place);
        }
        for (place, body) in found.into_iter().rev() {
            self.engine.restore_spilled(place, body);
        }
        self.free_vacated();
        Ok(())
    }

    /// What nobody needs any more lies there no longer than replies need it.
    pub(crate) fn free_vacated(&mut self) {
        let Some(spilling) = &mut self.spilling else { return };
        for spilled in self.engine.take_vacated() {
            if self.returning.lacks(BodyPlace::Spill(spilled.place)) {
                spilling.kept.insert(spilled.place, spilled);
            } else {
                spilling.free(spilled);
            }
        }
    }

    pub(crate) fn check_spill(&self) {
        if let Some(Spilling { spill, writing, reading, kept, .. }) = &self.spilling {
            spill.check();
            let writing = writing.as_ref().map_or(0, Writing::count);
            let live = self.engine.spilled() + kept.len() as u64 + writing as u64;
            assert_eq!(spill.counters().live, live, "what lies in the spill is needed");
            for place in kept.keys() {
                let is_needed = self.returning.lacks(BodyPlace::Spill(*place));
                assert!(is_needed, "what is kept for replies is needed");
            }
            let is_reading = self.fetching.is_reading_spill();
            assert!(reading.is_empty() || is_reading, "what is being read is out");
        }
    }

    fn spilling_mut(&mut self) -> &mut Spilling<F> {
        self.spilling.as_mut().expect("invariant: what comes back went out to the spill")
    }
}

/// Bytes with which a file of the spill is closed at most: it keeps as much where one body stays.
pub const SPILL_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// What the spill may take is so many files at least, unless they are smaller than a body.
const SEGMENTS_IN_LIMIT: u64 = 16;

/// Written at once: the disk takes it in some milliseconds.
const WRITE_BYTES: u64 = 4 * 1024 * 1024;

/// Bodies that are put elsewhere at once, however small they are: each is read by itself.
const MOVED_MAX: usize = 1024;

/// Read at once, ahead of who reads on.
const FETCH_BYTES: u64 = 256 * 1024;

/// Nothing is asked of a full device or a full spill for so long.
const RETRY: Nanos = Nanos::from_millis(250);

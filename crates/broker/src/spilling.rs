//! Bodies that only memory has go to the spill, and bodies that are no longer needed there are
//! given up. If its files are mostly dead, the live bodies of one are read and put elsewhere, a
//! piece at a time.
//!
//! One write is out at most. A body that a reply lacks stays in its place until the reply has it,
//! even if its message is gone meanwhile.

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

/// The spill, and the work on it that is out.
#[derive(Debug)]
pub(crate) struct Spilling<F> {
    spill: Spill<F>,
    /// The write that is out.
    writing: Option<Writing>,
    /// The places from which bodies are being read.
    reading: Vec<NonZeroU64>,
    /// The bodies to be moved elsewhere, read or being read for that.
    moving: Vec<Spilled>,
    /// Its bodies, once they were read.
    moving_bodies: Vec<Arc<[u8]>>,
    /// The last chore served a move; bodies that leave memory are next.
    served_move: bool,
    /// It took nothing: when it is asked again.
    retry_at: Option<Nanos>,
    /// Bodies that only replies need, by place.
    kept: BTreeMap<NonZeroU64, Spilled>,
}

/// A write that is out.
#[derive(Debug)]
enum Writing {
    /// A write of bodies that leave memory: their messages and sizes.
    Leaving(Vec<(MessageId, u32)>),
    /// A write of bodies that move elsewhere in the spill, with their old places.
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
    /// `None` if nothing may lie in it.
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

    /// No reply needs the body at that place any more.
    pub(crate) fn unpin(&mut self, place: NonZeroU64) {
        if let Some(spilled) = self.kept.remove(&place) {
            self.free(spilled);
        }
    }

    fn free(&mut self, spilled: Spilled) {
        self.spill.free(spilled.place.into(), spilled.bytes as usize);
    }

    /// Puts the bodies that were read for a move elsewhere. Without room they stay.
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
    /// Counts of bodies that are in no log and left memory; zeros if no body can.
    #[must_use]
    pub fn spill_counters(&self) -> SpillCounters {
        let counters = self.spilling.as_ref().map(|spilling| spilling.spill.counters());
        counters.unwrap_or_default()
    }

    /// Returns true if so many bodies wait to leave memory that commands which add to it wait.
    pub(crate) fn waits_for_spill(&self) -> bool {
        self.spilling.is_some() && self.engine.waits_for_spill()
    }

    /// The next chore on the disk for the spill.
    pub(crate) fn poll_spill_chore(&mut self, now: Nanos) -> Option<Chore<F>> {
        let spilling = self.spilling.as_mut()?;
        if let Some(removal) = spilling.spill.poll_removal() {
            return Some(Chore::Removal(removal));
        }
        if spilling.retry_at.is_some_and(|retry_at| retry_at <= now) {
            spilling.retry_at = None;
            self.engine.try_spill_again();
            self.engine.handle_capacity(self.capacity());
        }
        if self.spilling.as_ref()?.served_move {
            self.poll_leaving(now).or_else(|| self.poll_move(now))
        } else {
            self.poll_move(now).or_else(|| self.poll_leaving(now))
        }
    }

    /// Bodies leave memory.
    fn poll_leaving(&mut self, now: Nanos) -> Option<Chore<F>> {
        if !self.engine.bodies().has_to_spill() {
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

    /// Reads the live bodies of a file that is mostly dead, or puts them elsewhere.
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
        // Replies may need bodies that no message needs: those go soon.
        if moving.is_empty() {
            return None;
        }
        (spilling.moving, spilling.served_move) = (moving, true);
        Some(Chore::SpillMove(fetches))
    }

    /// # Errors
    /// If the disk failed, or the bytes read are not the bytes written: the body is lost.
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
        self.engine.handle_capacity(self.capacity());
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

    /// Begins to read back the needed body, and those behind it that are soon asked for.
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

    /// The place of the next needed body. Bodies that replies lack come first: they are bounded.
    pub(crate) fn next_spilled(&mut self) -> Option<NonZeroU64> {
        self.returning.next_spilled().or_else(|| self.engine.bodies().wanted_spilled())
    }

    /// # Errors
    /// If the disk failed, or the bytes read are not the bytes written: the body is lost.
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

    /// Frees the bodies that messages no longer need, once no reply needs them.
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
            let live = self.engine.bodies().spilled() + kept.len() as u64 + writing as u64;
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

/// Bytes with which a file of the spill is closed at most: it keeps as much if one body stays.
pub const SPILL_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The spill's limit is so many files at least, unless they are smaller than a body.
const SEGMENTS_IN_LIMIT: u64 = 16;

/// Written at once: the disk takes it in some milliseconds.
const WRITE_BYTES: u64 = 4 * 1024 * 1024;

/// Bodies that are put elsewhere at once, however small they are: each is read by itself.
const MOVED_MAX: usize = 1024;

/// Bytes read at once, ahead of a consumer that reads on.
const FETCH_BYTES: u64 = 256 * 1024;

/// Nothing is asked of a full device or a full spill for so long.
const RETRY: Nanos = Nanos::from_millis(250);

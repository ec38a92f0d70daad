//! Group commit: frames become batches, batches become writes, completed writes move the durable
//! position. Housekeeping is in `housekeeping.rs`, on the same type.

use std::collections::VecDeque;

use model::{Durability, LiveRecords, Lsn, Nanos, StorePolicy};

use crate::batch::Batch;
use crate::buffer::Buffers;
use crate::format::{MARK_BYTES, Opening, SegmentNumber};
use crate::housekeeping::Housekeeping;
use crate::reach::{Note, Reach};
use crate::room::padded_batch_bytes;
use crate::segments::{Segment, Segments};
use crate::unsynced::Unsynced;
use crate::{
    BLOCK_BYTES, Disk, DiskError, DiskErrorKind, Durable, FRAME_HEADER_BYTES, JournalCounters,
    JournalFailed, JournalOptions, WriteMode,
};

/// The log of one store.
///
/// Call order: [`Journal::append`] while not [`Journal::stalled`]; then [`Journal::poll_write`]
/// and [`Journal::handle_write`] in any order and number, and so with chores. After an error from
/// a `handle_…` it hands out nothing more and [`Journal::durable`] stands still for good.
#[derive(Debug)]
pub struct Journal<F> {
    pub(crate) options: JournalOptions,
    pub(crate) opening: Opening,
    /// The next frame to be appended.
    pub(crate) next: Lsn,
    /// The first that is appended in this opening.
    pub(crate) first_appended: Lsn,
    /// Takes frames.
    open: Option<Batch<F>>,
    /// Full, wait to be written.
    full: VecDeque<Batch<F>>,
    /// Being written, in the order of the log.
    flights: VecDeque<Flight<F>>,
    /// A flush without a write is under way and will cover the log up to here.
    syncing: Option<Lsn>,
    durable: Durable,
    unsynced: Unsynced<F>,
    /// A snapshot or the end of the process waits for the log to be synced through here.
    sync_through: Lsn,
    /// The last frame of the last chain.
    chained: Lsn,
    buffers: Buffers,
    pub(crate) segments: Segments<F>,
    pub(crate) house: Housekeeping<F>,
    pub(crate) reach: Reach<F>,
    failed: Option<JournalFailed>,
    pub(crate) counters: JournalCounters,
}

/// A batch that is being written.
#[derive(Debug)]
struct Flight<F> {
    segment: SegmentNumber,
    /// The offset in it.
    offset: u64,
    file: F,
    payload_bytes: u64,
    last: Lsn,
    commit: Commit,
    done: bool,
}

/// The event that completes with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    /// It is written.
    Written,
    /// It is synced, and so was everything before it.
    Synced,
    /// It is synced, and with it everything before it that was only written.
    Barrier,
}

/// Something to be done to the disk for the log: a batch to write, files to flush, or both.
#[derive(Debug)]
pub struct Write<F> {
    /// Comes before the batch.
    note: Option<Box<Note<F>>>,
    batch: Option<Batch<F>>,
    mode: WriteMode,
    then_sync: Vec<F>,
}

/// The frames that wait to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Bytes of all batches that are not being written yet.
    pub bytes: usize,
    /// Frames in them.
    pub frames: u32,
    /// True if the next batch has to reach the device.
    pub syncs: bool,
    /// When the oldest of these frames was appended.
    pub since: Option<Nanos>,
    /// The next batch cannot be written before the chore that is under way is done.
    pub waits_for_chore: bool,
}

impl<F: Clone> Write<F> {
    /// Does it; blocks as long as the disk does.
    ///
    /// # Errors
    /// The first of the disk's; it is to be handed to [`Journal::handle_write`].
    pub fn perform<D: Disk<File = F>>(&self, disk: &D) -> Result<(), DiskError> {
        self.note.as_ref().map_or(Ok(()), |note| note.perform(disk))?;
        if let Some(batch) = &self.batch {
            disk.write(&batch.file, batch.offset, batch.bytes(), self.mode)?;
        }
        self.then_sync.iter().try_for_each(|file| disk.sync(file))
    }

    /// True if it waits for the device, not just for the operating system.
    #[must_use]
    pub fn syncs(&self) -> bool {
        self.mode == WriteMode::Synced || !self.then_sync.is_empty() || self.note.is_some()
    }

    /// How many frames it writes.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.batch.as_ref().map_or(0, |batch| batch.frames)
    }

    /// When the oldest frame in it was appended.
    #[must_use]
    pub fn queued_since(&self) -> Option<Nanos> {
        self.batch.as_ref().map(|batch| batch.opened_at)
    }
}

impl<F: Clone> Journal<F> {
    /// A journal that continues `segments` with frame `next`; everything before is synced.
    pub(crate) fn new(
        options: JournalOptions,
        opening: Opening,
        next: Lsn,
        segments: Segments<F>,
        (house, reach): (Housekeeping<F>, Reach<F>),
    ) -> Self {
        assert!(next > Lsn::ZERO, "positions begin with 1");
        assert!(segments.active().life.takes_batches(), "the log goes on in this version");
        let last = Lsn(next.0 - 1);
        let buffers = Buffers::new(options.batch_bytes, options.writes_in_flight_max + 1);
        Self {
            options,
            opening,
            next,
            first_appended: next,
            open: None,
            full: VecDeque::new(),
            flights: VecDeque::new(),
            syncing: None,
            durable: Durable { written: last, synced: last },
            unsynced: Unsynced::new(),
            sync_through: Lsn::ZERO,
            chained: Lsn::ZERO,
            buffers,
            segments,
            house,
            reach,
            failed: None,
            counters: JournalCounters::default(),
        }
    }

    /// Appends one atomic frame, of which `live` will matter until it is freed.
    ///
    /// # Panics
    /// When `lsn` is not the next position, when the payload is larger than the options allow, or
    /// when there is no room: the caller checks [`Journal::stalled`] and [`Journal::room`] before.
    pub fn append(
        &mut self,
        now: Nanos,
        lsn: Lsn,
        payload: &[u8],
        level: Durability,
        live: LiveRecords,
    ) {
        assert_eq!(lsn, self.next, "frames are appended in order");
        assert!(level > Durability::None, "what is not durable makes no frame");
        if !self.open_batch_takes(payload.len()) {
            self.close_batch();
            self.open_batch(now, payload.len());
        }
        let batch = self.open.as_mut().expect("invariant: a batch was just opened");
        self.segments.append(lsn, batch.end(), live);
        batch.push(self.opening.epoch, payload, level);
        debug_assert_eq!(batch.last(), lsn, "a frame follows the one before it");
        self.next = lsn.next();
        self.counters.frames += 1;
        self.counters.payload_bytes += payload.len() as u64;
    }

    /// A record in frame `lsn` that matters would take so many bytes more if it was restated.
    pub fn grow(&mut self, lsn: Lsn, bytes: u64) {
        debug_assert!(lsn < self.next, "only what was appended grows");
        self.segments.grow(lsn, bytes);
    }

    /// A record in frame `lsn` ceased to matter: with as many bytes as were counted for it.
    pub fn free(&mut self, lsn: Lsn, bytes: u64) {
        debug_assert!(lsn < self.next, "only what was appended is freed");
        self.segments.free(lsn, bytes, Lsn(self.next.0 - 1));
    }

    /// The next thing to be done for the log, `None` while enough is under way or nothing waits.
    pub fn poll_write(&mut self, now: Nanos) -> Option<Write<F>> {
        let barrier = self.flights.iter().any(|flight| flight.commit == Commit::Barrier);
        if self.failed.is_some() || barrier {
            return None;
        }
        if self.sync_is_due(now) && self.syncing.is_none() {
            return Some(self.start_sync());
        }
        let commit = self.next_commit()?;
        Some(self.start_batch(now, commit))
    }

    /// Takes a performed write back.
    ///
    /// # Errors
    /// When the disk failed: from then on nothing more is confirmed.
    pub fn handle_write(
        &mut self,
        now: Nanos,
        write: Write<F>,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        self.refuse_when_failed()?;
        if let Err(cause) = result {
            return Err(self.fail(cause));
        }
        if let Some(note) = &write.note {
            self.finish_note(note);
        }
        match write.batch {
            Some(batch) => self.finish_batch(now, batch),
            None => self.finish_sync(),
        }
        Ok(())
    }

    /// Bytes that wait to be written, and whether the next of them have to be synced.
    #[must_use]
    pub fn unwritten(&self) -> Unwritten {
        let next = self.full.front().or(self.open.as_ref());
        Unwritten {
            bytes: self.waiting().map(Batch::len).sum(),
            frames: self.waiting().map(|batch| batch.frames).sum(),
            syncs: next.is_some_and(|batch| batch.level == Durability::Synced),
            since: next.map(|batch| batch.opened_at),
            waits_for_chore: next.is_some_and(|batch| self.waits_for_note(batch)),
        }
    }

    /// How far the log is durable.
    #[must_use]
    pub fn durable(&self) -> Durable {
        self.durable
    }

    /// When [`Journal::poll_write`] or [`Journal::poll_chore`] will have something that they have
    /// not now, unless something else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let sync = match self.options.policy {
            StorePolicy::Periodic(period) if self.syncing.is_none() => {
                self.unsynced.since().map(|since| since + period)
            }
            _ => None,
        };
        sync.into_iter().chain(self.house.retry_at()).min()
    }

    /// The counts so far, and the present figures.
    #[must_use]
    pub fn counters(&self) -> JournalCounters {
        JournalCounters {
            segments: self.segments.len() as u64,
            segments_too_large: self.segments.too_large() as u64,
            live_bytes: self.segments.live_bytes(),
            disk_bytes: self.disk_bytes(),
            unsynced_bytes: self.unsynced.bytes(),
            ..self.counters
        }
    }

    /// True if everything appended is synced and nothing is under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.open.is_none()
            && self.full.is_empty()
            && self.flights.is_empty()
            && self.syncing.is_none()
            && self.durable.synced.next() == self.next
    }

    /// Every invariant of the journal.
    ///
    /// # Panics
    /// When one is broken.
    pub fn check(&self) {
        self.segments.check();
        self.house.check(self.durable.synced, self.last());
        self.check_positions();
        self.check_reach();
        self.check_room();
        assert!(self.flights.len() <= self.options.writes_in_flight_max, "flights are bounded");
        let barriers = self.flights.iter().filter(|flight| flight.commit == Commit::Barrier);
        assert!(barriers.count() == 0 || self.flights.len() == 1, "a barrier is alone in flight");
        if !self.unsynced.is_empty() {
            assert!(self.durable.synced < self.durable.written, "what is unsynced is not durable");
        }
        assert_eq!(self.unsynced.is_empty(), self.unsynced.since().is_none(), "one begins it");
    }

    /// Each frame is synced, written, being written, or in one batch that waits; in that order.
    fn check_positions(&self) {
        assert!(self.durable.synced <= self.durable.written, "what is synced is written");
        assert!(self.durable.written < self.next, "what is written was appended");
        let syncing = self.syncing.unwrap_or(self.durable.written);
        assert!((self.durable.synced..=self.durable.written).contains(&syncing));
        let lasts = self.flights.iter().map(|flight| flight.last);
        assert!(lasts.is_sorted(), "batches are written in the order of the log");
        let mut last = self.handed_out();
        for batch in self.waiting() {
            assert_eq!(batch.first, last.next(), "a batch begins where the last ended");
            last = batch.last();
        }
        assert_eq!(last.next(), self.next, "each frame appended is in a batch");
        assert!(self.chained < self.next, "a chain was appended");
    }

    /// The last frame appended.
    #[must_use]
    pub fn last(&self) -> Lsn {
        Lsn(self.next.0 - 1)
    }

    /// The last frame that was written, or is being written.
    fn handed_out(&self) -> Lsn {
        self.flights.back().map_or(self.durable.written, |flight| flight.last)
    }

    /// The offset in the active segment at which the batch after the open one would begin.
    pub(crate) fn planned_end(&self) -> u64 {
        let end = self.segments.active().end;
        self.open.as_ref().map_or(end, |batch| batch.offset + batch.padded_bytes())
    }

    /// The offset in a segment at which the unwritten bytes begin.
    pub(crate) fn written_end(&self, segment: &Segment<F>) -> u64 {
        let waiting = self.full.front().or(self.open.as_ref());
        let flight = self.flights.front().map(|flight| (flight.segment, flight.offset));
        let unwritten = flight.or(waiting.map(|batch| (batch.life.number, batch.offset)));
        let here = unwritten.filter(|(number, _)| *number == segment.life.number);
        here.map_or(segment.end, |(_, offset)| offset)
    }

    /// The offset in a segment at which the bytes begin that no write has taken yet.
    pub(crate) fn handed_out_end(&self, segment: &Segment<F>) -> u64 {
        let waiting = self.full.front().or(self.open.as_ref());
        let here = waiting.filter(|batch| batch.life.number == segment.life.number);
        here.map_or(segment.end, |batch| batch.offset)
    }

    /// A frame read back for compaction is not the one that the caller once appended.
    pub fn fail_rotten(&mut self, lsn: Lsn, cause: &str) -> JournalFailed {
        self.fail(DiskError {
            kind: DiskErrorKind::Failed,
            operation: "read back",
            file: format!("frame {lsn}"),
            cause: cause.into(),
        })
    }

    /// Something that lies beside the log failed, and ends it all the same.
    pub fn fail_beside(&mut self, cause: DiskError) -> JournalFailed {
        self.fail(cause)
    }

    pub(crate) fn fail(&mut self, cause: DiskError) -> JournalFailed {
        let failed = JournalFailed { cause };
        self.failed = Some(failed.clone());
        failed
    }

    /// True if the disk failed: nothing more is handed out.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Asks for the log to be synced through here. More may be asked for already: a stop asks for
    /// everything.
    pub(crate) fn ask_for_sync(&mut self, through: Lsn) {
        self.sync_through = self.sync_through.max(through);
    }

    /// The last frame of the last chain.
    pub(crate) const fn chained(&self) -> Lsn {
        self.chained
    }

    /// The frames appended last were a chain. The one before was written before it began.
    pub(crate) fn note_chain(&mut self) {
        assert!(self.chained <= self.durable.written, "one chain at a time waits to be written");
        self.chained = self.last();
    }

    pub(crate) fn refuse_when_failed(&self) -> Result<(), JournalFailed> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Batches that are not being written yet, in the order of the log.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Batch<F>> {
        self.full.iter().chain(&self.open)
    }

    fn open_batch_takes(&self, payload_bytes: usize) -> bool {
        let Some(batch) = &self.open else { return false };
        let bytes = batch.len() + FRAME_HEADER_BYTES + payload_bytes;
        let end = batch.offset + bytes.next_multiple_of(BLOCK_BYTES) as u64;
        bytes <= self.options.batch_bytes && end <= self.segments.active().initialised
    }

    fn open_batch(&mut self, now: Nanos, payload_bytes: usize) {
        assert!(self.open.is_none(), "one batch is open");
        let bytes = padded_batch_bytes(payload_bytes);
        if self.segments.active_rest(self.segments.active().end) < bytes {
            assert!(self.segments.next_spare_rest() >= bytes, "room is checked before appending");
            self.segments.roll(self.next);
            self.house.segment_begins();
        }
        let active = self.segments.active();
        let place = (active.file.clone(), active.life, active.end);
        let buffer = self.buffers.take(MARK_BYTES + FRAME_HEADER_BYTES + payload_bytes);
        self.open = Some(Batch::new(buffer, place, self.next, now));
    }

    /// The open batch takes no more frames; its place in the segment is settled.
    fn close_batch(&mut self) {
        let Some(batch) = self.open.take() else { return };
        assert!(batch.frames > 0, "a batch is opened for a frame");
        assert_eq!(batch.last().next(), self.next, "the open batch ends with the last frame");
        self.segments.fill(batch.life, batch.offset, batch.padded_bytes());
        self.house.log_grows(batch.padded_bytes());
        self.full.push_back(batch);
    }

    fn sync_is_due(&self, now: Nanos) -> bool {
        if self.unsynced.is_empty() {
            return false;
        }
        self.durable.synced < self.sync_through
            || match self.options.policy {
                StorePolicy::Periodic(period) => {
                    self.unsynced.since().is_some_and(|since| now >= since + period)
                }
                _ => false,
            }
    }

    fn start_sync(&mut self) -> Write<F> {
        assert!(self.syncing.is_none(), "one flush at a time");
        assert!(self.durable.synced < self.durable.written, "a flush covers something new");
        self.syncing = Some(self.durable.written);
        let files = self.unsynced.take().into_values().collect();
        Write { note: None, batch: None, mode: WriteMode::Written, then_sync: files }
    }

    /// How the next batch may be committed, `None` while there is none or it has to wait.
    ///
    /// A direct synced write flushes only its own bytes. So it may go only if everything before
    /// it is synced or about to be by itself; else it becomes a barrier, alone in flight.
    fn next_commit(&self) -> Option<Commit> {
        if self.flights.len() >= self.options.writes_in_flight_max {
            return None;
        }
        let batch = self.full.front().or(self.open.as_ref())?;
        if self.waits_for_note(batch) {
            return None;
        }
        if batch.level < Durability::Synced {
            return Some(Commit::Written);
        }
        let all_synced = self.unsynced.is_empty() && self.syncing.is_none();
        if all_synced && self.flights.iter().all(|flight| flight.commit == Commit::Synced) {
            return Some(Commit::Synced);
        }
        let alone = self.flights.is_empty() && self.syncing.is_none();
        alone.then_some(Commit::Barrier)
    }

    fn start_batch(&mut self, now: Nanos, commit: Commit) -> Write<F> {
        if self.full.is_empty() {
            self.close_batch();
        }
        let mut batch = self.full.pop_front().expect("invariant: a batch waits");
        assert_eq!(batch.first, self.handed_out().next(), "a batch begins where the last ended");
        assert!(self.flights.len() < self.options.writes_in_flight_max, "flights are bounded");
        match commit {
            Commit::Written => assert!(batch.level < Durability::Synced, "it need not be synced"),
            Commit::Synced => assert!(self.unsynced.is_empty(), "nothing before it is unsynced"),
            Commit::Barrier => assert!(self.flights.is_empty(), "a barrier is alone in flight"),
        }
        let note = self.note_before(&batch).map(Box::new);
        batch.seal(self.opening.epoch, self.durable.synced, now);
        self.flights.push_back(Flight {
            segment: batch.life.number,
            offset: batch.offset,
            file: batch.file.clone(),
            payload_bytes: batch.payload_bytes,
            last: batch.last(),
            commit,
            done: false,
        });
        self.count_batch(&batch);
        let mut then_sync = Vec::new();
        if commit == Commit::Barrier {
            let mut files = self.unsynced.take();
            files.insert(batch.life.number, batch.file.clone());
            then_sync.extend(files.into_values());
        }
        let mode = if commit == Commit::Synced { WriteMode::Synced } else { WriteMode::Written };
        Write { note, batch: Some(batch), mode, then_sync }
    }

    fn finish_batch(&mut self, now: Nanos, batch: Batch<F>) {
        let last = batch.last();
        let flight = self.flights.iter_mut().find(|flight| flight.last == last);
        let flight = flight.expect("invariant: only what was handed out comes back");
        assert!(!flight.done, "a write comes back once");
        flight.done = true;
        if flight.commit != Commit::Written {
            self.counters.syncs += 1;
        }
        self.buffers.keep(batch.into_buffer());
        self.advance(now);
    }

    fn finish_sync(&mut self) {
        let covered = self.syncing.take().expect("invariant: only what was handed out comes back");
        assert!(covered <= self.durable.written, "only what is written is synced");
        assert!(covered > self.durable.synced, "no other sync overtakes a flush");
        self.durable.synced = covered;
        self.counters.syncs += 1;
    }

    /// Moves the durable position over all batches that completed in order.
    fn advance(&mut self, now: Nanos) {
        while let Some(flight) = self.flights.pop_front_if(|flight| flight.done) {
            if flight.commit == Commit::Synced {
                assert_eq!(
                    self.durable.synced, self.durable.written,
                    "a direct synced write goes only where everything before is synced"
                );
            }
            assert!(flight.last > self.durable.written, "a batch brings something new");
            assert!(flight.last < self.next, "what is written was appended");
            self.durable.written = flight.last;
            if flight.commit == Commit::Written {
                // Only now: a sync that began before would have covered less than it flushed.
                self.unsynced.add(now, (flight.segment, flight.file), flight.payload_bytes);
            } else {
                assert!(self.unsynced.is_empty() && self.syncing.is_none(), "it covers them too");
                self.durable.synced = flight.last;
            }
        }
    }

    fn count_batch(&mut self, batch: &Batch<F>) {
        self.counters.batches += 1;
        self.counters.batch_bytes += batch.bytes().len() as u64;
        self.counters.batch_frames_max =
            self.counters.batch_frames_max.max(u64::from(batch.frames));
    }
}

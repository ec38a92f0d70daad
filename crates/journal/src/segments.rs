//! The segments: the active one, the live records of each, and those that may be used again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{LiveRecords, Lsn};

use crate::format::{Life, SEGMENT_NUMBER_MAX, SegmentNumber};
use crate::frame_index::FrameIndex;
use crate::{BLOCK_BYTES, FRAME_HEADER_BYTES};

/// Spares that settling may use when the device is full. Two, so that one can be recycled while
/// the log goes on in the other.
pub(crate) const RESERVED_SPARES: usize = 2;

/// A segment that holds frames, or will hold the next.
#[derive(Clone, Debug)]
pub(crate) struct Segment<F> {
    pub(crate) life: Life,
    pub(crate) file: F,
    /// Its first frame.
    pub(crate) first: Lsn,
    /// The offset of the next batch.
    pub(crate) end: u64,
    /// Up to here it may be written: these bytes are allocated and were written before.
    pub(crate) initialised: u64,
    /// Bytes of its file; behind a recovered end some of them may never have been written.
    pub(crate) file_bytes: u64,
    /// The records in it that still matter.
    pub(crate) live: LiveRecords,
    /// The last frame appended when its last record ceased to matter.
    pub(crate) died_at: Lsn,
    /// A batch in it is larger than one piece that can be appended: it is not compacted.
    pub(crate) too_large: bool,
    /// How many are about to read in it: so long it is not used again.
    pub(crate) pins: u32,
    /// The places of its frames.
    pub(crate) index: FrameIndex,
}

/// A segment without frames, ready to continue the log.
#[derive(Clone, Debug)]
pub(crate) struct Spare<F> {
    /// The last, if nothing in it matters any more.
    pub(crate) life: Life,
    pub(crate) file: F,
    pub(crate) initialised: u64,
    /// Bytes of these that its first block tells of.
    pub(crate) made: u64,
    /// Bytes of its file, which may be more.
    pub(crate) file_bytes: u64,
}

/// The bytes of records in frames of their own. A small message is half header.
const fn frame_bytes(live: LiveRecords) -> u64 {
    live.bytes + live.count * FRAME_HEADER_BYTES as u64
}

impl<F> Segment<F> {
    /// A spare in which the log goes on with `first`.
    pub(crate) fn of_spare(spare: Spare<F>, first: Lsn) -> Self {
        let Spare { life, file, initialised, file_bytes, .. } = spare;
        Self {
            life,
            file,
            first,
            end: BLOCK_BYTES as u64,
            initialised,
            file_bytes,
            live: LiveRecords::NONE,
            died_at: Lsn::ZERO,
            too_large: false,
            pins: 0,
            index: FrameIndex::new(first),
        }
    }

    /// The bytes of its live records in frames of their own.
    pub(crate) fn live_frame_bytes(&self) -> u64 {
        frame_bytes(self.live)
    }

    /// True if nothing in it matters any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.live == LiveRecords::NONE
    }
}

impl<F> Spare<F> {
    /// A segment in which nothing matters any more.
    fn of(segment: Segment<F>) -> Self {
        assert!(segment.is_dead(), "a segment is reused once nothing in it matters");
        assert_eq!(segment.pins, 0, "a segment is reused once it is read no more");
        let Segment { life, file, initialised, file_bytes, .. } = segment;
        Self { life, file, initialised, made: initialised, file_bytes }
    }

    /// How far it was written, in whole blocks, and how long its file is, once that has so many
    /// bytes at most.
    pub(crate) fn cut(&self, bytes: u64) -> (u64, u64) {
        let block = BLOCK_BYTES as u64;
        (self.initialised.min(bytes) / block * block, self.file_bytes.min(bytes))
    }

    /// Bytes for batches that it offers.
    pub(crate) fn rest(&self) -> u64 {
        self.initialised.saturating_sub(BLOCK_BYTES as u64)
    }
}

/// All segments of a journal.
#[derive(Debug)]
pub(crate) struct Segments<F> {
    /// By first frame. The last is the active one, where the log continues.
    table: BTreeMap<Lsn, Segment<F>>,
    /// In the order in which they will be used, which is that of their numbers.
    spares: VecDeque<Spare<F>>,
    /// Nothing in them matters any more.
    retired: Vec<Spare<F>>,
    next_number: SegmentNumber,
    sums: Sums,
}

/// Sums over all segments: each turn asks for them, and there may be thousands of segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// Bytes of all files.
    file_bytes: u64,
    /// Bytes of the segments in the table that may be written to, or were.
    held_bytes: u64,
    /// The records that matter.
    live: LiveRecords,
    /// Segments in the table, by first frame, in which nothing matters.
    dead: BTreeSet<Lsn>,
    /// Segments in the table, by first frame, that are too large to be compacted.
    too_large: BTreeSet<Lsn>,
}

impl Sums {
    fn of<F>(table: &BTreeMap<Lsn, Segment<F>>, idle: &[&Spare<F>]) -> Self {
        let mut sums = Self::default();
        for segment in table.values() {
            sums.enter(segment);
            sums.file_bytes += segment.file_bytes;
        }
        sums.file_bytes += idle.iter().map(|spare| spare.file_bytes).sum::<u64>();
        sums
    }

    /// A segment comes into the table.
    fn enter<F>(&mut self, segment: &Segment<F>) {
        self.held_bytes += segment.initialised;
        self.live += segment.live;
        if segment.is_dead() {
            self.dies(segment.first);
        }
        if segment.too_large {
            self.set_aside(segment.first);
        }
    }

    /// Nothing in the segment with that first frame matters any more.
    fn dies(&mut self, first: Lsn) {
        assert!(self.dead.insert(first), "a segment dies once");
    }

    /// The segment with that first frame is too large to be compacted.
    fn set_aside(&mut self, first: Lsn) {
        assert!(self.too_large.insert(first), "a segment is set aside once");
    }

    /// A segment goes out of the table.
    fn leave<F>(&mut self, segment: &Segment<F>) {
        assert!(self.held_bytes >= segment.initialised, "its bytes were counted");
        self.held_bytes -= segment.initialised;
        self.live -= segment.live;
        let (was_dead, first) = (self.dead.remove(&segment.first), segment.first);
        assert_eq!(was_dead, segment.is_dead(), "it was counted as dead, and only then");
        let was_aside = self.too_large.remove(&first);
        assert_eq!(was_aside, segment.too_large, "it was counted as set aside, and only then");
    }

    /// A file is taken to be used again, or to be removed.
    fn take_file(&mut self, bytes: u64) {
        assert!(self.file_bytes >= bytes, "its file was counted");
        self.file_bytes -= bytes;
    }
}

impl<F: Clone> Segments<F> {
    /// # Panics
    /// When `table` is empty.
    pub(crate) fn new(
        table: BTreeMap<Lsn, Segment<F>>,
        retired: Vec<Spare<F>>,
        next_number: SegmentNumber,
    ) -> Self {
        assert!(!table.is_empty(), "there is always an active segment");
        let sums = Sums::of(&table, &retired.iter().collect::<Vec<_>>());
        Self { table, spares: VecDeque::new(), retired, next_number, sums }
    }

    /// Keeps as spares only those retired files that are ready to continue the log. They are
    /// unused, have a higher number than the log has come to, and are no longer than segments of
    /// today.
    pub(crate) fn keep_spares(&mut self, segment_bytes: u64, is_unused: impl Fn(Life) -> bool) {
        assert!(self.spares.is_empty(), "a start looks for spares once");
        let number = self.active().life.number;
        let is_ready = |spare: &Spare<F>| {
            let fits = spare.life.number > number && spare.file_bytes <= segment_bytes;
            fits && spare.life.takes_batches() && is_unused(spare.life)
        };
        let retired = std::mem::take(&mut self.retired);
        let (mut ready, retired): (Vec<_>, Vec<_>) = retired.into_iter().partition(is_ready);
        ready.sort_unstable_by_key(|spare| spare.life.number);
        self.spares.extend(ready);
        self.retired = retired;
    }

    /// The segment in which the log continues.
    pub(crate) fn active(&self) -> &Segment<F> {
        // An iterator's way to it is three times as long, and each command asks for it often.
        let last = self.table.last_key_value();
        last.expect("invariant: there is always an active segment").1
    }

    /// A batch of that life takes so many bytes of the active segment: the next begins behind it.
    pub(crate) fn fill(&mut self, life: Life, offset: u64, bytes: u64) {
        let active = self.active_mut();
        assert_eq!(active.life, life, "the open batch is in the active segment");
        assert_eq!(active.end, offset, "a batch begins where the last ended");
        active.end += bytes;
        assert!(active.end <= active.initialised, "frames go only where zeros were written");
    }

    /// The segment in which the log continues, to be changed.
    fn active_mut(&mut self) -> &mut Segment<F> {
        let last = self.table.last_entry().expect("invariant: there is always an active segment");
        last.into_mut()
    }

    /// Bytes that may be written to the active segment from `end` on.
    pub(crate) fn active_rest(&self, end: u64) -> u64 {
        self.active().initialised.saturating_sub(end)
    }

    /// Bytes for batches that the next spare offers.
    pub(crate) fn next_spare_rest(&self) -> u64 {
        self.spares.front().map_or(0, Spare::rest)
    }

    /// How many spares are ready.
    pub(crate) fn spares(&self) -> usize {
        self.spares.len()
    }

    /// The next spare.
    pub(crate) fn next_spare(&self) -> Option<&Spare<F>> {
        self.spares.front()
    }

    /// The spares in the order in which they will be used.
    pub(crate) fn iter_spares(&self) -> impl Iterator<Item = &Spare<F>> {
        self.spares.iter()
    }

    /// Those that hold frames, in the order of the log.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment<F>> {
        self.table.values()
    }

    /// The segments with files that may be used again.
    pub(crate) fn iter_retired(&self) -> impl Iterator<Item = &Spare<F>> {
        self.retired.iter()
    }

    /// The spare that would be used last is not to be used any more.
    pub(crate) fn take_last_spare(&mut self) -> Option<Spare<F>> {
        let spare = self.spares.pop_back()?;
        self.sums.take_file(spare.file_bytes);
        Some(spare)
    }

    /// Takes a prepared spare in.
    pub(crate) fn add_spare(&mut self, spare: Spare<F>) {
        let last = self.spares.back().map_or(self.active().life, |spare| spare.life);
        assert!(spare.life.number > last.number, "spares are used in the order of their numbers");
        assert!(spare.life.number < self.next_number, "a number is taken before it is used");
        assert!(spare.life.takes_batches(), "a spare is of the version that is written");
        assert!(spare.initialised.is_multiple_of(BLOCK_BYTES as u64), "batches fill whole blocks");
        assert!(spare.initialised >= BLOCK_BYTES as u64, "a spare has room for its header");
        assert!(spare.made <= spare.initialised, "its first block tells of bytes that are there");
        assert!(spare.initialised <= spare.file_bytes, "what is filled is in the file");
        self.sums.file_bytes += spare.file_bytes;
        self.spares.push_back(spare);
    }

    /// A number that no segment has had.
    pub(crate) fn take_number(&mut self) -> SegmentNumber {
        let number = self.next_number;
        assert!(number > self.active().life.number, "numbers ascend along the log");
        assert!(number.0 < NUMBER_END, "a name has room for 16 digits");
        self.next_number = SegmentNumber(number.0 + 1);
        number
    }

    /// Continues the log in the next spare with `first`.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn roll(&mut self, first: Lsn) {
        let spare = self.spares.pop_front().expect("invariant: room was checked before appending");
        assert!(first >= self.active().first, "the log goes on");
        assert!(spare.rest() > 0, "a segment begins with room for a batch");
        assert!(spare.life.number > self.active().life.number, "numbers ascend along the log");
        assert!(spare.life.takes_batches(), "a spare is of the version that is written");
        if let Some(empty) = self.table.remove(&first) {
            assert_eq!(empty.end, BLOCK_BYTES as u64, "what holds no frame holds no batch");
            self.sums.leave(&empty);
            self.retired.push(Spare::of(empty));
        }
        let segment = Segment::of_spare(spare, first);
        self.sums.enter(&segment);
        self.table.insert(first, segment);
        assert_eq!(self.active().first, first, "the log goes on in the last segment");
    }

    /// The segment of that number was filled with zeros up to `initialised`.
    pub(crate) fn extended(&mut self, number: SegmentNumber, initialised: u64) {
        if let Some(segment) = self.table.values_mut().find(|segment| segment.life.number == number)
        {
            assert!(initialised > segment.initialised, "what is filled stays filled");
            let longer = initialised.saturating_sub(segment.file_bytes);
            self.sums.held_bytes = self.sums.held_bytes + initialised - segment.initialised;
            self.sums.file_bytes += longer;
            segment.initialised = initialised;
            segment.file_bytes += longer;
        }
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.life.number == number) {
            assert!(initialised > spare.initialised, "what is filled stays filled");
            let longer = initialised.saturating_sub(spare.file_bytes);
            self.sums.file_bytes += longer;
            spare.initialised = initialised;
            spare.file_bytes += longer;
        }
    }

    /// The first block of the spare of that number tells that it was made with so many bytes.
    pub(crate) fn labelled(&mut self, number: SegmentNumber, made: u64) {
        if let Some(spare) = self.spares.iter_mut().find(|spare| spare.life.number == number) {
            assert!(made > spare.made, "a file only grows while it is a spare");
            assert!(made <= spare.initialised, "its first block tells of bytes that are there");
            spare.made = made;
        }
    }

    /// The next frame lies in the active segment at `offset`, and so much of it matters.
    pub(crate) fn append(&mut self, lsn: Lsn, offset: u64, live: LiveRecords) {
        let active = self.active_mut();
        debug_assert!(lsn >= active.first, "the log goes on in the last segment");
        debug_assert!(offset >= active.end, "a frame lies behind the batches before it");
        debug_assert!(offset < active.initialised, "a frame goes where zeros were written");
        let was_dead = active.is_dead();
        active.live += live;
        active.index.note(lsn, offset);
        let (first, is_dead) = (active.first, active.is_dead());
        self.sums.live += live;
        if was_dead && !is_dead {
            let was_counted = self.sums.dead.remove(&first);
            assert!(was_counted, "nothing in it mattered before");
        }
    }

    /// A record at `lsn` would take more when it is appended anew.
    pub(crate) fn grow(&mut self, lsn: Lsn, bytes: u64) {
        let segment = self.holding(lsn);
        assert!(segment.live.count > 0, "only what matters grows");
        segment.live.bytes += bytes;
        self.sums.live.bytes += bytes;
    }

    /// A record at `lsn` ceased to matter with frame `now`.
    pub(crate) fn free(&mut self, lsn: Lsn, bytes: u64, now: Lsn) {
        let segment = self.holding(lsn);
        let LiveRecords { count, bytes: kept } = segment.live;
        assert!(count > 0 && kept >= bytes, "only what was kept is freed, and only once");
        segment.live -= LiveRecords::one(bytes);
        let died = segment.is_dead().then_some(segment.first);
        if died.is_some() {
            debug_assert!(now >= segment.died_at, "positions never go back");
            segment.died_at = now;
        }
        let LiveRecords { count, bytes: kept } = self.sums.live;
        debug_assert!(count > 0 && kept >= bytes, "the sums are over all segments");
        self.sums.live -= LiveRecords::one(bytes);
        if let Some(first) = died {
            self.sums.dies(first);
        }
    }

    /// A reader is about to read frame `lsn`.
    pub(crate) fn pin(&mut self, lsn: Lsn) {
        self.holding(lsn).pins += 1;
    }

    /// And has read it. Tells whether its segment could now be used again.
    pub(crate) fn unpin(&mut self, lsn: Lsn) -> bool {
        let segment = self.holding(lsn);
        assert!(segment.pins > 0, "only what was pinned is unpinned, and only once");
        segment.pins -= 1;
        segment.pins == 0 && segment.is_dead()
    }

    /// The segment in which frame `lsn` lies, if any holds it.
    pub(crate) fn of(&self, lsn: Lsn) -> Option<&Segment<F>> {
        self.table.range(..=lsn).next_back().map(|(_, segment)| segment)
    }

    /// Bytes of all records that still matter.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.sums.live.bytes
    }

    /// Bytes of frames that all of them would take at most, each alone.
    pub(crate) fn live_frame_bytes(&self) -> u64 {
        frame_bytes(self.sums.live)
    }

    /// Bytes of the segments that a snapshot of now would let go of.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.dead().map(|segment| segment.initialised).sum()
    }

    /// Bytes of the segments that are set aside, as long as something in them matters.
    pub(crate) fn set_aside_bytes(&self) -> u64 {
        let aside = self.sums.too_large.iter().filter_map(|first| self.table.get(first));
        aside.filter(|segment| !segment.is_dead()).map(|segment| segment.initialised).sum()
    }

    /// Bytes of the segments that hold frames.
    pub(crate) const fn held_bytes(&self) -> u64 {
        self.sums.held_bytes
    }

    /// How many segment files there are.
    pub(crate) fn count(&self) -> usize {
        self.table.len() + self.spares.len() + self.retired.len()
    }

    /// Bytes of all segment files.
    pub(crate) const fn file_bytes(&self) -> u64 {
        self.sums.file_bytes
    }

    /// Bytes of the file of the segment or spare of that number.
    pub(crate) fn file_bytes_of(&self, number: SegmentNumber) -> Option<u64> {
        let segment = self.numbered(number).map(|segment| segment.file_bytes);
        let spare = || self.spares.iter().find(|spare| spare.life.number == number);
        segment.or_else(|| spare().map(|spare| spare.file_bytes))
    }

    /// How many hold frames.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// True if a snapshot taken now would let a segment be used again.
    pub(crate) fn has_dead(&self) -> bool {
        self.dead().next().is_some()
    }

    /// Takes out of the log each segment that recovery from a snapshot of `begin` never reads. All
    /// its frames are in the snapshot, and the snapshot names no record of it. The log is synced
    /// into the next segment: otherwise a crash could leave a log that ends before the snapshot
    /// does. Pinned segments stay.
    pub(crate) fn retire(&mut self, begin: Lsn, synced: Lsn) {
        assert!(begin <= synced, "a whole snapshot is of a synced log");
        let dead: Vec<Lsn> = self
            .dead()
            .filter(|segment| segment.died_at <= begin)
            .filter(|segment| self.last_of(segment.first) <= begin)
            .filter(|segment| self.last_of(segment.first) < synced)
            .map(|segment| segment.first)
            .collect();
        for first in dead {
            assert!(first < self.active().first, "the active segment stays");
            let segment = self.table.remove(&first).expect("invariant: it was just found");
            self.sums.leave(&segment);
            self.retired.push(Spare::of(segment));
        }
    }

    /// How many wait to be used again.
    pub(crate) fn retired(&self) -> usize {
        self.retired.len()
    }

    /// A segment with a file that may be used again; never the one that a start looks for.
    pub(crate) fn take_retired(&mut self, noted: SegmentNumber) -> Option<Spare<F>> {
        let index = self.retired.iter().rposition(|spare| spare.life.number != noted)?;
        let spare = self.retired.remove(index);
        self.sums.take_file(spare.file_bytes);
        Some(spare)
    }

    /// Its live records cannot be appended anew: see [`Segment::too_large`].
    pub(crate) fn set_aside(&mut self, number: SegmentNumber) {
        let active = self.active().life.number;
        assert_ne!(number, active, "the log is not compacted where it goes on");
        let found = self.table.values_mut().find(|segment| segment.life.number == number);
        let segment = found.expect("invariant: what is compacted holds frames");
        segment.too_large = true;
        self.sums.set_aside(segment.first);
    }

    /// How many are set aside.
    pub(crate) fn too_large(&self) -> usize {
        self.sums.too_large.len()
    }

    /// The closed and written segment with the smallest live part, of those that are `worth` it, if
    /// that is at most half. Measured against the segment's whole length, the rest behind its last
    /// batch included: if all take more than twice the live bytes, one of them does.
    pub(crate) fn nearly_dead(
        &self,
        written: Lsn,
        worth: impl Fn(&Segment<F>) -> bool,
    ) -> Option<&Segment<F>> {
        self.closed()
            .filter(|segment| !segment.too_large && worth(segment))
            .filter(|segment| self.last_of(segment.first) <= written)
            .filter(|segment| !segment.is_dead())
            .filter(|segment| segment.live_frame_bytes().saturating_mul(2) <= segment.initialised)
            .min_by_key(|segment| segment.live_frame_bytes() * 1024 / segment.initialised)
    }

    /// The segment of that number, if it holds frames.
    pub(crate) fn numbered(&self, number: SegmentNumber) -> Option<&Segment<F>> {
        self.table.values().find(|segment| segment.life.number == number)
    }

    /// Every invariant of the table.
    ///
    /// # Panics
    /// When one is broken.
    pub(crate) fn check(&self) {
        let lives = self.table.values().map(|segment| segment.life);
        let lives = lives.chain(self.spares.iter().map(|spare| spare.life));
        let numbers: Vec<_> = lives.map(|life| life.number).collect();
        assert!(numbers.is_sorted(), "segments are numbered in the order of the log");
        for (first, segment) in &self.table {
            assert_eq!(*first, segment.first, "the table is by first frame");
            assert!(segment.end <= segment.initialised, "nothing lies beyond what is allocated");
            assert!(segment.end >= BLOCK_BYTES as u64, "the first block is the header's");
            assert!(segment.life.number < self.next_number, "numbers are taken");
            assert!(segment.initialised <= segment.file_bytes, "what is filled is in the file");
            let LiveRecords { count, bytes } = segment.live;
            assert_eq!(count == 0, bytes == 0, "each record that matters takes bytes");
            assert!(count < segment.initialised, "no more matters than fits in");
        }
        let idle: Vec<_> = self.spares.iter().chain(&self.retired).collect();
        assert_eq!(self.sums, Sums::of(&self.table, &idle), "sums are over all segments");
        for spare in &self.spares {
            assert!(
                spare.made <= spare.initialised,
                "its first block tells of bytes that are there"
            );
            assert!(spare.initialised <= spare.file_bytes, "what is filled is in the file");
        }
        for retired in &self.retired {
            assert!(self.numbered(retired.life.number).is_none(), "what is retired holds nothing");
        }
    }

    /// The closed ones in which nothing matters and nothing is read.
    fn dead(&self) -> impl Iterator<Item = &Segment<F>> {
        let active = self.active().first;
        let closed = self.sums.dead.iter().filter(move |first| **first != active);
        closed.filter_map(|first| self.table.get(first)).filter(|segment| segment.pins == 0)
    }

    fn closed(&self) -> impl Iterator<Item = &Segment<F>> {
        let count = self.table.len() - 1;
        self.table.values().take(count)
    }

    /// The last frame of a closed segment.
    pub(crate) fn last_of(&self, first: Lsn) -> Lsn {
        let mut later = self.table.range(first.next()..);
        later.next().map_or(Lsn(u64::MAX), |(next, _)| Lsn(next.0 - 1))
    }

    fn holding(&mut self, lsn: Lsn) -> &mut Segment<F> {
        // Mostly new records are also the ones that go, and a search of the table is dear.
        if self.active().first <= lsn {
            return self.active_mut();
        }
        let mut before = self.table.range_mut(..=lsn);
        before.next_back().expect("invariant: what is live or pinned lies in a segment").1
    }
}

/// Names have 16 digits.
const NUMBER_END: u64 = 10_000_000_000_000_000;
const _: () = assert!(SEGMENT_NUMBER_MAX < NUMBER_END, "the numbers of a log have names");

//! How far batches may be written: as far as the active segment's watermark and the control file
//! say, which are on the device before any batch behind.
//!
//! A chore moves the watermark ahead of the log in steps, so that writes seldom wait for it. If
//! a batch begins a segment, or is larger than the rest of the reach, its write moves it first. One
//! *note* is under way at most.

use model::Lsn;

use crate::batch::Batch;
use crate::chore::Work;
use crate::control::Control;
use crate::format::{Life, Opening, SegmentNumber};
use crate::segments::{Segment, Spare};
use crate::watermark::{Stamp, Watermark, write_first_block};
use crate::{BLOCK_BYTES, Disk, DiskError, DiskErrorKind, Journal};

/// The device's notes about where batches are.
#[derive(Debug)]
pub(crate) struct Reach<F> {
    control_file: F,
    /// The segment in which they may be, up to `bytes`.
    number: SegmentNumber,
    bytes: u64,
    /// How far that was ahead of the log.
    window: u64,
    /// Bytes that its file was made with, as far as its watermark tells.
    made: u64,
    stamp: Stamp,
    /// A note is under way.
    is_moving: bool,
    /// The first block of this spare is being written.
    labelled: Option<SegmentNumber>,
}

/// A watermark that is to be written, and the control file with it.
#[derive(Clone, Debug)]
pub(crate) struct Note<F> {
    file: F,
    life: Life,
    control_file: F,
    watermark: Watermark,
    control: Control,
}

impl<F: Clone> Reach<F> {
    /// Nothing is noted in this opening yet; `stamp` was the last of those before.
    pub(crate) fn new(control_file: F, stamp: Stamp) -> Self {
        let (number, is_moving, labelled) = (SegmentNumber::default(), false, None);
        Self { control_file, number, bytes: 0, window: 0, made: 0, stamp, is_moving, labelled }
    }

    /// The segment with the watermark that was written last: a start looks for it.
    pub(crate) const fn number(&self) -> SegmentNumber {
        self.number
    }

    /// The file that goes with all watermarks.
    pub(crate) const fn control_file(&self) -> &F {
        &self.control_file
    }

    /// Notes that batches may come up to `bytes` in that segment. Its log ends at `end`, when all
    /// up to `synced` is on the device.
    pub(crate) fn note(
        &mut self,
        opening: Opening,
        segment: &Segment<F>,
        (end, bytes): (u64, u64),
        synced: Lsn,
    ) -> Note<F> {
        assert!(!self.is_moving, "one note at a time");
        assert!(segment.life.takes_batches(), "only segments of this version are written to");
        assert!(segment.life.epoch() <= opening.epoch, "a segment begins its life before");
        let (made, reach) = (segment.initialised, bytes);
        assert!((end..=made).contains(&reach), "batches go where zeros were written");
        let sequence = self.stamp.sequence + 1;
        self.stamp = Stamp { sequence, salt: opening.salt };
        (self.number, self.window, self.made) = (segment.life.number, reach - end, made);
        self.is_moving = true;
        let Opening { epoch, directory, .. } = opening;
        let stamp = self.stamp;
        let watermark = Watermark { stamp, epoch, made, reach };
        let control = Control { epoch, directory, segment: self.number, stamp, synced };
        let (file, life) = (segment.file.clone(), segment.life);
        Note { file, life, control_file: self.control_file.clone(), watermark, control }
    }

    /// A note is on the device.
    pub(crate) fn finish(&mut self, note: &Note<F>) {
        assert!(self.is_moving, "only what was handed out comes back");
        assert_eq!(note.life.number, self.number, "notes come back in their order");
        assert_eq!(note.watermark.stamp, self.stamp, "the last one comes back");
        self.is_moving = false;
        self.bytes = note.watermark.reach;
    }

    /// The content of the control file while the log goes on in no segment that has a watermark.
    pub(crate) fn note_nothing(&mut self, opening: Opening, synced: Lsn) -> Control {
        let Opening { epoch, directory, salt } = opening;
        self.stamp = Stamp { sequence: self.stamp.sequence + 1, salt };
        let segment = SegmentNumber::default();
        Control { epoch, directory, segment, stamp: self.stamp, synced }
    }

    /// True if a batch that ends there in that segment has to wait for a note.
    fn is_beyond(&self, number: SegmentNumber, end: u64) -> bool {
        number != self.number || end > self.bytes
    }
}

impl<F: Clone> Note<F> {
    /// Writes both, the watermark first: a control file that is behind does no harm.
    ///
    /// # Errors
    /// Any of the disk; never that it is full, for both write over existing bytes.
    pub(crate) fn perform<D: Disk<File = F>>(&self, disk: &D) -> Result<(), DiskError> {
        let place = (self.life, self.control.directory);
        write_first_block(disk, &self.file, place, &self.watermark)
            .and_then(|()| self.control.write(disk, &self.control_file))
            .map_err(|error| DiskError { kind: DiskErrorKind::Failed, ..error })
    }
}

impl<F: Clone> Journal<F> {
    /// The note that must be written before that batch.
    pub(crate) fn note_before(&mut self, batch: &Batch<F>) -> Option<Note<F>> {
        let (number, end) = (batch.life.number, batch.offset + batch.padded_bytes());
        if !self.reach.is_beyond(number, end) {
            return None;
        }
        assert!(number >= self.reach.number, "the log goes on in later segments");
        assert_ne!(self.reach.labelled, Some(number), "the first block is written by one");
        let synced = self.durable().synced;
        let segment = self.segments.numbered(number);
        let segment = segment.expect("invariant: a batch lies in a segment that holds frames");
        let bytes = (end + self.options.extent_bytes).min(segment.initialised);
        let note = self.reach.note(self.opening, segment, (end, bytes), synced);
        // Those behind it may be written beside: none is durable before this one is.
        self.reach.bytes = note.watermark.reach;
        assert!(!self.reach.is_beyond(number, end), "no batch ends behind the watermark's reach");
        Some(note)
    }

    /// Returns true if the next batch waits for a write to the first block of its segment, or to
    /// the control file.
    pub(crate) fn waits_for_note(&self, batch: &Batch<F>) -> bool {
        let (number, end) = (batch.life.number, batch.offset + batch.padded_bytes());
        let is_moving = self.reach.is_moving || self.reach.labelled == Some(number);
        is_moving && self.reach.is_beyond(number, end)
    }

    /// The watermark goes ahead once the log has come half way to it, and it is written anew once
    /// the file is longer than it tells.
    pub(crate) fn note_work(&mut self) -> Option<Work<F>> {
        let end = self.planned_end();
        let active = self.segments.active();
        let Reach { number, bytes, window, made, is_moving, .. } = self.reach;
        if is_moving || active.life.number != number {
            return None;
        }
        let is_near = end + window / 2 > bytes && bytes < active.initialised;
        let further = if is_near { self.options.extent_bytes } else { 0 };
        if !is_near && made == active.initialised {
            return None;
        }
        assert!(bytes <= active.initialised, "batches go where zeros were written");
        let bytes = (end.max(bytes) + further).min(active.initialised);
        let synced = self.durable().synced;
        let note = self.reach.note(self.opening, self.segments.active(), (end, bytes), synced);
        Some(Work::Note(note))
    }

    /// The same of a spare, in which no batch may be yet.
    pub(crate) fn label_work(&mut self) -> Option<Work<F>> {
        let spare = self.segments.iter_spares().find(|spare| spare.made < spare.initialised)?;
        let Spare { life, initialised: made, ref file, .. } = *spare;
        assert!(self.reach.labelled.is_none(), "one label at a time");
        assert!(life.number > self.reach.number, "a spare holds no batch");
        let (file, directory) = (file.clone(), self.opening.directory);
        self.reach.labelled = Some(life.number);
        Some(Work::Label { life, directory, file, made })
    }

    /// A spare's first block tells so many bytes.
    pub(crate) fn finish_label(&mut self, number: SegmentNumber, made: u64) {
        assert_eq!(self.reach.labelled.take(), Some(number), "only what was handed out comes back");
        self.segments.labelled(number, made);
    }

    /// A note is on the device.
    pub(crate) fn finish_note(&mut self, note: &Note<F>) {
        self.reach.finish(note);
    }

    /// Every invariant of the notes.
    ///
    /// # Panics
    /// When one is broken.
    pub(crate) fn check_reach(&self) {
        let Reach { number, bytes, made, .. } = self.reach;
        let active = self.segments.active();
        assert!(number <= active.life.number, "no spare may hold batches");
        if let Some(segment) = self.segments.numbered(number) {
            assert!(bytes <= segment.initialised, "batches go where zeros were written");
            assert!(made <= segment.initialised, "a watermark tells of bytes that are there");
            assert!(bytes >= self.handed_out_end(segment), "no batch ends behind the reach");
        }
    }
}

/// How far a start notes: a store in which little happens is read no further by the next one.
pub(crate) const fn first_window(extent_bytes: u64) -> u64 {
    let block = BLOCK_BYTES as u64;
    let window = extent_bytes / 4 / block * block;
    if window < block { block } else { window }
}

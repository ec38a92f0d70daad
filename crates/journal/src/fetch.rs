//! Reads frames back while the log goes on: bodies that left memory, before they are asked for.
//!
//! Only written frames are read. Each frame that is handed out was checked. A frame that cannot be
//! read, or is not as it was written, is as final as any error of the disk.

use std::ops::Range;

use model::Lsn;

use crate::buffer::AlignedBuffer;
use crate::format::{Epoch, Life};
use crate::frame_index::{Place, STEP_BYTES};
use crate::segment_slice::{FrameLookup, SegmentSlice};
use crate::{BLOCK_BYTES, Disk, DiskError, DiskErrorKind, Journal, JournalFailed};

/// Frames to be read back.
#[derive(Debug)]
pub struct LogFetch<F> {
    file: F,
    life: Life,
    lsn: Lsn,
    /// The last of its segment that was written when this began.
    last: Lsn,
    /// The place from which to look for the frame.
    from: Place,
    /// The end of the written part of the segment.
    end: u64,
    /// Bytes of log to read.
    bytes: usize,
    /// This opening of the journal, and its first frame.
    epoch: Epoch,
    first_appended: Lsn,
}

/// Frames that were read back, to be handed to [`Journal::handle_fetch`].
#[derive(Debug)]
pub struct LogFetchDone<F> {
    fetch: LogFetch<F>,
    result: Result<Fetched, DiskError>,
}

/// Frames read back: the one asked for, and those behind it that came with it.
#[derive(Debug)]
pub struct Fetched {
    first: Lsn,
    bytes: AlignedBuffer,
    /// The range of each payload in `bytes`.
    payloads: Vec<Range<usize>>,
    read_bytes: u64,
}

impl Fetched {
    /// The frame that was asked for.
    #[must_use]
    pub fn first(&self) -> Lsn {
        self.first
    }

    /// Position and payload of each, ascending without gaps: at least the one asked for.
    pub fn frames(&self) -> impl Iterator<Item = (Lsn, &[u8])> {
        let bytes = self.bytes.bytes();
        let payloads = self.payloads.iter().map(|place| bytes.get(place.clone()));
        let positions = (self.first.0..).map(Lsn);
        positions.zip(payloads.map(|payload| payload.expect("invariant: found in these bytes")))
    }
}

impl<F: Clone> LogFetch<F> {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> LogFetchDone<F> {
        let result = self.read(disk);
        LogFetchDone { fetch: self, result }
    }

    /// Mostly with one call. A frame that is longer than the bytes read takes another.
    fn read<D: Disk<File = F>>(&self, disk: &D) -> Result<Fetched, DiskError> {
        let mut from = self.from;
        let mut least = 0;
        let mut read_bytes = 0;
        loop {
            let (bytes, rest) = self.read_piece(disk, from.offset, least)?;
            read_bytes += bytes.len() as u64;
            let slice = SegmentSlice { bytes: bytes.bytes(), life: self.life };
            match self.search(slice, &mut from) {
                FrameLookup::Frame { payload, .. } => {
                    let payloads = self.with_followers(slice, payload);
                    return Ok(Fetched { first: self.lsn, bytes, payloads, read_bytes });
                }
                FrameLookup::Cut { bytes, .. } if rest > 0 => least = bytes,
                FrameLookup::Cut { .. } | FrameLookup::Other => {
                    return Err(self.rotten(from.offset));
                }
            }
        }
    }

    /// From that place's block on at least so many bytes behind it, if the segment has them, and
    /// how many more it has; none if the file ends before.
    fn read_piece<D: Disk<File = F>>(
        &self,
        disk: &D,
        offset: u64,
        least: usize,
    ) -> Result<(AlignedBuffer, u64), DiskError> {
        let start = block_of(offset);
        let left = self.end - start;
        let wanted = self.bytes.max(least).saturating_add(BLOCK_BYTES) as u64;
        let wanted = wanted.saturating_add(STEP_BYTES).min(left);
        let wanted = wanted.next_multiple_of(BLOCK_BYTES as u64);
        let length = usize::try_from(wanted).expect("invariant: a segment fits into memory");
        let mut buffer = AlignedBuffer::zeroed(length);
        let read = disk.read(&self.file, start, buffer.bytes_mut())?;
        buffer.truncate(read);
        let rest = if read == length { left.saturating_sub(wanted) } else { 0 };
        Ok((buffer, rest))
    }

    /// Goes along the frames to the one wanted; `from` becomes the last place looked at.
    fn search(&self, slice: SegmentSlice<'_>, from: &mut Place) -> FrameLookup {
        let start = block_of(from.offset);
        let mut at = usize::try_from(from.offset - start).expect("invariant: within a block");
        loop {
            let found = self.frame_at(slice, at, from.lsn);
            match &found {
                FrameLookup::Frame { .. } if from.lsn == self.lsn => return found,
                FrameLookup::Frame { payload, .. } => {
                    at = payload.end;
                    from.lsn = from.lsn.next();
                }
                FrameLookup::Cut { at: cut, .. } => at = *cut,
                FrameLookup::Other => {}
            }
            from.offset = start + at as u64;
            if !matches!(found, FrameLookup::Frame { .. }) {
                return found;
            }
        }
    }

    /// The frame's payload, and those of all behind it that are whole here.
    fn with_followers(&self, slice: SegmentSlice<'_>, payload: Range<usize>) -> Vec<Range<usize>> {
        let mut at = payload.end;
        let mut payloads = vec![payload];
        let positions = (self.lsn.0 + 1..=self.last.0).map(Lsn);
        payloads.extend(positions.map_while(|lsn| {
            // The segment ends behind its last frame, or a rotten frame is reported when it is
            // asked for.
            let FrameLookup::Frame { payload, .. } = self.frame_at(slice, at, lsn) else {
                return None;
            };
            at = payload.end;
            Some(payload)
        }));
        payloads
    }

    /// The device may lose the bytes written over a batch that recovery cut off. Then a frame of
    /// the same position is there again: its epoch is an older one.
    fn frame_at(&self, slice: SegmentSlice<'_>, at: usize, lsn: Lsn) -> FrameLookup {
        match slice.frame_at(at, lsn) {
            FrameLookup::Frame { epoch, .. } if !self.is_of_its_time(lsn, epoch) => {
                FrameLookup::Other
            }
            found => found,
        }
    }

    fn is_of_its_time(&self, lsn: Lsn, epoch: Epoch) -> bool {
        if lsn < self.first_appended { epoch < self.epoch } else { epoch == self.epoch }
    }

    fn rotten(&self, offset: u64) -> DiskError {
        let Self { lsn, life, .. } = self;
        DiskError {
            kind: DiskErrorKind::Failed,
            operation: "read back",
            file: life.number.file_name(),
            cause: format!("on the way to frame {lsn}, byte {offset} is not what was written"),
        }
    }
}

impl<F: Clone> Journal<F> {
    /// Announces a read of frame `lsn`: even if all records of its segment cease to matter, the
    /// segment is neither retired nor used again until [`Journal::unpin`].
    ///
    /// # Panics
    /// When the log does not hold it.
    pub fn pin(&mut self, lsn: Lsn) {
        assert!(lsn <= self.last(), "what is pinned was appended");
        self.segments.pin(lsn);
    }

    /// The frame was read, or is no longer wanted.
    ///
    /// # Panics
    /// When it was not pinned.
    pub fn unpin(&mut self, lsn: Lsn) {
        if self.segments.unpin(lsn) {
            // The last snapshot may have let go of it already.
            self.segments.retire(self.house.snapshot_begin(), self.durable().synced);
        }
    }

    /// Begins to read back frame `lsn`, which is written, and pinned or has a live record, and
    /// about so many `bytes` of log behind it. It stays pinned until [`Journal::handle_fetch`].
    ///
    /// # Panics
    /// When the log does not hold it, or it is not written yet.
    pub fn fetch(&mut self, lsn: Lsn, bytes: usize) -> LogFetch<F> {
        let last = self.durable().written;
        assert!(lsn <= last, "only what is written is read");
        let segment = self.segments.of(lsn).expect("invariant: what is fetched is in the log");
        assert!(segment.pins > 0 || !segment.is_dead(), "what is fetched is pinned or lives");
        let fetch = LogFetch {
            file: segment.file.clone(),
            life: segment.life,
            lsn,
            // Behind a segment's last frame there may be others that recovery cut off.
            last: last.min(self.segments.last_of(segment.first)),
            from: segment.index.before(lsn),
            end: self.written_end(segment),
            bytes,
            epoch: self.opening.epoch,
            first_appended: self.first_appended,
        };
        assert!(fetch.from.offset < fetch.end, "it is looked for where something was written");
        assert!(fetch.last >= lsn, "the frame lies in its segment");
        assert!(fetch.end <= segment.initialised, "nothing lies beyond what is allocated");
        self.pin(lsn);
        fetch
    }

    /// Takes a performed fetch back.
    ///
    /// # Errors
    /// If the disk failed, or the bytes read are not the bytes written: nothing more is confirmed.
    pub fn handle_fetch(&mut self, done: LogFetchDone<F>) -> Result<Fetched, JournalFailed> {
        self.unpin(done.fetch.lsn);
        self.refuse_when_failed()?;
        let fetched = done.result.map_err(|cause| self.fail(cause))?;
        self.counters.fetches += 1;
        self.counters.fetched_bytes += fetched.read_bytes;
        Ok(fetched)
    }
}

fn block_of(offset: u64) -> u64 {
    offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64
}

//! Compaction: copies the live rest of nearly dead segments forward.
//!
//! Compaction copies while the segments that a snapshot leaves hold more than two segments and
//! twice the live bytes, frame headers included. It copies the emptiest: its live records are
//! appended anew, piece by piece, and the next snapshot lets go of it. One more than half empty is
//! among them then: the log is written to in one segment, and another is the slack.

use model::{LiveRecords, Lsn, limits};

use crate::chore::Work;
use crate::format::{Epoch, MARK_BYTES, Mark, SegmentNumber};
use crate::reader::SegmentReader;
use crate::room::padded_batch_bytes;
use crate::segments::{RESERVED_SPARES, Segment};
use crate::{BLOCK_BYTES, DiskError, DiskErrorKind, FRAME_HEADER_BYTES, Journal, JournalFailed};

/// A segment of which the live records are being copied forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compaction {
    number: SegmentNumber,
    offset: u64,
    expected: Option<Lsn>,
    read_bytes: usize,
    /// Bytes of it that may be appended anew at once, and the record that exceeds them.
    copy_bytes: usize,
    /// Bytes that were.
    copied_bytes: u64,
    /// Bytes of a frame of this piece that found no room.
    needed_bytes: usize,
    /// On a full device there was room for the whole rest; nothing else uses it once the reserve is
    /// begun.
    fits_whole: bool,
}

/// The compactions of a log, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Compacting {
    /// The one under way.
    current: Option<Compaction>,
    /// Its state before the frames that were read back last.
    last_piece: Option<Compaction>,
    /// The last frame that a compaction appended.
    restated: Lsn,
}

impl Compacting {
    /// The one under way.
    pub(crate) const fn current(&self) -> Option<&Compaction> {
        self.current.as_ref()
    }

    /// The last frame that a compaction appended.
    pub(crate) const fn restated(&self) -> Lsn {
        self.restated
    }
}

impl Compaction {
    /// The number of its segment.
    pub(crate) const fn number(&self) -> SegmentNumber {
        self.number
    }

    /// As much of the piece was appended as may be at once.
    fn is_copied(&self) -> bool {
        self.copied_bytes >= self.copy_bytes as u64
    }
}

/// Frames read back from a segment that is being compacted. The caller appends anew the records
/// that still matter, as far as [`Journal::takes_restated`] allows, and frees them in their old
/// place.
#[derive(Debug, Default)]
pub struct OldFrames {
    /// Position and payload of each.
    pub frames: Vec<(Lsn, Vec<u8>)>,
}

impl<F: Clone> Journal<F> {
    /// Returns true if so much of an old frame can be appended anew. Ask before each frame: its
    /// need is known only now, and how much of the piece still matters. If false, go no further:
    /// the rest of the piece will be read again.
    pub fn takes_restated(&mut self, live: LiveRecords) -> bool {
        if let Some(piece) = self.house.compacting.last_piece.take_if(|piece| piece.is_copied()) {
            self.house.compacting.current = Some(Compaction { copied_bytes: 0, ..piece });
            return false;
        }
        let bytes = self.restated_bytes(live);
        if self.fits_restated(bytes) {
            if let Some(piece) = &mut self.house.compacting.last_piece {
                piece.copied_bytes += live.bytes;
            }
            self.counters.restated_records += live.count;
            // The same once more if nothing of the frame before was left to restate.
            assert!(self.next >= self.house.compacting.restated, "restated frames only follow");
            self.house.compacting.restated = self.next;
            return true;
        }
        if let Some(piece) = self.house.compacting.last_piece.take() {
            let piece = Compaction { needed_bytes: bytes, copied_bytes: 0, ..piece };
            self.go_on_or_set_aside(piece, live);
        }
        false
    }

    pub(crate) fn compact_work(&mut self) -> Option<Work<F>> {
        if self.house.is_in_snapshot() {
            return None;
        }
        if self.house.compacting.current.is_none() {
            self.house.compacting.current = self.next_compaction();
        }
        let compaction = self.house.compacting.current.as_ref()?;
        let Some(segment) = self.segments.numbered(compaction.number) else {
            self.compacted();
            return None;
        };
        assert_ne!(segment.first, self.segments.active().first, "the log goes on in another");
        if self.waits_for_restated() {
            return None;
        }
        let full = self.house.device_is_full();
        // One that was begun before would go on in the reserve until nothing is left of that.
        let is_sure = compaction.fits_whole && self.must_compact_first();
        let fits_whole = full && (is_sure || self.fits_whole(segment.live));
        if full && !fits_whole || !self.fits_compaction(compaction, segment.live) {
            if full {
                // All clients wait for it, and it can't go on.
                self.house.compacting.current = None;
            }
            return None;
        }
        assert!(compaction.offset.is_multiple_of(BLOCK_BYTES as u64), "batches begin at blocks");
        let work = Work::Read {
            number: compaction.number,
            file: segment.file.clone(),
            offset: compaction.offset,
            bytes: compaction.read_bytes,
            expected: compaction.expected,
        };
        self.house.compacting.current = Some(Compaction { fits_whole, ..*compaction });
        Some(work)
    }

    pub(crate) fn finish_read(
        &mut self,
        number: SegmentNumber,
        offset: u64,
        expected: Option<Lsn>,
        bytes: &[u8],
    ) -> Result<OldFrames, JournalFailed> {
        // Traffic may have used the room meanwhile; the same piece is read again later.
        let Some(segment) = self.segments.numbered(number) else {
            self.compacted();
            return Ok(OldFrames::default());
        };
        let (life, live) = (segment.life, segment.live);
        // Behind it may lie frames that recovery cut off, as if they followed.
        let last = self.segments.last_of(segment.first);
        let compaction = self.house.compacting.current;
        let compaction = compaction.expect("invariant: one is under way while it reads");
        assert_eq!((compaction.number, compaction.offset), (number, offset), "it waits for that");
        assert!(last <= self.durable().written, "only what is written is read");
        if !self.fits_compaction(&compaction, live) {
            return Ok(OldFrames::default());
        }
        self.house.compacting.last_piece = Some(compaction);
        let mut reader = SegmentReader::new(bytes, life, expected, Epoch::default());
        let mut old = OldFrames::default();
        while let Some(batch) = reader.next_batch() {
            let frames = batch.frames().filter(|frame| frame.lsn <= last);
            old.frames.extend(frames.map(|frame| (frame.lsn, frame.payload.to_vec())));
        }
        if reader.offset() > 0 {
            let offset = offset + reader.offset() as u64;
            let segment = self.segments.numbered(number).expect("invariant: it was found above");
            let next = self.compaction_piece(segment, offset, reader.expected());
            self.house.compacting.current =
                Some(Compaction { fits_whole: compaction.fits_whole, ..next });
            return Ok(old);
        }
        match Mark::decode(bytes, life, usize::MAX) {
            Some(mark) if mark.batch_bytes as usize > bytes.len() => {
                let bytes = mark.batch_bytes as usize;
                let whole = Compaction { read_bytes: bytes, copy_bytes: bytes, ..compaction };
                self.go_on_or_set_aside(whole, live);
            }
            _ => self.end_compaction(number, offset)?,
        }
        Ok(old)
    }

    /// True if the live rest of that segment is being copied forward.
    pub(crate) fn is_compacting(&self, number: SegmentNumber) -> bool {
        self.house.compacting.current.as_ref().is_some_and(|compaction| compaction.number == number)
    }

    /// On a full device a compaction under way goes before everything else.
    pub(crate) fn must_compact_first(&self) -> bool {
        self.house.compacting.current.is_some() && self.segments.spares() < RESERVED_SPARES
    }

    pub(crate) fn holds_too_much(&self) -> bool {
        self.segments.held_bytes() - self.segments.set_aside_bytes() > self.allowed_bytes()
    }

    /// Pieces go one after the other with the batches of others, so that none becomes much larger
    /// by them; unless copying falls behind the incoming frames.
    fn waits_for_restated(&self) -> bool {
        let falls_behind = self.held_alive_bytes()
            > self.allowed_bytes() + self.options.segment_bytes * PACED_SEGMENTS;
        let is_paced = !falls_behind && !self.house.device_is_full();
        is_paced && self.durable().written < self.house.compacting.restated
    }

    fn next_compaction(&self) -> Option<Compaction> {
        let pressed = self.house.device_is_full() && !self.segments.has_dead();
        // Segments already dead go with the next snapshot, which takes no copying.
        if self.held_alive_bytes() <= self.allowed_bytes() && !pressed {
            return None;
        }
        let full = self.house.device_is_full();
        let worth = |segment: &Segment<F>| {
            self.copy_gains(segment) && (!full || self.fits_whole(segment.live))
        };
        let victim = self.segments.nearly_dead(self.durable().written, worth)?;
        let offset = BLOCK_BYTES as u64;
        Some(Compaction { fits_whole: full, ..self.compaction_piece(victim, offset, None) })
    }

    /// Returns true if the copy takes at most three quarters of the room that comes free, each
    /// piece padded. So copying ends, and the dead bytes bound its cost. Only segments of a few
    /// blocks can fail it: in others padding takes little.
    fn copy_gains(&self, segment: &Segment<F>) -> bool {
        let block = BLOCK_BYTES as u64;
        let live = segment.live_frame_bytes();
        let pieces = live / self.piece_bytes() as u64 + 1;
        (live + pieces * block) * 4 <= segment.initialised.saturating_sub(block) * 3
    }

    /// Bytes that are copied at once, or nearly.
    fn piece_bytes(&self) -> usize {
        let part = usize::try_from(self.options.segment_bytes / 4).unwrap_or(usize::MAX);
        part.clamp(BLOCK_BYTES, PIECE_BYTES_MAX)
    }

    /// The piece from there on. The less of the rest still matters, the more is read for it; else
    /// most of the appended bytes would be padding.
    fn compaction_piece(
        &self,
        segment: &Segment<F>,
        offset: u64,
        expected: Option<Lsn>,
    ) -> Compaction {
        let rest = segment.end.saturating_sub(offset);
        let times = rest / segment.live_frame_bytes().max(1);
        let times = usize::try_from(times).map_or(SPARSE_TIMES_MAX, |times| times);
        let copy_bytes = self.piece_bytes();
        Compaction {
            number: segment.life.number,
            offset,
            expected,
            read_bytes: copy_bytes * times.clamp(1, SPARSE_TIMES_MAX),
            copy_bytes,
            copied_bytes: 0,
            needed_bytes: 0,
            fits_whole: false,
        }
    }

    /// Returns true if the live part of its next piece can be appended anew.
    fn fits_compaction(&self, compaction: &Compaction, live: LiveRecords) -> bool {
        self.fits_restated(self.restated_piece_bytes(compaction, live))
    }

    fn fits_restated(&self, bytes: usize) -> bool {
        // On a full device there was room for the whole when it began, and nothing else takes it.
        let reserve = if self.house.device_is_full() { 0 } else { self.spares_set_aside() };
        self.fits(bytes, reserve)
    }

    /// On a full device a compaction uses one of the reserved spares, and begins only if it can
    /// end: then it gives back more than it took. Half done it would only pin the spare.
    ///
    /// If settling has begun the other spare, only one is left. Then the rest of the begun one
    /// takes the compaction, and the largest frame that settles besides. Otherwise segments of
    /// which little lives would stay until all of it is gone, and no message would be stored
    /// meanwhile.
    fn fits_whole(&self, live: LiveRecords) -> bool {
        let bytes = self.restated_bytes(live);
        let is_begun = self.segments.spares() < RESERVED_SPARES;
        self.fits(if is_begun { bytes + self.settle_payload_bytes_max() } else { bytes }, 1)
    }

    /// Segments that are set aside do not count: none of them can be copied at any size.
    fn held_alive_bytes(&self) -> u64 {
        let others = self.segments.dead_bytes() + self.segments.set_aside_bytes();
        assert!(self.segments.held_bytes() >= others, "a segment is dead or set aside, not both");
        self.segments.held_bytes() - others
    }

    /// Bytes that segments with frames may take before compaction begins.
    fn allowed_bytes(&self) -> u64 {
        self.segments.live_frame_bytes() * 2 + self.options.segment_bytes * SLACK_SEGMENTS
    }

    /// Bytes that the next piece may take: most frames hardly become larger than they were, and
    /// batches may divide otherwise. [`Journal::takes_restated`] notes the need of a frame that
    /// does.
    pub(crate) fn restated_piece_bytes(&self, piece: &Compaction, live: LiveRecords) -> usize {
        let copied = piece.copy_bytes + piece.copy_bytes / 4 + 2 * BLOCK_BYTES;
        self.restated_bytes(live).min(copied).max(piece.needed_bytes)
    }

    /// The most bytes of live records when they are appended anew, each as a frame of its own at
    /// worst. Two batches in a row have more than one may have, or they were one; each has a mark
    /// and is padded.
    fn restated_bytes(&self, live: LiveRecords) -> usize {
        let each = (FRAME_HEADER_BYTES + limits::UNRECORDED_BYTES_MAX) as u64;
        let bytes = usize::try_from(live.bytes + live.count * each).unwrap_or(usize::MAX / 4);
        let batches = bytes / self.options.batch_bytes * 2 + 2;
        bytes + batches * (MARK_BYTES + BLOCK_BYTES)
    }

    /// A batch may be larger than a whole segment of today: one of a time when messages could be
    /// larger. Then its segment stays until its live messages are settled, and others take its
    /// turn.
    fn go_on_or_set_aside(&mut self, compaction: Compaction, live: LiveRecords) {
        let bytes = self.restated_piece_bytes(&compaction, live);
        if padded_batch_bytes(bytes) <= self.options.room_bytes_max() {
            self.house.compacting.current = Some(compaction);
            return;
        }
        self.house.compacting.current = None;
        self.segments.set_aside(compaction.number);
    }

    /// Nothing of the segment matters any more; it may be gone before all of it was read.
    fn compacted(&mut self) {
        self.house.compacting.current = None;
        self.counters.compactions += 1;
    }

    /// The whole segment was read: nothing in it may matter any more.
    fn end_compaction(&mut self, number: SegmentNumber, offset: u64) -> Result<(), JournalFailed> {
        self.compacted();
        let left = self.segments.numbered(number).map_or(0, |segment| segment.live.bytes);
        if left == 0 {
            return Ok(());
        }
        let cause = format!("{left} live bytes are not in it any more; reading ended at {offset}");
        let operation = "compact";
        let file = number.file_name();
        Err(self.fail(DiskError { kind: DiskErrorKind::Failed, operation, file, cause }))
    }
}

/// Segments that may hold frames beyond twice the live bytes: the active one, and one more.
/// Messages consumed in their order of arrival soon leave the last one empty by themselves.
const SLACK_SEGMENTS: u64 = 2;

/// Bytes copied at once, unless one batch is larger: frames that come meanwhile wait for its write.
const PIECE_BYTES_MAX: usize = 32 * 1024;
const _: () = assert!(PIECE_BYTES_MAX >= BLOCK_BYTES, "the least piece is a block");

/// The bytes read at once are at most so many times those to copy, if less of them matters.
const SPARSE_TIMES_MAX: usize = 4;

/// Segments by which copying may fall behind before it stops waiting for others.
const PACED_SEGMENTS: u64 = 1;

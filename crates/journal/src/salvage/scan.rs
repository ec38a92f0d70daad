//! All frames of one segment that can still be read, with any bytes between them.

use std::ops::Range;

use model::{Lsn, Nanos};

use super::sums::Sums;
use super::window::Window;
use crate::format::{Epoch, Frame, KIND_CHANGES, Life, Mark, SegmentHeader, SegmentNumber};
use crate::format::{u32_at, u64_at};
use crate::{BLOCK_BYTES, Disk, FRAME_HEADER_BYTES};

/// Frames that lie one behind the other, with positions that ascend by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its first frame to be taken.
    pub(super) first: Lsn,
    /// Its last frame to be taken.
    pub(super) last: Lsn,
    pub(super) epoch: Epoch,
    /// Index of its file.
    pub(super) file: usize,
    /// The offset of its first frame, taken or not.
    pub(super) offset: u64,
}

/// The findings of a scan of segments.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) runs: Vec<Run>,
    /// Marks say that every frame up to here was on the device.
    pub(super) synced: Lsn,
    /// The latest time of any mark.
    pub(super) latest: Nanos,
    /// The largest payload.
    pub(super) payload_bytes_max: usize,
}

/// A scan of one file.
pub(super) struct Scan<'w, 'd, D: Disk> {
    pub(super) window: &'w mut Window<'d, D>,
    pub(super) life: Life,
    pub(super) file: usize,
    pub(super) found: &'w mut Findings,
}

impl<D: Disk> Scan<'_, '_, D> {
    /// Looks through the whole file.
    pub(super) fn run(&mut self) {
        let end = self.window.bytes();
        let (mut at, mut lost_from) = (BLOCK_BYTES as u64, None);
        while at < end {
            let Some(mark) = self.mark_at(at) else {
                lost_from.get_or_insert(at);
                at += BLOCK_BYTES as u64;
                continue;
            };
            if let Some(from) = lost_from.take() {
                self.search(from..at);
            }
            self.found.synced = self.found.synced.max(mark.synced);
            self.found.latest = self.found.latest.max(mark.time);
            let next = at + u64::from(mark.batch_bytes);
            self.take_batch(at, next.min(end), mark);
            at = next;
        }
        if let Some(from) = lost_from {
            self.search(from..end);
        }
    }

    /// The mark of a batch that begins there, even if the file ends within the batch.
    fn mark_at(&mut self, at: u64) -> Option<Mark> {
        let life = self.life;
        Mark::decode(self.window.part(at, life.mark_bytes()), life, usize::MAX)
    }

    /// Takes the batch of a mark: all of it, or its remains.
    fn take_batch(&mut self, at: u64, end: u64, mark: Mark) {
        let from = at + self.life.mark_bytes() as u64;
        let Some((run, _)) = self.follow(from, end) else {
            return self.search(from..end);
        };
        let last = Lsn((mark.lsn.0 + u64::from(mark.frames)).saturating_sub(1));
        let is_whole = (run.first, run.last, run.epoch) == (mark.lsn, last, mark.epoch);
        if is_whole {
            self.found.runs.push(run);
        } else {
            self.search(from..end);
        }
    }

    /// Takes every frame that begins in a range of the file and ends in it.
    fn search(&mut self, range: Range<u64>) {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let bytes = self.window.part(range.start, bytes).to_vec();
        let sums = Sums::of(&bytes);
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + FRAME_HEADER_BYTES) {
            let end = claimed_bytes(header).and_then(|claimed| at.checked_add(claimed));
            let is_one = end.is_some_and(|end| {
                let sum = sums.append(self.life.seed(), at + CHECKED_AT..end);
                sum.is_some() && sum == u32_at(header, CRC_AT)
            });
            let found = is_one.then(|| self.follow(range.start + at as u64, range.end));
            match found.flatten() {
                Some((run, end)) => {
                    self.found.runs.push(run);
                    at = usize::try_from(end - range.start).unwrap_or(usize::MAX);
                }
                None => at += 1,
            }
        }
    }

    /// The frames from there on; and where they end.
    fn follow(&mut self, from: u64, end: u64) -> Option<(Run, u64)> {
        let (mut at, mut run) = (from, None::<Run>);
        while let Some((lsn, epoch, bytes)) = self.frame_at(at, end) {
            match &mut run {
                Some(run) if run.last.next() != lsn || run.epoch != epoch => break,
                Some(run) => run.last = lsn,
                None => {
                    let (file, offset) = (self.file, from);
                    run = Some(Run { first: lsn, last: lsn, epoch, file, offset });
                }
            }
            let payload = bytes - FRAME_HEADER_BYTES;
            self.found.payload_bytes_max = self.found.payload_bytes_max.max(payload);
            at += bytes as u64;
        }
        run.map(|run| (run, at))
    }

    /// Position, epoch and bytes of the frame there.
    fn frame_at(&mut self, at: u64, end: u64) -> Option<(Lsn, Epoch, usize)> {
        let life = self.life;
        let claimed = claimed_bytes(self.window.part(at, FRAME_HEADER_BYTES))?;
        let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let bytes = self.window.part(at, Some(claimed).filter(|bytes| *bytes <= left)?);
        let frame = Frame::decode(bytes, life)?;
        // Another position has to come after it.
        (frame.lsn > Lsn::ZERO && frame.lsn < LSN_END).then_some((
            frame.lsn,
            frame.epoch,
            frame.bytes(),
        ))
    }
}

/// Bytes of a frame, if that looks like the header of one.
pub(super) fn claimed_bytes(header: &[u8]) -> Option<usize> {
    let [kind, zeros @ ..] = header.get(KIND_AT..FRAME_HEADER_BYTES)? else { return None };
    if *kind != KIND_CHANGES || zeros != [0; 3] {
        return None;
    }
    usize::try_from(u32_at(header, 0)?).ok()?.checked_add(FRAME_HEADER_BYTES)
}

/// The life of a segment's file: as its header says, or, if that is damaged, as the first mark
/// says that can be read.
pub(super) fn life_of<D: Disk>(
    window: &mut Window<'_, D>,
) -> Option<(Life, Option<SegmentHeader>)> {
    if let Some(header) = SegmentHeader::decode(window.part(0, BLOCK_BYTES)) {
        return Some((Life::of(header.number, &header), Some(header)));
    }
    let mut at = BLOCK_BYTES as u64;
    while at < window.bytes() {
        let block = window.part(at, BLOCK_BYTES);
        if let Some(number) = u64_at(block, FRAME_HEADER_BYTES) {
            let life = Life::of_first_mark(SegmentNumber(number), block);
            if Mark::decode(block, life, usize::MAX).is_some() {
                return Some((life, None));
            }
        }
        at += BLOCK_BYTES as u64;
    }
    None
}

/// Offsets in a frame: of its checksum, of the bytes that it covers, and of its kind.
const CRC_AT: usize = 4;
const CHECKED_AT: usize = 8;
const KIND_AT: usize = 20;

/// A kind and three zeros end a header.
const _: () = assert!(KIND_AT + 1 + 3 == FRAME_HEADER_BYTES);

/// Behind it no log comes.
pub(super) const LSN_END: Lsn = Lsn(u64::MAX / 2);

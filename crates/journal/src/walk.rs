//! The walk along the log: which frames there are, and whether the end of them is one.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use model::Lsn;

use crate::control::CONTROL_NAME;
use crate::format::{Epoch, Frame, Life, Mark};
use crate::frame_index::FrameIndex;
use crate::reader::{Claims, ReadBatch, SegmentReader};
use crate::recovery::{Recover, Recovered};
use crate::survey::SegmentFile;
use crate::{BLOCK_BYTES, Cut, Disk, OpenError, Piece};

/// The walk along the log.
pub(crate) struct Walk<'a, D: Disk> {
    pub(crate) disk: &'a D,
    pub(crate) files: &'a [SegmentFile<D::File>],
    /// The snapshot holds the effect of every frame up to here …
    pub(crate) begin: Lsn,
    /// … and of none after this one.
    pub(crate) end: Lsn,
    /// The control file says that every frame up to here was on the device.
    pub(crate) synced: Lsn,
    /// The batches that were replayed and that no later mark says were synced.
    pub(crate) unsure: VecDeque<Extent>,
    /// The places of the frames of each of `files`, as far as it was read.
    pub(crate) indexes: Vec<FrameIndex>,
    pub(crate) recovered: Recovered,
}

/// How far the log was followed.
struct End {
    tail: Option<Tail>,
    /// The first frame that was not found.
    next: Lsn,
    /// The epoch of the last frame found.
    epoch: Epoch,
    /// The claims of the rest of the disk.
    claims: Claims,
}

/// The end of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) tail: Option<Tail>,
    /// The frame that comes next.
    pub(crate) next: Lsn,
    /// The highest epoch of any batch that was read.
    pub(crate) epoch: Epoch,
}

impl End {
    /// True if the last batch that was replayed lies in that segment.
    fn is_in(&self, index: usize) -> bool {
        self.tail.is_some_and(|tail| tail.index == index)
    }
}

/// Replayed batches and where they lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Index in `files`.
    pub(crate) index: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) last: Lsn,
}

impl Extent {
    /// True if `next` lies right behind it, and both can be written with one call.
    fn joins(&self, next: &Self) -> bool {
        let adjacent = self.index == next.index && self.offset + self.bytes as u64 == next.offset;
        adjacent && self.bytes + next.bytes <= EXTENT_BYTES_MAX
    }
}

impl<D: Disk> Walk<'_, D> {
    /// The segment in which the first frame after the snapshot lies, or would.
    pub(crate) fn start(&self) -> Result<usize, OpenError> {
        let wanted = self.begin.next();
        let holds = |file: &SegmentFile<_>| file.first.is_some_and(|mark| mark.lsn <= wanted);
        if let Some(index) = self.files.iter().rposition(holds) {
            return Ok(index);
        }
        // If an older segment is there and only its frames are not, they may never have been
        // durable: the claims of later marks will tell.
        let mut begun = self.files.iter().filter(|file| file.is_begun());
        let frames_lost = begun.next().is_some_and(|file| file.first.is_none());
        match self.files.iter().find_map(|file| file.first.map(|mark| (file.life.number, mark.lsn)))
        {
            Some((number, lsn)) if !frames_lost => Err(OpenError::Missing {
                lsn: wanted,
                cause: format!("the oldest segment, {}, begins with {lsn}", number.file_name()),
            }),
            _ => Ok(self.files.len()),
        }
    }

    /// Replays from there to the end of the log. The rest of the disk is read in the same go, and
    /// says whether that is the end.
    pub(crate) fn replay(
        &mut self,
        start: usize,
        recover: &mut impl Recover,
    ) -> Result<Ended, OpenError> {
        let first = self.files.get(start).and_then(|file| file.first);
        let next = first.map_or(self.begin.next(), |mark| mark.lsn);
        let claims = Claims { synced: self.end.max(self.synced), epoch: Epoch::default() };
        let mut end = End { tail: None, next, epoch: Epoch::default(), claims };
        let mut goes_on = Some(start).filter(|start| *start < self.files.len());
        let from = goes_on.unwrap_or(0);
        self.read_segments(from.., |walk, index, piece| {
            // A segment that was whole to its end.
            if let Some(read) = goes_on.filter(|read| *read < index && end.is_in(*read)) {
                goes_on = walk.continuation(read, end.next, end.epoch);
            }
            let behind = match goes_on {
                Some(later) if index < later => return Ok(ControlFlow::Continue(())),
                Some(_) => walk.replay_piece(index, &piece, &mut end, recover)?,
                None => 0,
            };
            if goes_on.is_some() && behind < piece.bytes.len() {
                goes_on = walk.continuation(index, end.next, end.epoch);
            }
            if goes_on.is_none() {
                end.claims = end.claims.max(walk.claims(index, &piece, behind));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.judge(&end)?;
        Ok(Ended { tail: end.tail, next: end.next, epoch: end.epoch.max(end.claims.epoch) })
    }

    /// Replays the batches of a piece of a segment; tells where in it the first begins that is not
    /// whole.
    fn replay_piece(
        &mut self,
        index: usize,
        piece: &Piece<'_>,
        end: &mut End,
        recover: &mut impl Recover,
    ) -> Result<usize, OpenError> {
        let life = self.file(index).life;
        let mut reader = SegmentReader::new(piece.bytes, life, Some(end.next), end.epoch)
            .knowing_whole(piece.whole);
        loop {
            let offset = piece.offset + reader.offset() as u64;
            let Some(batch) = reader.next_batch() else { break };
            self.recovered.latest = self.recovered.latest.max(batch.time());
            let extent = Extent { index, offset, bytes: batch.bytes(), last: batch.last() };
            self.note_unsure(extent, batch.mark.synced.max(self.end));
            let frames = noted_frames(index_of(&mut self.indexes, index), life, offset, &batch);
            for frame in frames.filter(|frame| frame.lsn > self.begin) {
                self.recovered.frames += 1;
                recover
                    .replay(frame.lsn, frame.payload, frame.lsn <= self.end)
                    .map_err(|cause| corrupt(life, offset, cause))?;
            }
        }
        end.next = reader.expected().unwrap_or(end.next);
        end.epoch = reader.epoch();
        end.tail = Some(Tail { index, offset: piece.offset + reader.offset() as u64 });
        Ok(reader.offset())
    }

    /// A batch was replayed; its mark, or the snapshot, says that all up to `synced` was synced.
    fn note_unsure(&mut self, extent: Extent, synced: Lsn) {
        while self.unsure.pop_front_if(|earlier| earlier.last <= synced).is_some() {}
        match self.unsure.back_mut() {
            Some(before) if before.joins(&extent) => {
                before.bytes += extent.bytes;
                before.last = extent.last;
            }
            _ => self.unsure.push_back(extent),
        }
    }

    /// The segment after `index` that begins with frame `next`.
    fn continuation(&self, index: usize, next: Lsn, epoch: Epoch) -> Option<usize> {
        let continues = |mark: Mark| mark.lsn == next && mark.epoch >= epoch;
        (index + 1..self.files.len()).find(|later| self.file(*later).first.is_some_and(continues))
    }

    /// The claims of the marks of a piece of a segment, from so many bytes on.
    fn claims(&self, index: usize, piece: &Piece<'_>, from: usize) -> Claims {
        let file = self.file(index);
        let left = file.reach().saturating_sub(piece.offset + from as u64);
        let behind = piece.bytes.get(from..).unwrap_or_default();
        SegmentReader::new(behind, file.life, None, Epoch::default()).claims(left)
    }

    /// The log may end there unless something says that the next frame was durable.
    fn judge(&self, end: &End) -> Result<(), OpenError> {
        let (claimed, lsn) = (end.claims.synced, end.next);
        if claimed < lsn {
            return Ok(());
        }
        let by = match claimed {
            _ if claimed == self.end => "the snapshot",
            _ if claimed == self.synced => CONTROL_NAME,
            _ => "a later batch",
        };
        let cause = format!("frame {lsn} should be here; {by} says that {claimed} was synced");
        match end.tail {
            Some(tail) => Err(corrupt(self.file(tail.index).life, tail.offset, cause)),
            None => Err(OpenError::Missing { lsn, cause }),
        }
    }

    /// Reads the records that the snapshot left in older frames.
    pub(crate) fn restore(
        &mut self,
        tail: Option<Tail>,
        recover: &mut impl Recover,
    ) -> Result<(), OpenError> {
        if self.begin == Lsn::ZERO {
            return Ok(());
        }
        let mut wanted = recover.wanted();
        wanted.retain(|lsn| *lsn <= self.begin);
        wanted.sort_unstable();
        wanted.dedup();
        let in_log = tail.map_or(0, |tail| tail.index + 1);
        let (holders, before) = self.where_wanted(in_log, &wanted);
        if let Some(lsn) = before.last() {
            return Err(self.lost(0..in_log, *lsn));
        }
        holders
            .into_iter()
            .try_for_each(|(index, here)| self.restore_segment(index..in_log, here, recover))
    }

    /// The segments in which the wanted frames lie, and which of them lie there; and those that are
    /// before all of them.
    fn where_wanted<'w>(&self, in_log: usize, wanted: &'w [Lsn]) -> Wanted<'w> {
        let mut holders = Vec::new();
        let mut rest = wanted;
        for index in (0..in_log).rev() {
            let Some(mark) = self.file(index).first else { continue };
            let (before, here) = rest.split_at(rest.partition_point(|lsn| *lsn < mark.lsn));
            if !here.is_empty() {
                holders.push((index, here));
            }
            rest = before;
        }
        (holders, rest)
    }

    /// Restores the wanted frames of the first of these files, which is read as far as they lie.
    fn restore_segment(
        &mut self,
        files: Range<usize>,
        wanted: &[Lsn],
        recover: &mut impl Recover,
    ) -> Result<(), OpenError> {
        let index = files.start;
        let life = self.file(index).life;
        let mut wanted = wanted.iter().peekable();
        let (mut offset, mut expected, mut epoch) = (BLOCK_BYTES as u64, None, Epoch::default());
        self.read_segments([index], |walk, _, piece| {
            let mut reader =
                SegmentReader::new(piece.bytes, life, expected, epoch).knowing_whole(piece.whole);
            while wanted.peek().is_some() {
                offset = piece.offset + reader.offset() as u64;
                let Some(batch) = reader.next_batch() else { break };
                let found = index_of(&mut walk.indexes, index);
                for frame in noted_frames(found, life, offset, &batch) {
                    if wanted.next_if(|lsn| **lsn == frame.lsn).is_some() {
                        recover
                            .restore(frame.lsn, frame.payload)
                            .map_err(|cause| corrupt(life, offset, cause))?;
                    }
                }
            }
            (expected, epoch) = (reader.expected(), reader.epoch());
            let goes_on = wanted.peek().is_some() && reader.offset() == piece.bytes.len();
            Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        let Some(lsn) = wanted.next() else { return Ok(()) };
        // The first position of a segment with a rotten first mark is unknown.
        let next = index + 1..files.end.min(index + 2);
        if next.clone().any(|next| self.file(next).first.is_none()) {
            return Err(self.lost(next, *lsn));
        }
        Err(corrupt(life, offset, format!("frame {lsn} should be here or behind")))
    }

    /// A frame is wanted that no first mark leads to. It was in one of these files with a rotten
    /// first mark, or in one that is gone.
    fn lost(&self, mut files: Range<usize>, lsn: Lsn) -> OpenError {
        match files.find(|index| self.file(*index).first.is_none()) {
            Some(index) => {
                let cause = format!("frame {lsn} should be here, behind a mark that can be read");
                corrupt(self.file(index).life, BLOCK_BYTES as u64, cause)
            }
            None => OpenError::Missing { lsn, cause: "its segment is gone".into() },
        }
    }

    /// Reads the batches of segments one after the other until `take` breaks off; that is told of
    /// which segment a piece is.
    fn read_segments(
        &mut self,
        indexes: impl IntoIterator<Item = usize>,
        mut take: impl FnMut(&mut Self, usize, Piece<'_>) -> Result<ControlFlow<()>, OpenError>,
    ) -> Result<(), OpenError> {
        let indexes = indexes.into_iter().take_while(|index| *index < self.files.len());
        let indexes: Vec<_> = indexes.collect();
        let found = || indexes.iter().map(|index| self.file(*index));
        let parts: Vec<_> = found().map(SegmentFile::batches).collect();
        let lives: Vec<_> = found().map(|found| (found.life, found.reach())).collect();
        let check = |place: usize, offset: u64, bytes: &[u8]| {
            let cut = |(life, reach): &(Life, u64)| {
                SegmentReader::cut(bytes, *life, reach.saturating_sub(offset))
            };
            lives.get(place).map_or(Cut::default(), cut)
        };
        let mut outcome = Ok(());
        self.disk.read_pieces(&parts, &check, &mut |piece| {
            self.recovered.bytes += piece.bytes.len() as u64;
            let Some(index) = indexes.get(piece.part) else { return ControlFlow::Break(()) };
            take(self, *index, piece).unwrap_or_else(|error| {
                outcome = Err(error);
                ControlFlow::Break(())
            })
        })?;
        outcome
    }

    fn file(&self, index: usize) -> &SegmentFile<D::File> {
        self.files.get(index).expect("invariant: indexes come from the same list")
    }
}

/// Segments and the frames that are wanted of each; and those that are in none of them.
type Wanted<'w> = (Vec<(usize, &'w [Lsn])>, &'w [Lsn]);

/// The place at which the log continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Index in `files`.
    pub(crate) index: usize,
    pub(crate) offset: u64,
}

fn index_of(indexes: &mut [FrameIndex], index: usize) -> &mut FrameIndex {
    indexes.get_mut(index).expect("invariant: there is an index for each file")
}

/// The frames of a batch that is part of the log, and begins there in a segment of that life. Notes
/// the place of each as it is taken.
fn noted_frames<'a>(
    found: &mut FrameIndex,
    life: Life,
    offset: u64,
    batch: &ReadBatch<'a>,
) -> impl Iterator<Item = Frame<'a>> {
    let mut at = offset + life.mark_bytes() as u64;
    batch.frames().inspect(move |frame| {
        found.note(frame.lsn, at);
        at += frame.bytes() as u64;
    })
}

fn corrupt(life: Life, offset: u64, cause: String) -> OpenError {
    OpenError::Corrupt { file: life.number.file_name(), offset, cause }
}

/// Bytes that are written again with one call.
const EXTENT_BYTES_MAX: usize = 1024 * 1024;
const _: () = assert!(EXTENT_BYTES_MAX.is_multiple_of(BLOCK_BYTES), "batches are whole blocks");

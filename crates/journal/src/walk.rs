//! The walk along the log: which frames there are, and whether the end of them is one.

use std::collections::VecDeque;

use model::Lsn;

use crate::format::{Epoch, Life, Mark};
use crate::reader::SegmentReader;
use crate::recovery::{Recover, Recovered};
use crate::{BLOCK_BYTES, Disk, OpenError};

/// The walk along the log.
pub(crate) struct Walk<'a, D: Disk> {
    pub(crate) disk: &'a D,
    pub(crate) files: &'a [SegmentFile<D::File>],
    /// The snapshot holds the effect of every frame up to here …
    pub(crate) begin: Lsn,
    /// … and of none after this one.
    pub(crate) end: Lsn,
    /// One segment's bytes.
    pub(crate) buffer: Vec<u8>,
    /// The batches that were replayed and that no later mark says were synced.
    pub(crate) unsure: VecDeque<Extent>,
    pub(crate) recovered: Recovered,
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
    /// Whether `next` lies right behind it, and both can be written with one call.
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
        // Where an older segment is there and only its frames are not, they may never have been
        // durable: what later marks claim will tell.
        let frames_lost = self.files.first().is_some_and(|file| file.first.is_none());
        match self.files.iter().find_map(|file| file.first.map(|mark| (file.life.number, mark.lsn)))
        {
            Some((number, lsn)) if !frames_lost => Err(OpenError::Missing {
                lsn: wanted,
                cause: format!("the oldest segment, {}, begins with {lsn}", number.file_name()),
            }),
            _ => Ok(self.files.len()),
        }
    }

    /// Replays from there to the end of the log, and tells where it is and which frame is next.
    pub(crate) fn replay(
        &mut self,
        start: usize,
        recover: &mut impl Recover,
    ) -> Result<(Option<Tail>, Lsn), OpenError> {
        let mut index = start;
        let mut tail = None;
        let first = self.files.get(start).and_then(|file| file.first);
        let mut next = first.map_or(self.begin.next(), |mark| mark.lsn);
        let mut epoch = Epoch::default();
        while index < self.files.len() {
            let offset = self.replay_segment(index, &mut next, &mut epoch, recover)?;
            tail = Some(Tail { index, offset });
            match self.continuation(index, next, epoch) {
                Some(later) => index = later,
                None => break,
            }
        }
        self.judge_end(tail, next)?;
        Ok((tail, next))
    }

    /// Replays the batches of one segment; tells where the first that is not whole begins.
    fn replay_segment(
        &mut self,
        index: usize,
        next: &mut Lsn,
        epoch: &mut Epoch,
        recover: &mut impl Recover,
    ) -> Result<u64, OpenError> {
        let bytes = self.read_segment(index)?;
        let life = self.file(index).life;
        let mut reader = SegmentReader::new(&bytes, life, BLOCK_BYTES, Some(*next), *epoch);
        loop {
            let offset = reader.offset() as u64;
            let Some(batch) = reader.next_batch() else { break };
            self.recovered.latest = self.recovered.latest.max(batch.time());
            let extent = Extent { index, offset, bytes: batch.bytes(), last: batch.last() };
            self.note_unsure(extent, batch.mark.synced.max(self.end));
            for frame in batch.frames().filter(|frame| frame.lsn > self.begin) {
                self.recovered.frames += 1;
                recover
                    .replay(frame.lsn, frame.payload, frame.lsn <= self.end)
                    .map_err(|cause| corrupt(life, offset, cause))?;
            }
        }
        *next = reader.expected().unwrap_or(*next);
        *epoch = reader.epoch();
        let offset = reader.offset() as u64;
        self.buffer = bytes;
        Ok(offset)
    }

    /// A batch was replayed whose mark, or the snapshot, says that all up to `synced` was synced.
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

    /// The log may end before `next` unless something says that `next` was durable.
    fn judge_end(&mut self, tail: Option<Tail>, next: Lsn) -> Result<(), OpenError> {
        let mut claimed = self.end;
        let mut by = "the snapshot";
        let first = tail.map_or(0, |tail| tail.index);
        for index in first..self.files.len() {
            let from =
                tail.filter(|tail| tail.index == index).map_or(BLOCK_BYTES as u64, |t| t.offset);
            let bytes = self.read_segment(index)?;
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let life = self.file(index).life;
            let rest = SegmentReader::new(&bytes, life, from, None, Epoch::default());
            if rest.synced_claimed() > claimed {
                claimed = rest.synced_claimed();
                by = "a later batch";
            }
            self.buffer = bytes;
        }
        if claimed < next {
            return Ok(());
        }
        let cause = format!("frame {next} should be here; {by} says that {claimed} was synced");
        match tail {
            Some(tail) => Err(corrupt(self.file(tail.index).life, tail.offset, cause)),
            None => Err(OpenError::Missing { lsn: next, cause }),
        }
    }

    /// Reads what the snapshot left in older frames.
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
        let mut later = Lsn(u64::MAX);
        for index in (0..in_log).rev() {
            let Some(mark) = self.file(index).first else { continue };
            let from = wanted.partition_point(|lsn| *lsn < mark.lsn);
            let to = wanted.partition_point(|lsn| *lsn < later);
            let here = wanted.get(from..to).unwrap_or_default();
            if !here.is_empty() {
                self.restore_segment(index, here, recover)?;
            }
            later = mark.lsn;
        }
        Ok(())
    }

    fn restore_segment(
        &mut self,
        index: usize,
        wanted: &[Lsn],
        recover: &mut impl Recover,
    ) -> Result<(), OpenError> {
        let bytes = self.read_segment(index)?;
        let life = self.file(index).life;
        let mut reader = SegmentReader::new(&bytes, life, BLOCK_BYTES, None, Epoch::default());
        let mut wanted = wanted.iter().peekable();
        while let Some(batch) = reader.next_batch() {
            for frame in batch.frames() {
                if wanted.next_if(|lsn| **lsn == frame.lsn).is_some() {
                    recover
                        .restore(frame.lsn, frame.payload)
                        .map_err(|cause| corrupt(life, reader.offset() as u64, cause))?;
                }
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        let offset = reader.offset() as u64;
        self.buffer = bytes;
        match wanted.next() {
            None => Ok(()),
            Some(lsn) => {
                Err(corrupt(life, offset, format!("frame {lsn} should be here or behind")))
            }
        }
    }

    fn read_segment(&mut self, index: usize) -> Result<Vec<u8>, OpenError> {
        let mut bytes = std::mem::take(&mut self.buffer);
        let file = self.file(index);
        bytes.resize(usize::try_from(file.bytes).unwrap_or(usize::MAX), 0);
        let read = self.disk.read(&file.file, 0, &mut bytes)?;
        bytes.truncate(read);
        self.recovered.bytes += read as u64;
        Ok(bytes)
    }

    fn file(&self, index: usize) -> &SegmentFile<D::File> {
        self.files.get(index).expect("invariant: indexes come from the same list")
    }
}

/// A segment's file as found.
#[derive(Debug)]
pub(crate) struct SegmentFile<F> {
    pub(crate) life: Life,
    pub(crate) file: F,
    pub(crate) bytes: u64,
    /// The mark of its first batch, whole or not; `None`: it holds nothing of this life.
    pub(crate) first: Option<Mark>,
}

/// Where the log continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Index in `files`.
    pub(crate) index: usize,
    pub(crate) offset: u64,
}

fn corrupt(life: Life, offset: u64, cause: String) -> OpenError {
    OpenError::Corrupt { file: life.number.file_name(), offset, cause }
}

/// Bytes that are written again with one call.
const EXTENT_BYTES_MAX: usize = 1024 * 1024;

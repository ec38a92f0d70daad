//! The reason why the log keeps each file: the output of `dunlin journal explain`.

use model::{LiveRecords, Lsn};

use crate::format::SegmentNumber;
use crate::recovery::{Reading, read};
use crate::segments::{Segment, Spare};
use crate::{BLOCK_BYTES, Disk, Journal, OpenError, Recover};

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentUse {
    /// The number in its name.
    pub number: SegmentNumber,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of it that batches fill, the header among them.
    pub used_bytes: u64,
    /// Its first frame, if it holds any of the log.
    pub first: Option<Lsn>,
    /// Those of its records that still matter.
    pub live: LiveRecords,
    /// Why it is not used again.
    pub kept_for: KeptFor,
}

/// Why a segment is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptFor {
    /// The log goes on in it.
    Writing,
    /// Records in it still matter.
    LiveRecords,
    /// The same, and a batch in it is larger than one piece that can be appended today.
    LargeBatch,
    /// Its live rest is being copied forward.
    Compaction,
    /// Nothing in it matters, but no snapshot is past it that is followed by synced frames.
    Snapshot,
    /// A reader has pinned frames of it.
    Reader,
    /// It is ready to be written to.
    Spare,
    /// Its room, until it is needed: it may be used again.
    Nothing,
}

impl KeptFor {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::LiveRecords => "live",
            Self::LargeBatch => "large-batch",
            Self::Compaction => "compaction",
            Self::Snapshot => "snapshot",
            Self::Reader => "reader",
            Self::Spare => "spare",
            Self::Nothing => "nothing",
        }
    }
}

impl<F: Clone> Journal<F> {
    /// All files of the log, in the order of their numbers.
    #[must_use]
    pub fn explain(&self) -> Vec<SegmentUse> {
        let active = self.segments.active().life.number;
        let held = self.segments.iter().map(|segment| {
            let kept_for = if segment.life.number == active {
                KeptFor::Writing
            } else if self.is_compacting(segment.life.number) {
                KeptFor::Compaction
            } else {
                kept_for(segment)
            };
            SegmentUse { kept_for, ..use_of(segment) }
        });
        let spares = self.segments.iter_spares().map(|spare| idle(spare, KeptFor::Spare));
        let retired = self.segments.iter_retired().map(|spare| idle(spare, KeptFor::Nothing));
        let mut all: Vec<_> = held.chain(spares).chain(retired).collect();
        all.sort_unstable_by_key(|segment| segment.number);
        all
    }
}

/// The same of a log that no process uses, as a recovering process would find it; changes nothing.
///
/// # Errors
/// As [`Journal::open`].
pub fn explain<D: Disk>(
    disk: &D,
    recover: &mut impl Recover,
) -> Result<Vec<SegmentUse>, OpenError> {
    Ok(read(disk, recover)?.explain())
}

impl<F> Reading<F> {
    fn explain(&self) -> Vec<SegmentUse> {
        let mut all: Vec<SegmentUse> = Vec::new();
        for (index, found) in self.files.iter().enumerate() {
            let tail = self.tail.filter(|tail| index <= tail.index);
            let first = tail.and(found.first).map(|mark| mark.lsn);
            let is_last = tail.is_some_and(|tail| index == tail.index);
            let used_bytes = match (tail, first) {
                (Some(tail), Some(_)) if is_last => tail.offset,
                (_, Some(_)) => found.bytes,
                _ => BLOCK_BYTES as u64,
            };
            let live = self.live.get(index).copied().unwrap_or_default();
            let kept_for = match first {
                Some(_) if is_last => KeptFor::Writing,
                Some(_) if live != LiveRecords::NONE => KeptFor::LiveRecords,
                Some(_) => KeptFor::Snapshot,
                None => KeptFor::Nothing,
            };
            let (number, bytes) = (found.life.number, found.bytes);
            all.push(SegmentUse { number, bytes, used_bytes, first, live, kept_for });
        }
        all
    }
}

fn kept_for<F>(segment: &Segment<F>) -> KeptFor {
    match segment {
        _ if !segment.is_dead() && segment.too_large => KeptFor::LargeBatch,
        _ if !segment.is_dead() => KeptFor::LiveRecords,
        _ if segment.pins > 0 => KeptFor::Reader,
        _ => KeptFor::Snapshot,
    }
}

fn use_of<F>(segment: &Segment<F>) -> SegmentUse {
    SegmentUse {
        number: segment.life.number,
        bytes: segment.file_bytes,
        used_bytes: segment.end,
        first: Some(segment.first),
        live: segment.live,
        kept_for: KeptFor::Writing,
    }
}

fn idle<F>(spare: &Spare<F>, kept_for: KeptFor) -> SegmentUse {
    let (bytes, used_bytes) = (spare.file_bytes, BLOCK_BYTES as u64);
    let number = spare.life.number;
    SegmentUse { number, bytes, used_bytes, first: None, live: LiveRecords::NONE, kept_for }
}

//! Reading a piece of a segment that lies in memory, batch by batch.

use model::{Lsn, Nanos};

use crate::format::{Epoch, Frame, KIND_CHANGES, Life, Mark};
use crate::{BLOCK_BYTES, Cut};

/// Walks the batches of a piece of one segment. A batch is taken whole or not at all.
#[derive(Debug)]
pub(crate) struct SegmentReader<'a> {
    bytes: &'a [u8],
    life: Life,
    /// The offset in the piece at which the next batch is looked for.
    offset: usize,
    /// The first position of the next batch; `None` before the first of a segment if its
    /// predecessors are gone.
    expected: Option<Lsn>,
    epoch: Epoch,
    /// Batches that begin before this place are known to be whole.
    whole_until: usize,
}

/// The claims of marks beside the content of their batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Every frame up to here was synced.
    pub(crate) synced: Lsn,
    /// The last opening that wrote one.
    pub(crate) epoch: Epoch,
}

impl Claims {
    /// The larger claim of the two, for each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { synced: self.synced.max(other.synced), epoch: self.epoch.max(other.epoch) }
    }
}

/// A whole batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBatch<'a> {
    pub(crate) mark: Mark,
    life: Life,
    bytes: &'a [u8],
}

impl<'a> SegmentReader<'a> {
    /// Reads batches that begin with `expected` or, with `None`, any.
    pub(crate) fn new(bytes: &'a [u8], life: Life, expected: Option<Lsn>, epoch: Epoch) -> Self {
        Self { bytes, life, offset: 0, expected, epoch, whole_until: 0 }
    }

    /// How far a piece is whole batches, each for itself, in a segment of which so many bytes are
    /// left from the piece's first on.
    pub(crate) fn cut(bytes: &[u8], life: Life, segment_bytes_left: u64) -> Cut {
        let left = usize::try_from(segment_bytes_left).unwrap_or(usize::MAX);
        let mut whole = 0;
        loop {
            let rest = bytes.get(whole..).unwrap_or_default();
            let mark = Mark::decode(rest, life, left.saturating_sub(whole));
            let Some(mark) = mark else { return Cut { whole, lacks: None } };
            let batch_bytes = mark.batch_bytes as usize;
            let Some(batch) = rest.get(..batch_bytes) else {
                return Cut { whole, lacks: Some(batch_bytes) };
            };
            if !(ReadBatch { mark, life, bytes: batch }).is_whole() {
                return Cut { whole, lacks: None };
            }
            whole += batch_bytes;
        }
    }

    /// The first `whole_until` bytes of the piece were found to be whole batches: see
    /// [`SegmentReader::cut`]. A reader from its first byte on comes to the same batches and need
    /// not check each byte again.
    pub(crate) fn knowing_whole(self, whole_until: usize) -> Self {
        Self { whole_until, ..self }
    }

    /// The next whole batch that continues the log; `None` at the first that does not.
    pub(crate) fn next_batch(&mut self) -> Option<ReadBatch<'a>> {
        assert!(self.offset.is_multiple_of(BLOCK_BYTES), "batches are whole blocks");
        let left = self.bytes.get(self.offset..)?;
        let mark = Mark::decode(left, self.life, left.len())?;
        let continues = self.expected.is_none_or(|lsn| lsn == mark.lsn);
        if !continues || mark.epoch < self.epoch {
            return None;
        }
        let bytes = left.get(..mark.batch_bytes as usize)?;
        let batch = ReadBatch { mark, life: self.life, bytes };
        if self.offset >= self.whole_until && !batch.is_whole() {
            return None;
        }
        self.offset += batch.bytes.len();
        self.expected = Some(Lsn(mark.lsn.0 + u64::from(mark.frames)));
        self.epoch = mark.epoch;
        Some(batch)
    }

    /// The offset in the piece at which the next batch is looked for.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The epoch of the last batch read.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The first position that the next batch must have.
    pub(crate) fn expected(&self) -> Option<Lsn> {
        self.expected
    }

    /// The claims of the marks from here on, of whole batches or not, in a segment of which so many
    /// bytes are left from the piece's first on.
    pub(crate) fn claims(&self, segment_bytes_left: u64) -> Claims {
        let bytes_left = usize::try_from(segment_bytes_left).unwrap_or(usize::MAX);
        let mut claims = Claims::default();
        let mut offset = self.offset;
        while let Some(left) = self.bytes.get(offset..).filter(|left| !left.is_empty()) {
            let mark = Mark::decode(left, self.life, bytes_left.saturating_sub(offset));
            if let Some(mark) = mark {
                claims = claims.max(Claims { synced: mark.synced, epoch: mark.epoch });
            }
            offset += BLOCK_BYTES;
        }
        claims
    }
}

impl<'a> ReadBatch<'a> {
    /// Its frames in order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        self.walk(|bytes, _| Frame::decode_unchecked(bytes))
    }

    /// The last change frame in it, the one before the first when it has none.
    pub(crate) fn last(&self) -> Lsn {
        Lsn((self.mark.lsn.0 + u64::from(self.mark.frames)).saturating_sub(1))
    }

    /// Bytes that it takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// When it was written.
    pub(crate) fn time(&self) -> Nanos {
        self.mark.time
    }

    fn walk<Decode: Fn(&'a [u8], Life) -> Option<Frame<'a>>>(
        &self,
        decode: Decode,
    ) -> impl Iterator<Item = Frame<'a>> + use<'a, Decode> {
        let life = self.life;
        let mut rest = self.bytes.get(life.mark_bytes()..).unwrap_or_default();
        let mut left = self.mark.frames;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let frame = decode(rest, life)?;
            rest = rest.get(frame.bytes()..)?;
            Some(frame)
        })
    }

    fn is_whole(&self) -> bool {
        let mut expected = self.mark.lsn;
        for frame in self.walk(Frame::decode) {
            let fits = frame.kind == KIND_CHANGES && frame.epoch == self.mark.epoch;
            if !fits || frame.lsn != expected {
                return false;
            }
            expected = expected.next();
        }
        expected.0 == self.mark.lsn.0 + u64::from(self.mark.frames)
    }
}

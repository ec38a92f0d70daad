//! Reading a segment that lies in memory, batch by batch.

use model::{Lsn, Nanos};

use crate::BLOCK_BYTES;
use crate::format::{Epoch, Frame, KIND_CHANGES, Life, Mark};

/// Walks the batches of one segment's bytes. A batch is taken whole or not at all.
#[derive(Debug)]
pub(crate) struct SegmentReader<'a> {
    bytes: &'a [u8],
    life: Life,
    offset: usize,
    /// What the next batch must begin with; `None` before the first of a segment whose
    /// predecessors are gone.
    expected: Option<Lsn>,
    epoch: Epoch,
    /// What begins before this place is known to be whole.
    whole_until: usize,
}

/// A whole batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBatch<'a> {
    pub(crate) mark: Mark,
    life: Life,
    bytes: &'a [u8],
}

impl<'a> SegmentReader<'a> {
    /// Reads from `offset` on batches that begin with `expected` or, with `None`, any.
    pub(crate) fn new(
        bytes: &'a [u8],
        life: Life,
        offset: usize,
        expected: Option<Lsn>,
        epoch: Epoch,
    ) -> Self {
        Self { bytes, life, offset, expected, epoch, whole_until: 0 }
    }

    /// How many bytes of a segment, from its start, are its header and whole batches.
    pub(crate) fn whole_bytes(bytes: &[u8], life: Life) -> usize {
        let mut reader = SegmentReader::new(bytes, life, BLOCK_BYTES, None, Epoch::default());
        while reader.next_batch().is_some() {}
        reader.offset
    }

    /// So many bytes of the segment were found to be whole: see [`SegmentReader::whole_bytes`]. Who
    /// reads from the first batch on, as that did, comes to the same batches and need not look at
    /// each byte again.
    pub(crate) fn knowing_whole(self, whole_until: usize) -> Self {
        assert_eq!(self.offset, BLOCK_BYTES, "it was looked at from the first batch on");
        Self { whole_until, ..self }
    }

    /// The next whole batch that continues the log; `None` at the first that does not.
    pub(crate) fn next_batch(&mut self) -> Option<ReadBatch<'a>> {
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

    /// Where the next batch is looked for.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The epoch of the last batch read.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What the next batch must begin with.
    pub(crate) fn expected(&self) -> Option<Lsn> {
        self.expected
    }

    /// The highest synced position that any mark from here on claims, whole batch or not.
    pub(crate) fn synced_claimed(&self) -> Lsn {
        let mut claimed = Lsn::ZERO;
        let mut offset = self.offset;
        while let Some(left) = self.bytes.get(offset..).filter(|left| !left.is_empty()) {
            if let Some(mark) = Mark::decode(left, self.life, left.len()) {
                claimed = claimed.max(mark.synced);
            }
            offset += BLOCK_BYTES;
        }
        claimed
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

//! A batch under construction: everything that accumulated while earlier writes were in flight.

use model::{Durability, Lsn, Nanos};

use crate::BLOCK_BYTES;
use crate::buffer::AlignedBuffer;
use crate::format::{Epoch, Frame, KIND_CHANGES, Life, MARK_BYTES, Mark, seal};

/// Frames that are written with one call, and where.
#[derive(Debug)]
pub(crate) struct Batch<F> {
    buffer: AlignedBuffer,
    pub(crate) file: F,
    /// The life of its segment.
    pub(crate) life: Life,
    /// Its offset in the segment.
    pub(crate) offset: u64,
    pub(crate) first: Lsn,
    pub(crate) frames: u32,
    /// The durability that its most demanding frame asks for.
    pub(crate) level: Durability,
    /// Bytes of payload.
    pub(crate) payload_bytes: u64,
    /// When its first frame was appended.
    pub(crate) opened_at: Nanos,
}

impl<F> Batch<F> {
    /// An empty batch for frames from `first` on, in a buffer used before.
    pub(crate) fn new(
        mut buffer: AlignedBuffer,
        place: (F, Life, u64),
        first: Lsn,
        opened_at: Nanos,
    ) -> Self {
        let (file, life, offset) = place;
        assert!(life.takes_batches(), "segments of older versions are never written to");
        assert!(offset.is_multiple_of(BLOCK_BYTES as u64), "batches begin at blocks");
        assert!(offset >= BLOCK_BYTES as u64, "the first block is the header's");
        buffer.clear();
        buffer.extend(&[0; MARK_BYTES]);
        Self {
            buffer,
            file,
            life,
            offset,
            first,
            frames: 0,
            level: Durability::None,
            payload_bytes: 0,
            opened_at,
        }
    }

    /// The offset of the next frame in the segment.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    /// Appends the frame that follows.
    pub(crate) fn push(&mut self, epoch: Epoch, payload: &[u8], level: Durability) {
        let lsn = Lsn(self.first.0 + u64::from(self.frames));
        let frame = Frame { lsn, epoch, kind: KIND_CHANGES, payload };
        let start = self.buffer.len();
        self.buffer.extend(&frame.unsealed_header());
        self.buffer.extend(payload);
        // Both at once: a short frame is dear to begin with.
        seal(self.buffer.bytes_mut().get_mut(start..).unwrap_or_default(), self.life);
        self.frames += 1;
        self.level = self.level.max(level);
        self.payload_bytes += payload.len() as u64;
    }

    /// The last frame in it; the one before the first when it has none.
    pub(crate) fn last(&self) -> Lsn {
        Lsn(self.first.0 + u64::from(self.frames) - 1)
    }

    /// Bytes so far, without padding.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that it takes in the log.
    pub(crate) fn padded_bytes(&self) -> u64 {
        self.buffer.len().next_multiple_of(BLOCK_BYTES) as u64
    }

    /// Pads it and writes its mark: nothing can be appended any more.
    pub(crate) fn seal(&mut self, epoch: Epoch, synced: Lsn, time: Nanos) {
        assert!(self.level > Durability::None, "each frame asks for some durability");
        assert!(epoch >= self.life.epoch(), "a segment begins its life before its batches");
        self.buffer.pad_to_block();
        let batch_bytes = u32::try_from(self.buffer.len())
            .expect("invariant: a batch fits into a segment, which is smaller than 4 GiB");
        let mark = Mark { lsn: self.first, epoch, batch_bytes, frames: self.frames, synced, time };
        mark.encode(self.life, self.buffer.bytes_mut());
    }

    /// The sealed bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Gives the buffer back for the next batch.
    pub(crate) fn into_buffer(self) -> AlignedBuffer {
        self.buffer
    }
}

//! A growing byte buffer with a start that is aligned for direct I/O.

use crate::BLOCK_BYTES;

/// Bytes that begin at an address that is a multiple of [`BLOCK_BYTES`].
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    /// Has room for one block more than was asked for; never grows in place, since a move would
    /// lose the alignment.
    memory: Vec<u8>,
    /// The start of the bytes in it.
    start: usize,
}

impl AlignedBuffer {
    /// An empty buffer that holds `bytes` without growing.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self::aligned(Vec::with_capacity(bytes + BLOCK_BYTES), 0)
    }

    /// A buffer of `bytes` zeros.
    pub(crate) fn zeroed(bytes: usize) -> Self {
        Self::aligned(vec![0; bytes + BLOCK_BYTES], bytes)
    }

    fn aligned(mut memory: Vec<u8>, bytes: usize) -> Self {
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start < BLOCK_BYTES, "invariant: a byte pointer can be aligned to a block");
        memory.resize(start + bytes, 0);
        Self { memory, start }
    }

    /// Forgets the bytes behind the first so many.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        assert!(bytes <= self.len(), "only bytes that are there are forgotten");
        self.memory.truncate(self.start + bytes);
    }

    /// Forgets the bytes and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    /// How many bytes it holds.
    pub(crate) fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    /// How many bytes it can hold without growing.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.capacity() - self.start
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.make_room(self.len() + bytes.len());
        self.memory.extend_from_slice(bytes);
    }

    /// Appends zeros up to the next multiple of a block.
    pub(crate) fn pad_to_block(&mut self) {
        let end = self.len().next_multiple_of(BLOCK_BYTES);
        self.make_room(end);
        self.memory.resize(self.start + end, 0);
        let address = self.bytes().as_ptr();
        assert_eq!(address.align_offset(BLOCK_BYTES), 0, "a move loses the alignment");
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or_default()
    }

    /// The bytes, to be changed in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..).unwrap_or_default()
    }

    fn make_room(&mut self, bytes: usize) {
        if bytes > self.capacity() {
            self.grow(bytes);
        }
        debug_assert!(bytes <= self.capacity(), "the memory never grows in place");
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let mut larger = Self::with_capacity(bytes.next_power_of_two());
        larger.memory.extend_from_slice(self.bytes());
        *self = larger;
    }
}

/// Buffers for batches, of which some are kept to be used again.
#[derive(Debug)]
pub(crate) struct Buffers {
    kept: Vec<AlignedBuffer>,
    count_max: usize,
    /// The most bytes of a batch of several frames.
    batch_bytes: usize,
}

impl Buffers {
    pub(crate) fn new(batch_bytes: usize, count_max: usize) -> Self {
        Self { kept: Vec::new(), count_max, batch_bytes }
    }

    /// A buffer for a batch that has so many bytes with its first frame. It grows with the traffic;
    /// but if that frame will be alone, the buffer has room for it and no more.
    pub(crate) fn take(&mut self, bytes: usize) -> AlignedBuffer {
        let is_alone = bytes > self.batch_bytes;
        let bytes = if is_alone { bytes.next_multiple_of(BLOCK_BYTES) } else { NEW_BYTES };
        let kept = self.kept.pop().filter(|buffer| buffer.capacity() >= bytes);
        kept.unwrap_or_else(|| AlignedBuffer::with_capacity(bytes))
    }

    /// Keeps a buffer for later, unless it is of a size that few batches need.
    pub(crate) fn keep(&mut self, buffer: AlignedBuffer) {
        let is_usual = buffer.capacity() <= 2 * self.batch_bytes.max(NEW_BYTES);
        if is_usual && self.kept.len() < self.count_max {
            self.kept.push(buffer);
        }
    }
}

const NEW_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_for_large_frames_are_dropped() {
        const BATCH_BYTES: usize = 1024 * 1024;
        let mut buffers = Buffers::new(BATCH_BYTES, 2);
        let taken = |buffers: &mut Buffers, bytes| buffers.take(bytes).capacity();
        let lone = 5 * BATCH_BYTES + 1;
        assert!(taken(&mut buffers, lone) <= lone + 2 * BLOCK_BYTES);
        assert!(taken(&mut buffers, 100) <= NEW_BYTES + BLOCK_BYTES);
        for bytes in [lone, 3 * BATCH_BYTES / 2, BATCH_BYTES, BATCH_BYTES] {
            buffers.keep(AlignedBuffer::with_capacity(bytes));
        }
        assert_eq!(buffers.kept.len(), 2, "so many of the usual size");
        assert!(taken(&mut buffers, 100) >= BATCH_BYTES, "one of these");
        assert!(taken(&mut buffers, BATCH_BYTES + 1) >= 3 * BATCH_BYTES / 2, "and the other");
        assert!(buffers.kept.is_empty());
    }

    #[test]
    fn buffer_stays_aligned_while_growing() {
        let mut buffer = AlignedBuffer::with_capacity(8);
        let mut expected = Vec::new();
        for round in 0..200_u8 {
            let piece = vec![round; usize::from(round) * 7];
            buffer.extend(&piece);
            expected.extend_from_slice(&piece);
            assert_eq!(buffer.bytes().as_ptr().align_offset(BLOCK_BYTES), 0);
        }
        assert_eq!(buffer.bytes(), expected);
        buffer.pad_to_block();
        assert_eq!(buffer.len() % BLOCK_BYTES, 0);
        assert!(buffer.bytes()[expected.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn padding_clears_leftovers_of_earlier_use() {
        let mut buffer = AlignedBuffer::with_capacity(BLOCK_BYTES);
        buffer.extend(&[7; BLOCK_BYTES]);
        buffer.clear();
        buffer.extend(&[1]);
        buffer.pad_to_block();
        assert!(buffer.bytes()[1..].iter().all(|byte| *byte == 0));
    }
}

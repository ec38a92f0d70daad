//! A growing byte buffer whose start is aligned for direct I/O.

use crate::BLOCK_BYTES;

/// Bytes that begin at an address that is a multiple of [`BLOCK_BYTES`].
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    /// Over-allocated by one block; never grows in place, since a move would lose the alignment.
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// An empty buffer that holds `bytes` without growing.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let memory = vec![0; bytes + BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start < BLOCK_BYTES, "invariant: a byte pointer can be aligned to a block");
        Self { memory, start, length: 0 }
    }

    /// So many zeros.
    pub(crate) fn zeroed(bytes: usize) -> Self {
        Self { length: bytes, ..Self::with_capacity(bytes) }
    }

    /// Forgets the bytes behind the first so many.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.length = self.length.min(bytes);
    }

    /// Forgets the bytes and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// How many bytes it holds.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// How many bytes it can hold without growing.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.len() - BLOCK_BYTES
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.make_room(end);
        self.tail_mut(bytes.len()).copy_from_slice(bytes);
        self.length = end;
    }

    /// Appends zeros up to the next multiple of a block.
    pub(crate) fn pad_to_block(&mut self) {
        let end = self.length.next_multiple_of(BLOCK_BYTES);
        self.make_room(end);
        self.tail_mut(end - self.length).fill(0);
        self.length = end;
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.length).unwrap_or_default()
    }

    /// The bytes, to be changed in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + self.length).unwrap_or_default()
    }

    fn tail_mut(&mut self, bytes: usize) -> &mut [u8] {
        let from = self.start + self.length;
        self.memory.get_mut(from..from + bytes).expect("invariant: room was made before")
    }

    fn make_room(&mut self, bytes: usize) {
        if bytes > self.capacity() {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let mut larger = Self::with_capacity(bytes.next_power_of_two());
        larger.length = self.length;
        larger.bytes_mut().copy_from_slice(self.bytes());
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_aligned_while_it_grows() {
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
    fn padding_clears_what_an_earlier_use_left() {
        let mut buffer = AlignedBuffer::with_capacity(BLOCK_BYTES);
        buffer.extend(&[7; BLOCK_BYTES]);
        buffer.clear();
        buffer.extend(&[1]);
        buffer.pad_to_block();
        assert!(buffer.bytes()[1..].iter().all(|byte| *byte == 0));
    }
}

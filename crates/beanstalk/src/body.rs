//! The body of a put on its way in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use input::InputBuffer;

/// Bytes that may be reserved for a body beyond those that have arrived: a peer that claims much
/// and sends nothing costs no more.
const RESERVED_BYTES_MAX: usize = 16 * 1024;

/// Collects a body of known length, of which any part may have arrived.
#[derive(Debug)]
pub(crate) struct Body {
    received: Vec<u8>,
    missing: usize,
}

impl Body {
    pub(crate) const fn new(bytes: usize) -> Self {
        Self { received: Vec::new(), missing: bytes }
    }

    /// Takes the bytes that have arrived. A body that is there as a whole is copied once, into
    /// memory of exactly its size.
    pub(crate) fn fill(&mut self, input: &mut InputBuffer) {
        let taken = self.missing.min(input.len());
        if taken == 0 {
            return;
        }
        self.reserve(taken);
        let (arrived, _) = input.unread().split_at(taken);
        self.received.extend_from_slice(arrived);
        self.missing -= taken;
        input.consume(taken);
    }

    /// Bytes that have arrived.
    pub(crate) const fn len(&self) -> usize {
        self.received.len()
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// The collected bytes; leaves an empty body.
    pub(crate) fn take(&mut self) -> Box<[u8]> {
        assert!(self.is_whole(), "invariant: only a whole body is taken");
        core::mem::take(&mut self.received).into_boxed_slice()
    }

    /// Grows by doubling, but never beyond the whole body.
    fn reserve(&mut self, taken: usize) {
        let spare = self.received.capacity() - self.received.len();
        if spare < taken {
            let more = self.received.capacity().max(RESERVED_BYTES_MAX).max(taken);
            self.received.reserve_exact(more.min(self.missing));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(bytes: usize, piece: usize) -> (Box<[u8]>, usize) {
        let sent: Vec<u8> = (0..bytes).map(|index| index as u8).collect();
        let mut body = Body::new(bytes);
        let mut input = InputBuffer::new();
        let mut beyond = 0;
        for piece in sent.chunks(piece) {
            input.append(piece);
            body.fill(&mut input);
            beyond = beyond.max(body.received.capacity().saturating_sub(body.received.len() * 2));
        }
        let collected = body.take();
        assert_eq!(*collected, *sent);
        (collected, beyond)
    }

    #[test]
    fn body_arrives_in_any_pieces() {
        for bytes in [0, 1, 2, 100, 20_000, 100_000] {
            for piece in [1, 7, 4_096, 65_536] {
                collect(bytes, piece);
            }
        }
    }

    #[test]
    fn memory_follows_received_bytes() {
        let (_, beyond) = collect(1_000_000, 1_000);
        assert!(beyond <= RESERVED_BYTES_MAX);
        let mut claimed = Body::new(usize::MAX / 2);
        let mut input = InputBuffer::new();
        input.append(b"x");
        claimed.fill(&mut input);
        assert!(claimed.received.capacity() <= RESERVED_BYTES_MAX);
    }
}

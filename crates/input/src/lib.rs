//! Parts that all protocols share: input that is not consumed yet, answers that wait for the log
//! ([`Held`]), the beginnings of foreign protocols, and the clients that a listener takes
//! ([`Admission`]), also through proxies ([`ProxyReader`]).
//!
//! The input of a read ends anywhere. The owner of the socket appends it. The session of a protocol
//! looks at [`InputBuffer::unread`] and consumes the part it has understood; the rest stays until
//! more of it has come. The owner limits how much may wait, by not reading.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod admission;
mod held;
mod proxy;
mod wrong_protocol;

use alloc::vec::Vec;
use core::fmt;

pub use admission::{Admission, Entrance, NETWORKS_MAX, Network, NotANetwork};
pub use held::Held;
pub use proxy::{PROXY_HEADER_BYTES_MAX, Proxied, ProxyFault, ProxyReader};
pub use wrong_protocol::{
    BEGINNING_BYTES_MAX, Beginning, WrongProtocol, beginning, is_http_line, is_method, is_target,
    names_host,
};

/// Memory that an empty buffer keeps; a connection that once sent much does not hold it.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// Received bytes in order. Appending and consuming cost O(1) a byte over the buffer's life: the
/// rest moves to the front only when at least as much before it has been consumed. `Debug` does not
/// show them: they may be a password or a message.
#[derive(Default)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    /// The start of the unread ones; never beyond the end.
    start: usize,
}

impl InputBuffer {
    /// An empty buffer; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0 }
    }

    /// Adds bytes as they were received.
    pub fn append(&mut self, received: &[u8]) {
        if self.start >= self.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(received);
    }

    /// How many bytes wait to be consumed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Nothing waits to be consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that wait, oldest first.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Forgets the oldest `count` bytes.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "only received bytes are consumed");
        self.start += count;
        if self.is_empty() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                // Not shrunk: a remainder at the front of a large block keeps the next large block
                // from its place.
                self.bytes = Vec::new();
            }
        }
    }
}

impl fmt::Debug for InputBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputBuffer({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_received_bytes() {
        let mut input = InputBuffer::new();
        input.append(b"secret");
        assert_eq!(alloc::format!("{input:?}"), "InputBuffer(6 bytes)");
    }

    #[test]
    fn input_buffer_returns_bytes_in_order() {
        let mut input = InputBuffer::new();
        let mut expected = 0_u8;
        for round in 0..100_u8 {
            input.append(&[round.wrapping_mul(2), round.wrapping_mul(2).wrapping_add(1)]);
            if round % 3 == 0 {
                let count = input.len() - usize::from(round % 2);
                for byte in &input.unread()[..count] {
                    assert_eq!(*byte, expected);
                    expected = expected.wrapping_add(1);
                }
                input.consume(count);
            }
        }
    }

    #[test]
    fn drained_buffer_gives_memory_back() {
        let mut input = InputBuffer::new();
        input.append(&[0; 1_000_000]);
        input.consume(1_000_000);
        assert!(input.bytes.capacity() <= KEPT_BYTES_MAX);
    }

    #[test]
    fn input_buffer_stays_small() {
        let mut input = InputBuffer::new();
        input.append(&[0; 10]);
        for _ in 0..100_000 {
            input.append(&[0; 10]);
            input.consume(10);
        }
        assert!(input.bytes.capacity() <= 64);
    }
}

//! What the buffers of all connections hold together, and how much one may leave unread of it.
//!
//! Back-pressure comes first: the fuller the whole, the less may one connection leave unread before
//! its commands wait. So slow readers settle below the bound, and who reads is served as ever. It
//! cannot settle where many peers send bodies and stop in the middle: making all others wait for
//! those who may never go on would be their victory, so that then who holds the most is closed.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in the buffers of all connections: unread input, half-sent bodies, unsent answers.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Buffered {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A connection that held `before` holds `now`.
    pub(crate) fn change(&self, before: usize, now: usize) {
        if now >= before {
            self.bytes.fetch_add(now - before, Ordering::Relaxed);
        } else {
            let sum = self.bytes.fetch_sub(before - now, Ordering::Relaxed);
            assert!(sum >= before - now, "invariant: what is taken away was counted");
        }
    }

    /// How many bytes of answers one connection may leave unread for now; never fewer than
    /// [`ALLOWED_BYTES_MIN`], so that who reads always goes on. Who does not read may take half of
    /// all: the rest is for what comes in, which has nobody to hold it back.
    pub(crate) fn allowance(&self, output_bytes: usize) -> usize {
        let free = (self.bytes_max / 2).saturating_sub(self.bytes());
        (free / FREE_SHARE).clamp(ALLOWED_BYTES_MIN, output_bytes)
    }

    /// Back-pressure did not suffice.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    /// What each of so many connections holds in the mean: who holds the most holds no less.
    pub(crate) fn mean(&self, connections: usize) -> usize {
        self.bytes() / connections.max(1)
    }
}

/// One connection may leave unread one part in so many of what is free of that half: so each that
/// comes finds some free, and the half is approached but not reached, but for the one answer by
/// which each may exceed what it was allowed.
const FREE_SHARE: usize = 8;

/// With less room than this even short answers would be held back.
pub(crate) const ALLOWED_BYTES_MIN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuller_the_whole_the_less_for_each() {
        let buffered = Buffered::new(1_600_000);
        assert_eq!(buffered.allowance(50_000), 50_000);
        assert_eq!(buffered.allowance(1_000_000), 100_000);
        buffered.change(0, 400_000);
        assert_eq!(buffered.allowance(1_000_000), 50_000);
        buffered.change(0, 400_000);
        assert_eq!(buffered.allowance(1_000_000), ALLOWED_BYTES_MIN);
        assert!(!buffered.is_exceeded(), "half of it is for what comes in");
        buffered.change(400_000, 1_200_001);
        assert!(buffered.is_exceeded());
        assert_eq!(buffered.allowance(1_000_000), ALLOWED_BYTES_MIN);
        buffered.change(1_200_001, 1);
        assert!(!buffered.is_exceeded());
        assert_eq!(buffered.mean(0), 400_001);
        assert_eq!(buffered.mean(4), 100_000);
    }

    #[test]
    fn slow_readers_settle_below_the_bound() {
        let buffered = Buffered::new(1_000_000);
        let mut held = [0; 20];
        while let Some(held) = held.iter_mut().find(|held| **held < buffered.allowance(100_000)) {
            buffered.change(*held, *held + 1_000);
            *held += 1_000;
        }
        assert!(held.iter().all(|held| *held > 0), "each got something");
        assert!(buffered.bytes() < 500_000, "{} bytes", buffered.bytes());
    }
}

//! The bytes in the buffers of all connections together, and the part one may leave unread.
//!
//! Back-pressure comes first: the fuller the whole, the less may one connection leave unread before
//! its commands wait. So slow readers settle below the bound, and reading peers are served as ever.
//! The sum cannot settle if many peers send bodies and stop in the middle. Making all others wait
//! for those peers, which may never go on, would be their victory. So the server then closes the
//! connection with the most buffered bytes.
//!
//! One connection at a time may go beyond: by an answer larger than any message that there is
//! memory for today, stored when there was more. Without that, its client would be closed, and come
//! again. The exception is for the answer alone: other bytes held beside it count as ever.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in the buffers of all connections: unread input, half-sent bodies, unsent answers.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Bytes of the one connection that went beyond; zero: none did.
    beyond: AtomicUsize,
}

/// The bytes one connection holds of them, at its last count.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
    /// Those of these bytes that are beyond the bound.
    beyond: usize,
}

impl Buffered {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max, beyond: AtomicUsize::new(0) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bounded() + self.beyond.load(Ordering::Relaxed)
    }

    /// Without the bytes that went beyond.
    fn bounded(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A connection that held `before` holds `now`.
    fn change(&self, before: usize, now: usize) {
        if now >= before {
            self.bytes.fetch_add(now - before, Ordering::Relaxed);
        } else {
            let sum = self.bytes.fetch_sub(before - now, Ordering::Relaxed);
            assert!(sum >= before - now, "invariant: what is taken away was counted");
        }
    }

    /// Bytes of answers that one connection may leave unread for now; never fewer than
    /// [`ALLOWED_BYTES_MIN`], so that a reading peer always goes on. Peers that do not read may
    /// take half of all: the rest is for input, which no other rule holds back.
    pub(crate) fn allowance(&self, output_bytes: usize) -> usize {
        let free = (self.bytes_max / 2).saturating_sub(self.bounded());
        (free / FREE_SHARE).clamp(ALLOWED_BYTES_MIN, output_bytes)
    }

    /// Back-pressure did not suffice.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.bounded() > self.bytes_max
    }

    /// The mean bytes of so many connections: the fullest connection holds no less.
    pub(crate) fn mean(&self, connections: usize) -> usize {
        self.bounded() / connections.max(1)
    }

    /// An answer to a command is so large only with a message that was stored when there was more
    /// memory. Publications to a peer that does not read may be as large.
    const fn is_oversized(&self, answer_bytes: usize) -> bool {
        answer_bytes > self.bytes_max / 2
    }
}

impl Held {
    /// The bytes that count against the bound.
    pub(crate) const fn bounded(&self) -> usize {
        self.bytes - self.beyond
    }

    /// It holds so much now, of which so much are answers.
    pub(crate) fn recount(&mut self, bytes: usize, answer_bytes: usize, buffered: &Buffered) {
        let answer = Some(self.beyond.min(answer_bytes));
        let beyond = answer.filter(|left| buffered.is_oversized(*left)).unwrap_or(0);
        buffered.change(self.bounded(), bytes - beyond);
        if self.beyond > 0 {
            buffered.beyond.store(beyond, Ordering::Relaxed);
        }
        *self = Self { bytes, beyond };
    }

    /// Leaves the bound to the others, if this connection holds an answer for which the bound was
    /// not made and no other connection has gone beyond.
    pub(crate) fn go_beyond(&mut self, answer_bytes: usize, buffered: &Buffered) -> bool {
        let (order, beyond) = (Ordering::Relaxed, &buffered.beyond);
        let answer = answer_bytes.min(self.bytes);
        let goes = buffered.is_oversized(answer)
            && beyond.compare_exchange(0, answer, order, order).is_ok();
        if goes {
            buffered.change(answer, 0);
            self.beyond = answer;
        }
        goes
    }
}

/// One connection may leave unread one part in so many of the free bytes of that half. So each new
/// one finds some free, and the sum approaches the half without reaching it. Each may exceed its
/// allowance by one answer.
const FREE_SHARE: usize = 8;

/// With less room than this even short answers would be held back.
pub(crate) const ALLOWED_BYTES_MIN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffered_allowance_shrinks_as_total_grows() {
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
    fn buffered_budget_lets_one_answer_exceed() {
        let buffered = Buffered::new(1_000);
        let mut all = [Held::default(), Held::default(), Held::default()];
        let [first, second, third] = &mut all;
        first.recount(5_000, 5_000, &buffered);
        second.recount(4_000, 4_000, &buffered);
        third.recount(600, 500, &buffered);
        assert!(!third.go_beyond(500, &buffered), "it holds none");
        assert!(first.go_beyond(5_000, &buffered));
        assert!(!second.go_beyond(4_000, &buffered), "one at a time");
        first.recount(8_100, 8_000, &buffered);
        assert_eq!(first.bounded(), 3_100, "what comes behind it counts");
        assert!(!first.go_beyond(8_000, &buffered), "and goes nowhere");
        first.recount(5_000, 5_000, &buffered);
        assert!(buffered.is_exceeded());
        second.recount(0, 0, &buffered);
        assert!(!buffered.is_exceeded());
        assert_eq!(buffered.bytes(), 5_600);
        first.recount(900, 700, &buffered);
        assert_eq!((first.bounded(), buffered.bytes()), (200, 1_500));
        first.recount(400, 400, &buffered);
        assert_eq!((first.bounded(), buffered.bounded(), buffered.bytes()), (400, 1_000, 1_000));
        second.recount(4_000, 4_000, &buffered);
        assert!(second.go_beyond(4_000, &buffered), "the next");
        for held in &mut all {
            held.recount(0, 0, &buffered);
        }
        assert_eq!((buffered.bounded(), buffered.bytes()), (0, 0));
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

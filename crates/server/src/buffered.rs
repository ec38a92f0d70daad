//! What the buffers of all connections hold together, and how much one may leave unread of it.
//!
//! Back-pressure comes first: the fuller the whole, the less may one connection leave unread before
//! its commands wait. So slow readers settle below the bound, and who reads is served as ever. It
//! cannot settle where many peers send bodies and stop in the middle: making all others wait for
//! those who may never go on would be their victory, so that then who holds the most is closed.
//!
//! One at a time may go beyond: an answer larger than any message that there is memory for today,
//! which was stored when there was more, would have whoever asks for it closed, and come again.
//! That is for the answer alone: what comes to be held beside it counts as ever.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in the buffers of all connections: unread input, half-sent bodies, unsent answers.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// What the one holds who went beyond; zero: nobody did.
    beyond: AtomicUsize,
}

/// What one connection holds of them, as it was counted last.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
    /// Of these, what has gone beyond the bound.
    beyond: usize,
}

impl Buffered {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max, beyond: AtomicUsize::new(0) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bounded() + self.beyond.load(Ordering::Relaxed)
    }

    /// Without what went beyond.
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

    /// How many bytes of answers one connection may leave unread for now; never fewer than
    /// [`ALLOWED_BYTES_MIN`], so that who reads always goes on. Who does not read may take half of
    /// all: the rest is for what comes in, which has nobody to hold it back.
    pub(crate) fn allowance(&self, output_bytes: usize) -> usize {
        let free = (self.bytes_max / 2).saturating_sub(self.bounded());
        (free / FREE_SHARE).clamp(ALLOWED_BYTES_MIN, output_bytes)
    }

    /// Back-pressure did not suffice.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.bounded() > self.bytes_max
    }

    /// What each of so many connections holds in the mean: who holds the most holds no less.
    pub(crate) fn mean(&self, connections: usize) -> usize {
        self.bounded() / connections.max(1)
    }

    /// No answer to a command is so large but with a message that was stored when there was more
    /// memory; what others say to one who does not read may be.
    const fn is_oversized(&self, answer_bytes: usize) -> bool {
        answer_bytes > self.bytes_max / 2
    }
}

impl Held {
    /// What counts against the bound.
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

    /// Leaves the bound to the others, where it holds an answer for which that was not made and
    /// nobody else has done so.
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
    fn one_answer_larger_than_any_of_today_goes_beyond() {
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

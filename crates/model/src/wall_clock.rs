//! How the machine's clock stands to the engine's.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicI64, Ordering};

use crate::Nanos;

/// The machine's clock as of now, for protocols in which moments are absolute.
///
/// The engine's clock never goes back and is never set, the machine's may be at any time. A moment
/// that a client names is turned into the engine's time when it arrives, so that it means the span
/// from now that the client meant. A moment for a client is turned back. All clones are one clock.
/// The server that steps sessions tells it the time: it asks no clock itself.
#[derive(Clone, Debug, Default)]
pub struct WallClock(Arc<AtomicI64>);

impl WallClock {
    /// The machine's clock shows `wall` where the engine's time is `now`. Small differences to the
    /// last reading are two readings of the same, and change nothing: a client sees its moment as
    /// it named it.
    pub fn set(&self, now: Nanos, wall: Nanos) {
        let ahead = signed(wall).saturating_sub(signed(now));
        if ahead.abs_diff(self.ahead()) >= STEP_MIN {
            // It guards nothing else.
            self.0.store(ahead, Ordering::Relaxed);
        }
    }

    /// The engine's time at which the machine's clock will show `wall`, if it is not set; zero
    /// if that is before all time.
    #[must_use]
    pub fn engine_time(&self, wall: Nanos) -> Nanos {
        moved(wall, self.ahead().saturating_neg())
    }

    /// This time of the engine's by the machine's clock.
    #[must_use]
    pub fn wall_time(&self, time: Nanos) -> Nanos {
        moved(time, self.ahead())
    }

    /// The same as a number, as of now.
    #[must_use]
    pub fn lead(&self) -> ClockLead {
        ClockLead(self.ahead())
    }

    /// Nanoseconds by which the machine's clock is ahead of the engine's.
    fn ahead(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Nanoseconds by which the machine's clock is ahead of the engine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockLead(i64);

impl ClockLead {
    /// This time of the engine's by the machine's clock.
    #[must_use]
    pub fn wall_time(self, time: Nanos) -> Nanos {
        moved(time, self.0)
    }
}

fn moved(time: Nanos, by: i64) -> Nanos {
    Nanos(time.0.saturating_add_signed(by))
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// Less than this is no step of the clock, in nanoseconds: two clocks are read one after the other,
/// and the machine's is slewed.
const STEP_MIN: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_time_means_span_from_now() {
        let clock = WallClock::default();
        let now = Nanos::from_secs(1_000);
        for wall in [5, 990, 1_000, 1_000_000].map(Nanos::from_secs) {
            clock.set(now, wall);
            let in_an_hour = wall + Nanos::from_secs(3_600);
            assert_eq!(clock.engine_time(in_an_hour), now + Nanos::from_secs(3_600));
            assert_eq!(clock.wall_time(clock.engine_time(in_an_hour)), in_an_hour);
            assert_eq!(clock.wall_time(now), wall);
        }
        assert_eq!(clock.engine_time(Nanos::ZERO), Nanos::ZERO, "before all time");
        assert_eq!(clock.engine_time(Nanos::MAX).0, u64::MAX - 999_000 * Nanos::SECOND.0);
        clock.set(now, Nanos::ZERO);
        assert_eq!(clock.wall_time(Nanos::ZERO), Nanos::ZERO);
    }

    #[test]
    fn reading_jitter_is_no_step() {
        let clock = WallClock::default();
        clock.set(Nanos(1_000), Nanos::from_secs(60));
        let named = clock.engine_time(Nanos::from_secs(70));
        clock.set(Nanos(1_000), Nanos(60 * Nanos::SECOND.0 + STEP_MIN - 1));
        assert_eq!(clock.wall_time(named), Nanos::from_secs(70));
        clock.set(Nanos(1_000), Nanos(60 * Nanos::SECOND.0 + 2 * STEP_MIN));
        assert_eq!(clock.wall_time(named), Nanos(70 * Nanos::SECOND.0 + 2 * STEP_MIN));
    }
}

//! The one clock: turns the machine's time into the [`Nanos`] that everything pure is given.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::Nanos;

/// The wall clock at start plus monotonic time: never goes back while the process runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    base: Nanos,
    ahead: Nanos,
}

impl Clock {
    /// A clock that shows the wall's time, now.
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), base: Self::wall(), ahead: Nanos::ZERO }
    }

    /// The same clock, put forward if it would show less than `latest`. A store may remember a time
    /// that the wall clock, set back since, has yet to reach.
    pub(crate) fn not_before(self, latest: Nanos) -> Self {
        let ahead = latest.since(self.now());
        Self { base: self.base + ahead, ahead: self.ahead + ahead, ..self }
    }

    /// How far it was put forward, and so is ahead of the wall's clock as that was at the start.
    pub(crate) fn ahead(&self) -> Nanos {
        self.ahead
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Nanos {
        self.base + self.uptime()
    }

    /// The machine's clock, which may be set at any time.
    pub(crate) fn wall() -> Nanos {
        nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Nanos {
        nanos(self.start.elapsed())
    }
}

/// A span as the other crates count it.
pub(crate) fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_only_moves_forward_to_store() {
        let clock = Clock::new();
        let same = clock.not_before(Nanos::ZERO);
        assert!(same.base == clock.base && same.ahead() == Nanos::ZERO);
        let future = clock.now() + Nanos::from_secs(1_000);
        let forward = clock.not_before(future);
        assert!(forward.now() >= future);
        let ahead = forward.ahead();
        assert!(ahead <= Nanos::from_secs(1_000) && ahead == forward.base.since(clock.base));
    }
}

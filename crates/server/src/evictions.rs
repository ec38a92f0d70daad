//! Tells operators that dead letters are deleted, since their queue may hold no more.

use model::{DeadLetterStatistics, Nanos};

use crate::log::Logger;

/// The counts that the log has reported.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    /// Dead letters that had been deleted when it was told last.
    told: u64,
    told_at: Option<Nanos>,
}

impl Evictions {
    /// Logs it when it begins, and once a minute while it goes on.
    pub(crate) fn tell(&mut self, log: Logger, now: Nanos, counts: DeadLetterStatistics) {
        let DeadLetterStatistics { evicted_total, evicted_durable_total, .. } = counts;
        let is_due = self.told_at.is_none_or(|at| now.since(at) >= PERIOD);
        if evicted_total == self.told || !is_due {
            return;
        }
        let new = evicted_total - self.told;
        (self.told, self.told_at) = (evicted_total, Some(now));
        log.line(format_args!(
            "{new} dead letters were deleted, the oldest: their queue may hold no more \
             ({evicted_total} since the start, {evicted_durable_total} of them durable); receive \
             or replay them, or give that queue larger bounds: max-messages, max-bytes"
        ));
    }
}

const PERIOD: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evictions_are_told_once_a_minute() {
        let mut evictions = Evictions::default();
        let at = |evicted_total| DeadLetterStatistics { evicted_total, ..Default::default() };
        let mut told = Vec::new();
        for (secs, total) in [(1, 0), (2, 1), (30, 2), (61, 3), (62, 4), (70, 4), (200, 4)] {
            evictions.tell(Logger::Quiet, Nanos::from_secs(secs), at(total));
            told.push(evictions.told);
        }
        assert_eq!(told, [0, 1, 1, 1, 4, 4, 4]);
    }
}

//! The housekeeper's rounds: once a second it looks whether the journal's files are still there,
//! and in a quiet moment how the disk is best written to.

use disk::RealDisk;
use journal::DiskError;
use model::Nanos;

use crate::hub::Hub;

/// The time of the next round, and the state it compares.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    next: Nanos,
    /// Which of many files it looks at.
    turn: usize,
    idle: Idleness,
    /// From when on a quiet moment is used for measuring.
    measure_from: Nanos,
}

/// How long nothing was written.
#[derive(Debug, Default)]
struct Idleness {
    writes: u64,
    rounds: u32,
}

impl Rounds {
    /// When the next is due, by the time since the start.
    pub(crate) const fn next(&self) -> Nanos {
        self.next
    }

    /// One round, if it is due.
    ///
    /// # Errors
    /// The journal has lost a file, or the device failed.
    pub(crate) fn make(&mut self, hub: &Hub, disk: &RealDisk) -> Result<(), DiskError> {
        let now = hub.clock.uptime();
        if now < self.next {
            return Ok(());
        }
        self.next = now + PERIOD;
        self.turn = self.turn.wrapping_add(1);
        let files = hub.lock().broker.watched_files(self.turn);
        disk.check_in_place(&files)?;
        self.idle.note(disk.counters().writes);
        if self.idle.rounds < QUIET_ROUNDS || now < self.measure_from {
            return Ok(());
        }
        self.measure_from = now + MEASURE_PERIOD;
        if let Some(found) = disk.probe_again()? {
            hub.log.line(format_args!("an idle moment shows: the next start writes {found}"));
        }
        Ok(())
    }
}

impl Idleness {
    fn note(&mut self, writes: u64) {
        self.rounds = if writes == self.writes { self.rounds.saturating_add(1) } else { 0 };
        self.writes = writes;
    }
}

/// Time between two rounds. It bounds the data confirmed to files that are gone.
const PERIOD: Nanos = Nanos::from_secs(1);

/// Rounds without a write that make a quiet moment.
const QUIET_ROUNDS: u32 = 5;

/// Between two measurements.
const MEASURE_PERIOD: Nanos = Nanos::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_ends_idleness() {
        let mut idle = Idleness::default();
        (0..3).for_each(|_| idle.note(7));
        assert_eq!(idle.rounds, 2);
        idle.note(8);
        assert_eq!(idle.rounds, 0);
    }
}

//! The waits of users and addresses that have failed to log in.
//!
//! Each failure of a suspect (a user, an address) doubles its time, from 100 ms to 10 s. A quiet
//! time of ten minutes forgets it; a success does not, or an attacker with a user of his own would
//! free his address by it.
//!
//! The table has a bound, and an attacker can fill it: with failures of other addresses and names.
//! So the suspect with the fewest failures makes place, and the new one takes over its count, as
//! in the Space-Saving algorithm (Metwally, Agrawal, El Abbadi 2005). No suspect gets a smaller
//! count than it has failures, whichever way it left the table. To leave it at all with n failures
//! takes n failures of each of 4,095 others within ten minutes.

use alloc::collections::{BTreeMap, BTreeSet};

use model::Nanos;

/// A suspect, by a keyed hash of its name: entries are small, and no client chooses their order.
pub(crate) type Suspect = [u8; 16];

/// The suspects, and when they may try again.
#[derive(Debug)]
pub(crate) struct BackOff {
    entries: BTreeMap<Suspect, Failures>,
    by_count: BTreeSet<(u32, Nanos, Suspect)>,
    by_time: BTreeSet<(Nanos, Suspect)>,
    suspects_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Nanos,
    until: Nanos,
}

impl BackOff {
    pub(crate) const fn new(suspects_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_count: BTreeSet::new(),
            by_time: BTreeSet::new(),
            suspects_max,
        }
    }

    /// True if one of them has to wait.
    pub(crate) fn holds_off(&self, now: Nanos, suspects: &[Suspect]) -> bool {
        let entries = suspects.iter().filter_map(|suspect| self.entries.get(suspect));
        entries.into_iter().any(|failures| now < failures.until)
    }

    /// Notes a failure of each.
    pub(crate) fn record(&mut self, now: Nanos, suspects: &[Suspect]) {
        self.forget(now);
        for suspect in suspects {
            let earlier = self.remove(suspect).map(|failures| failures.count);
            let count = earlier.unwrap_or_else(|| self.make_place());
            self.insert(*suspect, count.saturating_add(1), now);
        }
    }

    /// Removes the suspect with the fewest failures if the table is full; gives its count.
    fn make_place(&mut self) -> u32 {
        if self.entries.len() < self.suspects_max {
            return 0;
        }
        let Some(&(count, _, fewest)) = self.by_count.first() else { return 0 };
        self.remove(&fewest);
        count
    }

    fn insert(&mut self, suspect: Suspect, count: u32, now: Nanos) {
        let doublings = count.saturating_sub(1).min(DOUBLINGS_MAX);
        let delay = Nanos(DELAY_MIN.0 << doublings).min(DELAY_MAX);
        self.by_count.insert((count, now, suspect));
        self.by_time.insert((now, suspect));
        self.entries.insert(suspect, Failures { count, last: now, until: now + delay });
        assert!(self.entries.len() <= self.suspects_max.max(1), "place was made");
        assert_eq!(self.entries.len(), self.by_count.len(), "each suspect has one count");
        assert_eq!(self.entries.len(), self.by_time.len(), "each suspect has one time");
    }

    fn remove(&mut self, suspect: &Suspect) -> Option<Failures> {
        let failures = self.entries.remove(suspect)?;
        self.by_count.remove(&(failures.count, failures.last, *suspect));
        self.by_time.remove(&(failures.last, *suspect));
        Some(failures)
    }

    fn forget(&mut self, now: Nanos) {
        while let Some(&(last, suspect)) = self.by_time.first()
            && now.since(last) >= QUIET
        {
            self.remove(&suspect);
        }
    }
}

const DELAY_MIN: Nanos = Nanos::from_millis(100);
const DELAY_MAX: Nanos = Nanos::from_secs(10);

/// 100 ms times 2^7 exceed 10 s.
const DOUBLINGS_MAX: u32 = 7;

/// After this time without a failure a suspect is none any more.
const QUIET: Nanos = Nanos::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(number: u32) -> Suspect {
        let mut suspect = [0; 16];
        suspect[..4].copy_from_slice(&number.to_be_bytes());
        suspect
    }

    fn wait(back_off: &BackOff, now: Nanos, number: u32) -> Nanos {
        let failures = back_off.entries.get(&suspect(number));
        failures.map_or(Nanos::ZERO, |failures| failures.until.since(now))
    }

    #[test]
    fn delay_doubles_to_ten_seconds() {
        let mut back_off = BackOff::new(4);
        let now = Nanos::from_secs(1);
        let delays: std::vec::Vec<u64> = (0..40)
            .map(|_| {
                back_off.record(now, &[suspect(1)]);
                wait(&back_off, now, 1).0 / 1_000_000
            })
            .collect();
        assert_eq!(delays[..9], [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert!(delays[9..].iter().all(|delay| *delay == 10_000));
        assert!(back_off.holds_off(now, &[suspect(2), suspect(1)]));
        assert!(!back_off.holds_off(now, &[suspect(2)]));
        assert!(!back_off.holds_off(now + DELAY_MAX, &[suspect(1)]));
    }

    #[test]
    fn quiet_suspects_are_forgotten() {
        let mut back_off = BackOff::new(4);
        (0..9).for_each(|_| back_off.record(Nanos::ZERO, &[suspect(1)]));
        back_off.record(QUIET, &[suspect(1)]);
        assert_eq!(wait(&back_off, QUIET, 1), DELAY_MIN);
    }

    #[test]
    fn full_table_never_shortens_a_delay() {
        let mut back_off = BackOff::new(8);
        let now = Nanos::from_secs(5);
        (0..6).for_each(|_| back_off.record(now, &[suspect(0)]));
        // A flood of others that fail once or twice leaves it in the table.
        for number in 1..20 {
            back_off.record(now, &[suspect(number)]);
        }
        assert_eq!(wait(&back_off, now, 0), Nanos::from_millis(3_200));
        // Enough failures of others drive it out, and its next one counts no less than before.
        for number in (1..9).cycle().take(8 * 8) {
            back_off.record(now, &[suspect(number)]);
        }
        assert_eq!(wait(&back_off, now, 0), Nanos::ZERO);
        back_off.record(now, &[suspect(0)]);
        assert!(wait(&back_off, now, 0) >= Nanos::from_millis(6_400));
        assert_eq!(back_off.entries.len(), 8);
    }

    #[test]
    fn counts_never_fall_below_failures() {
        let mut rng = testkit::Rng::new(7);
        let mut back_off = BackOff::new(16);
        let mut failures = BTreeMap::<u32, u32>::new();
        for _ in 0..20_000 {
            let number = rng.below(rng.clone().below(60) + 1) as u32;
            back_off.record(Nanos::from_secs(1), &[suspect(number)]);
            *failures.entry(number).or_default() += 1;
            let kept = back_off.entries.get(&suspect(number)).unwrap();
            assert!(kept.count >= failures[&number]);
        }
    }
}

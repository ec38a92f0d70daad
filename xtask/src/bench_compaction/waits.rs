//! How long answers took, apart for those during which the log was compacted.

use std::time::{Duration, Instant};

/// An answer: when it was asked for, and when it came.
pub(super) type Answer = (Instant, Instant);

/// The number of records that compaction had copied at a moment.
pub(super) type Look = (Instant, u64);

/// How long some answers took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) count: usize,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) p999: Duration,
    pub(super) longest: Duration,
}

impl Waits {
    pub(super) fn of(mut waits: Vec<Duration>) -> Waits {
        waits.sort_unstable();
        let at = |per_mille: usize| {
            let place = (waits.len() * per_mille).div_ceil(1000).saturating_sub(1);
            waits.get(place).copied().unwrap_or_default()
        };
        Waits { count: waits.len(), p50: at(500), p99: at(990), p999: at(999), longest: at(1000) }
    }
}

/// The answers during which records were copied, and the others. `looks` are in their order; a
/// record copied between two of them may have been copied at any time between them.
pub(super) fn divide(answers: &[Answer], looks: &[Look]) -> (Waits, Waits) {
    let during = |(asked, came): &&Answer| {
        let first = looks.partition_point(|(at, _)| at <= asked).saturating_sub(1);
        let last = looks.partition_point(|(at, _)| at < came).min(looks.len().saturating_sub(1));
        let copied = |place: usize| looks.get(place).map_or(0, |(_, copied)| *copied);
        copied(last) > copied(first)
    };
    let (during, beside): (Vec<_>, Vec<_>) = answers.iter().partition(during);
    let waits = |answers: Vec<Answer>| {
        Waits::of(answers.into_iter().map(|(asked, came)| came - asked).collect())
    };
    (waits(during), waits(beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_of_those_that_came() {
        let waits = Waits::of((1..=2000).rev().map(Duration::from_millis).collect());
        assert_eq!(waits.count, 2000);
        assert_eq!(waits.p50, Duration::from_millis(1000));
        assert_eq!(waits.p99, Duration::from_millis(1980));
        assert_eq!(waits.p999, Duration::from_millis(1998));
        assert_eq!(waits.longest, Duration::from_millis(2000));
        assert_eq!(Waits::of(Vec::new()), Waits::default());
    }

    #[test]
    fn answer_counts_as_during_copying() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let looks = [(at(0), 0), (at(10), 0), (at(20), 5), (at(30), 5)];
        let answers =
            [(at(1), at(2)), (at(8), at(11)), (at(12), at(13)), (at(19), at(22)), (at(25), at(40))];
        let (during, beside) = divide(&answers, &looks);
        assert_eq!((during.count, beside.count), (3, 2));
        assert_eq!(
            (during.longest, beside.longest),
            (Duration::from_millis(3), Duration::from_millis(15))
        );
    }
}

//! The figures of one phase while it runs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::report::Latency;
use super::work::Verb;

/// Counts, latencies and the course of the rate.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Counts of the server's faults.
    pub(crate) wrong: Wrong,
    done: u64,
    total: u64,
    started: Instant,
    latencies: [Histogram<u64>; Verb::EVERY.len()],
    errors: BTreeMap<&'static str, u64>,
    /// When each tenth of the jobs was done.
    marks: Vec<Duration>,
}

/// Jobs that are not as they should be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wrong {
    /// Put with an id that another job has.
    pub(crate) same_id: u64,
    /// Handed out though they were handed out before.
    pub(crate) again: u64,
    /// Handed out though no client put them.
    pub(crate) unknown: u64,
    /// With another body than was put.
    pub(crate) body: u64,
}

impl Tally {
    /// Starts the clock for so many jobs.
    pub(crate) fn new(total: u64) -> Self {
        Self {
            wrong: Wrong::default(),
            done: 0,
            total,
            started: Instant::now(),
            latencies: Verb::EVERY.map(|_| {
                Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
                    .expect("invariant: the bounds of the histogram are constants that it takes")
            }),
            errors: BTreeMap::new(),
            marks: Vec::with_capacity(TENTHS),
        }
    }

    pub(crate) fn answered(&mut self, verb: Verb, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_NS_MAX);
        if let Some(histogram) = self.latencies.get_mut(verb as usize) {
            histogram.saturating_record(ns);
        }
    }

    pub(crate) fn refused(&mut self, word: &'static str) {
        *self.errors.entry(word).or_default() += 1;
    }

    /// One job went through all its commands.
    pub(crate) fn job_done(&mut self, now: Instant) {
        self.done += 1;
        while self.marks.len() < TENTHS && self.done >= self.mark(self.marks.len() + 1) {
            self.marks.push(now.saturating_duration_since(self.started));
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn errors(&self) -> &BTreeMap<&'static str, u64> {
        &self.errors
    }

    /// Since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Of each command that was answered as it should be.
    pub(crate) fn latencies(&self) -> Vec<Latency> {
        let used = Verb::EVERY.iter().zip(&self.latencies);
        used.filter(|(_, histogram)| !histogram.is_empty())
            .map(|(verb, histogram)| Latency::of(verb.name(), histogram))
            .collect()
    }

    /// Jobs a second in each tenth that was done.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let starts = std::iter::once(&Duration::ZERO).chain(&self.marks);
        let spans = starts.zip(&self.marks).map(|(from, to)| (*to - *from).as_secs_f64());
        let jobs = (1..).map(|tenth| self.mark(tenth) - self.mark(tenth - 1));
        // Tenths of a handful of jobs end in the same read; that is no rate.
        spans.zip(jobs).filter(|(span, _)| *span > 0.0).map(|(span, n)| n as f64 / span).collect()
    }

    /// Problems that a user must not overlook, a sentence each.
    pub(crate) fn problems(&self, phase: &str) -> Vec<String> {
        let refused =
            self.errors.iter().map(|(word, count)| (format!("refused with {word}"), count));
        let wrong = [
            ("ids given twice", &self.wrong.same_id),
            ("jobs handed out again", &self.wrong.again),
            ("jobs handed out that nobody put", &self.wrong.unknown),
            ("bodies that came back changed", &self.wrong.body),
        ];
        let wrong = wrong.into_iter().map(|(what, count)| (what.to_owned(), count));
        refused
            .chain(wrong)
            .filter(|(_, count)| **count > 0)
            .map(|(what, count)| format!("{phase}: {what}: {count}"))
            .collect()
    }

    /// How many jobs make so many tenths.
    fn mark(&self, tenths: usize) -> u64 {
        self.total * tenths as u64 / TENTHS as u64
    }
}

const TENTHS: usize = 10;
/// One hour; longer ones count as this.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_course_of_time() {
        let mut tally = Tally::new(20);
        for job in 1..=20 {
            let second = if job <= 10 { job } else { 10 + (job - 10) * 2 };
            tally.job_done(tally.started + Duration::from_secs(second));
        }
        assert_eq!(tally.rates(), [1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5]);
        assert_eq!(tally.done(), 20);
    }

    #[test]
    fn latencies_are_kept_by_command() {
        let mut tally = Tally::new(1);
        tally.answered(Verb::Reserve, Duration::from_micros(10));
        tally.answered(Verb::Delete, Duration::from_millis(10));
        tally.answered(Verb::Delete, Duration::from_secs(1 << 40));
        let latencies = tally.latencies();
        assert_eq!(latencies.len(), 2);
        assert_eq!((latencies[0].command, latencies[0].count), ("reserve", 1));
        assert_eq!(latencies[0].p50.as_micros(), 10);
        assert_eq!((latencies[1].command, latencies[1].count), ("delete", 2));
        assert!(latencies[1].max > Duration::from_secs(3_500));
    }
}

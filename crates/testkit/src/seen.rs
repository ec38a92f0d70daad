//! What random tests have come across: a test that never met a case says nothing about it.

use std::collections::BTreeMap;

/// How often each case was met.
#[derive(Clone, Debug, Default)]
pub struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    /// One more.
    pub fn saw(&mut self, case: &'static str) {
        self.add(case, 1);
    }

    /// So many more.
    pub fn add(&mut self, case: &'static str, count: u64) {
        *self.0.entry(case).or_default() += count;
    }

    /// All of another run.
    pub fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(case, count)| self.add(case, count));
    }

    /// Asserts that each case was met at least so often.
    ///
    /// # Panics
    /// When one was not.
    pub fn expect(&self, cases: &[&'static str], least: u64) {
        for case in cases {
            let count = self.0.get(case).copied().unwrap_or(0);
            assert!(count >= least, "{case} was seen only {count} times: {self:?}");
        }
    }

    /// The same, and that no other case was met.
    ///
    /// # Panics
    /// When one was not, or another was.
    pub fn expect_only(&self, cases: &[&'static str], least: u64) {
        self.expect(cases, least);
        let other = self.0.keys().find(|case| !cases.contains(case));
        assert_eq!(other, None, "unexpected: {self:?}");
    }
}

/// The seeds of a random test: so many, or as many as the variable `SEEDS` says. The test's output
/// ends with the seed that failed.
///
/// # Panics
/// When the variable is not a number.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let count = std::env::var("SEEDS").map_or(count, |seeds| seeds.parse().unwrap());
    (0..count).inspect(|seed| eprintln!("seed {seed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(counts: &[(&'static str, u64)]) -> Seen {
        let mut seen = Seen::default();
        counts.iter().for_each(|(case, count)| seen.add(case, *count));
        seen
    }

    #[test]
    fn cases_add_up() {
        let mut both = seen(&[("a", 2)]);
        both.merge(seen(&[("a", 1), ("b", 1)]));
        both.saw("b");
        both.expect_only(&["a", "b"], 2);
    }

    #[test]
    fn rare_and_unexpected_cases_panic() {
        let panics = |act: fn(&Seen)| std::panic::catch_unwind(|| act(&seen(&[("a", 2)]))).is_err();
        assert!(panics(|seen| seen.expect(&["a"], 3)));
        assert!(panics(|seen| seen.expect(&["a", "b"], 1)));
        assert!(panics(|seen| seen.expect_only(&[], 0)));
        assert!(!panics(|seen| seen.expect_only(&["a"], 2)));
    }
}

//! The summary of several rounds: the median, and the ends, which tell how far to trust it.

/// The middle one, or the larger of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The median with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Nothing of no values.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.collect();
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let greatest = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Spread { median: median(values)?, least, greatest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_median_and_ends() {
        let spread = Spread::of([3.0, 100.0, 7.0].into_iter());
        assert_eq!(spread, Some(Spread { median: 7.0, least: 3.0, greatest: 100.0 }));
        assert_eq!(Spread::of([].into_iter()), None);
    }
}

//! The one source of chance: a seed, and nothing else, decides each step of a test.

/// SplitMix64 (Steele, Lea, Flood 2014): every seed is good, a state is one word.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same numbers, on every machine, for ever.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A generator of its own: draws from it do not change the numbers of this one.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// A number in `0..bound`; zero when the bound is. The bias of the remainder is harmless here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw().checked_rem(bound).unwrap_or(0)
    }

    /// An index into something of that length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range has no number");
        low + self.below(high - low + 1)
    }

    /// True `times` in `of` draws.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// True once in `n` draws.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.chance(1, n)
    }

    /// True in half of the draws.
    pub fn coin(&mut self) -> bool {
        self.chance(1, 2)
    }

    /// One of the choices.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        let index = self.index(choices.len());
        choices.get(index).expect("invariant: something to pick from").clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_repeats_itself() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            [rng.draw(), rng.draw(), rng.draw()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // From the reference implementation: the first number of seed 0.
        assert_eq!(Rng::new(0).draw(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut rng = Rng::new(1);
        let draws: Vec<u64> = (0..1000).map(|_| rng.between(3, 5)).collect();
        assert!((3..=5).all(|n| draws.contains(&n)));
        assert!(draws.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(rng.below(0), 0);
        assert!(!rng.chance(0, 10));
        assert!(rng.chance(10, 10));
    }
}

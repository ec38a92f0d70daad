//! Numbers by chance, good enough to pick members, and no secret.

use core::cell::Cell;

use model::{MIXED_STEP, mixed};

/// A sequence of numbers that begins with a seed.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: u64,
    /// How many were drawn.
    drawn: Cell<u64>,
}

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, drawn: Cell::new(0) }
    }

    /// The next number.
    pub(crate) fn draw(&self) -> u64 {
        let drawn = self.drawn.get().wrapping_add(1);
        self.drawn.set(drawn);
        mixed(self.seed.wrapping_add(drawn.wrapping_mul(MIXED_STEP)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_draws_numbers_of_splitmix64() {
        let chance = Chance::new(1_234_567);
        let drawn = [(); 3].map(|()| chance.draw());
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}

//! Numbers by chance: splitmix64, which is good enough to pick members and no secret.

use core::cell::Cell;

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
        mixed(self.seed.wrapping_add(drawn.wrapping_mul(STEP)))
    }
}

/// The golden ratio as a fraction of 64 bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
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

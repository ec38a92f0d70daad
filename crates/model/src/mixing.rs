//! Bits mixed so that they look as if drawn: splitmix64, which is no secret. See
//! <https://prng.di.unimi.it/splitmix64.c>.

/// The step from one state of splitmix64 to the next: the golden ratio as a fraction of 64 bits.
pub const MIXED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of splitmix64 at a state. Near states give numbers that look apart, and no two give
/// the same one.
///
/// ```
/// let first = 1_234_567_u64.wrapping_add(model::MIXED_STEP);
/// assert_eq!(model::mixed(first), 6_457_827_717_110_365_317);
/// assert_eq!(model::mixed(first.wrapping_add(model::MIXED_STEP)), 3_203_168_211_198_807_973);
/// ```
#[must_use]
pub const fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

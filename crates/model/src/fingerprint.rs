//! Fingerprints: eight bytes that differ if texts do, but for one pair in 2^64. They are stored,
//! so the function never changes: XXH64, see <https://xxhash.com>.

/// The fingerprint of some bytes. Another seed gives another one: so several texts are chained.
///
/// ```
/// assert_eq!(model::fingerprint(b"", 0), 0xef46_db37_51d8_e999);
/// ```
#[must_use]
pub fn fingerprint(bytes: &[u8], seed: u64) -> u64 {
    let (lanes, rest) = bytes.as_chunks::<32>();
    let mut hash = if lanes.is_empty() { seed.wrapping_add(P5) } else { of_lanes(lanes, seed) };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = (hash ^ round(0, u64::from_le_bytes(*word))).rotate_left(27);
        hash = hash.wrapping_mul(P1).wrapping_add(P4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(P1);
        hash = hash.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

/// Four words at a time, each in a lane of its own.
fn of_lanes(blocks: &[[u8; 32]], seed: u64) -> u64 {
    let mut lanes = [
        seed.wrapping_add(P1).wrapping_add(P2),
        seed.wrapping_add(P2),
        seed,
        seed.wrapping_sub(P1),
    ];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let [a, b, c, d] = lanes;
    let mut hash = a.rotate_left(1).wrapping_add(b.rotate_left(7));
    hash = hash.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
    for lane in lanes {
        hash = (hash ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4);
    }
    hash
}

const fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation, also of the lengths at which its ways differ.
    #[test]
    fn fingerprints_are_xxh64() {
        let text = b"The quick brown fox jumps over the lazy dog, and over the next one as well.";
        for (length, seed, expected) in [
            (0, 0, 0xef46_db37_51d8_e999),
            (0, 1, 0xd5af_ba13_36a3_be4b),
            (1, 0, 0x5b4d_6af2_47a3_cf7b),
            (3, 0, 0x4108_f90b_5de1_4d15),
            (4, 0, 0xcdf1_3a49_d263_200f),
            (7, 9, 0x354e_3ea0_d304_11e2),
            (8, 0, 0xd07b_38a7_8a15_3b0b),
            (12, 0, 0xb2ed_3801_7844_f789),
            (31, 0, 0x3f8d_95ab_32c1_27d9),
            (32, 0, 0xe2bb_c913_6629_a4ee),
            (33, 1, 0x7055_a5e7_f802_7c41),
            (64, 0, 0x65fe_5a4a_a713_c50a),
            (75, 0, 0xc4f5_5c43_ec3e_8177),
            (75, u64::MAX, 0x12a6_67cd_32c6_9faf),
        ] {
            assert_eq!(fingerprint(&text[..length], seed), expected, "{length} {seed}");
        }
    }
}

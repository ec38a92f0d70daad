//! Journals with damaged files: see `hostile.rs`.

mod hostile;

use hostile::{CHANGE_BYTES, MENDED};
use testkit::Rng;

#[test]
fn fuzz_corpus_breaks_nothing() {
    testkit::replay("journal_files", hostile::files);
    testkit::replay("journal_segment", hostile::segment);
}

#[test]
fn undamaged_files_are_sound() {
    hostile::files(&[0]);
    hostile::files(&[MENDED]);
    hostile::segment(&[]);
}

#[test]
fn random_damage_breaks_nothing() {
    let mut rng = Rng::new(0x5eed);
    for round in 0..2_000_u64 {
        let mut input = vec![(round % 2) as u8];
        for _ in 0..=rng.below(3) {
            // Most bytes worth damaging are at the beginning of blocks.
            let at = rng.below(5) * 4096 + rng.below(if round % 3 == 0 { 4096 } else { 140 });
            let [low, high] = (at as u16).to_le_bytes();
            let change: [u8; CHANGE_BYTES] =
                [rng.below(256) as u8, rng.below(256) as u8, low, high, rng.below(256) as u8];
            input.extend(change);
        }
        hostile::files(&input);
        hostile::segment(&input[1..]);
    }
}

#[test]
fn extreme_header_fields_break_nothing() {
    const EIGHT_BYTES: u8 = 3;
    for at in (0..72_u16).chain(508..576).step_by(4) {
        let [low, high] = at.to_le_bytes();
        for file in 0..hostile::file_count() {
            for number in [0, 1, 0x7f, 0x80, 0xff] {
                hostile::files(&[MENDED, EIGHT_BYTES, file, low, high, number]);
            }
        }
    }
}

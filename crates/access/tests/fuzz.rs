//! The fuzzer's bodies over bytes that are the same each time.

use testkit::Rng;

use crate::fuzz_body::{USERS, jwt, scram, users};

const WHOLE: &[u8] = include_bytes!("../../../fuzz/corpus/access_scram/whole");
const FAULTS: &[u8] = include_bytes!("../../../fuzz/corpus/access_scram/faults");

#[test]
fn fuzz_corpus_breaks_nothing() {
    testkit::replay("access_users", users);
    testkit::replay("access_scram", scram);
    testkit::replay("access_jwt", |bytes| {
        jwt(bytes);
    });
}

#[test]
fn damaged_users_files_break_nothing() {
    let faults = include_bytes!("../../../fuzz/corpus/access_users/faults");
    let others = [USERS.as_bytes().to_vec(), faults.to_vec()];
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = rng.pick(&others);
        for _ in 0..=rng.below(4) {
            testkit::damage(&mut bytes, &others, b"[]{}=\"'.,\n#$ 0aTZ-", &mut rng);
        }
        users(&bytes);
    }
}

#[test]
fn damaged_scram_messages_break_nothing() {
    let others = [WHOLE.to_vec(), FAULTS.to_vec()];
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = rng.pick(&others);
        for _ in 0..=rng.below(4) {
            testkit::damage(&mut bytes, &others, b"n=,rsicpavy+/A3D2C\n\0", &mut rng);
        }
        scram(&bytes);
    }
}

#[test]
fn damaged_tokens_break_nothing() {
    let whole = include_bytes!("../../../fuzz/corpus/access_jwt/signed");
    let keys = include_bytes!("../../../fuzz/corpus/access_jwt/keys");
    assert!(jwt(whole) && !jwt(keys));
    let others = [whole.to_vec(), keys.to_vec()];
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = rng.pick(&others);
        for _ in 0..=rng.below(4) {
            testkit::damage(&mut bytes, &others, b"{}[]\":,.\\ e0-ftnu\n", &mut rng);
        }
        jwt(&bytes);
    }
}

//! Hostile headers of proxies: the corpus of the fuzzer, and changes of it by chance.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod fuzz_body;

use testkit::Rng;

#[test]
fn hostile_headers_break_nothing() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/proxy_header");
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(corpus).unwrap() {
        seeds.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    assert!(!seeds.is_empty());
    let mut rng = Rng::new(94);
    for _ in 0..200_000 {
        let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].clone();
        bytes.extend((0..rng.below(40)).map(|_| rng.below(256) as u8));
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        fuzz_body::proxy_header(&bytes);
    }
    seeds.iter().for_each(|seed| fuzz_body::proxy_header(seed));
}

//! Frames of peers in the scripts, for the fuzzer to begin with, and damaged in ways that are the
//! same each time.
//!
//! `SEEDS=fuzz/corpus/amqp_connection cargo test -p dunlin-amqp seeds` writes them to that folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use testkit::Rng;

use crate::hostile::{self, Manner};
use crate::peer;

const ROUNDS: usize = 3_000;

/// Octets that mean something: constructors, sizes, performatives.
const PIECES: [u8; 24] = [
    0x00, 0x40, 0x41, 0x43, 0x45, 0x52, 0x53, 0x70, 0x80, 0xa0, 0xa1, 0xa3, 0xb0, 0xc0, 0xc1, 0xd0,
    0x12, 0x13, 0x14, 0x15, 0x16, 0x24, 0x34, 0xff,
];

#[test]
fn seeds_and_damaged_seeds_break_nothing() {
    let seeds = seeds();
    assert!(seeds.len() > 50, "{} seeds", seeds.len());
    testkit::write_seeds(&seeds);
    seeds.iter().for_each(|seed| hostile::peer(seed));
    let mut numbers = Rng::new(0x5eed);
    for _ in 0..ROUNDS {
        let mut seed = seeds[numbers.index(seeds.len())].clone();
        for _ in 0..=numbers.index(4) {
            testkit::damage(&mut seed, &seeds, &PIECES, &mut numbers);
        }
        hostile::peer(&seed);
    }
}

/// The seeds of each script and peer: the stream as it is, and the bodies of its frames after the
/// greeting, in pieces.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for folder in ["connection", "engine"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
        let mut files: Vec<_> = fs::read_dir(root).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        for file in files {
            for lines in peers(&fs::read_to_string(file).unwrap(), folder == "engine").values() {
                seeds.push([vec![Manner::LAGS], lines.concat()].concat());
                seeds.push([vec![Manner::LOGIN], lines.concat()].concat());
                let bodies = framed(lines);
                seeds.extend(bodies.chunks(8).map(|bodies| {
                    [vec![Manner::GREETED | Manner::FRAMED], bodies.concat()].concat()
                }));
            }
        }
    }
    seeds
}

/// The lines of each peer, as bytes.
fn peers(script: &str, are_several: bool) -> BTreeMap<&str, Vec<Vec<u8>>> {
    let mut peers: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    let mut is_answer = false;
    for line in script.lines() {
        is_answer = line == "----" || is_answer && !line.is_empty();
        if is_answer || line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, line) =
            if are_several { line.split_once(' ').unwrap_or((line, "")) } else { ("", line) };
        let is_peer = !are_several || name.len() == 1;
        if let Some(bytes) = Some(line).filter(|_| is_peer).and_then(peer::bytes) {
            peers.entry(name).or_default().push(bytes);
        }
    }
    peers
}

/// The bodies of those that are frames of AMQP, each behind its length and channel.
fn framed(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let bodies = lines.iter().filter_map(|bytes| match &bytes[..] {
        [0, 0, _, _, 2, 0, _, channel, body @ ..] => {
            let length = u8::try_from(body.len()).ok()?;
            Some([&[length, *channel][..], body].concat())
        }
        _ => None,
    });
    bodies.collect()
}

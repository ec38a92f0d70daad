//! Replays what the fuzzer found worth keeping of one target: the tests that share the bodies of
//! targets do so. How to add to it: docs/inside/testing.md.

use std::path::Path;
use std::{env, fs};

use crate::Rng;

/// Gives each file of `fuzz/corpus/TARGET` to `body`. A crate's tests run in its own folder.
///
/// # Panics
/// When there is none.
pub fn replay(target: &str, body: impl Fn(&[u8])) {
    let folder = Path::new("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds something", folder.display());
    for file in files {
        // Shown by the test that fails.
        println!("{}", file.display());
        body(&fs::read(&file).unwrap());
    }
}

/// Writes inputs for the fuzzer to begin with into the folder that the variable `SEEDS` names.
///
/// # Panics
/// When that cannot be written.
pub fn write_seeds(seeds: &[Vec<u8>]) {
    let Some(folder) = env::var_os("SEEDS") else { return };
    let folder = Path::new("../..").join(folder);
    fs::create_dir_all(&folder).unwrap();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed).unwrap();
    }
}

/// Damages an input once: cuts it, flips a bit, doubles a part, adds or replaces a byte by any
/// or by one of `pieces`, or goes on with the end of another input.
pub fn damage(bytes: &mut Vec<u8>, others: &[Vec<u8>], pieces: &[u8], rng: &mut Rng) {
    let at = rng.index(bytes.len() + 1);
    let piece = if rng.coin() { rng.pick(pieces) } else { rng.draw() as u8 };
    match rng.below(7) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, piece),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 => {
            let other = &others[rng.index(others.len())];
            bytes.splice(at.., other[rng.index(other.len())..].iter().copied());
        }
        4 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        5 => {
            let end = at + rng.index(bytes.len() - at);
            bytes.extend_from_within(at..end);
        }
        _ if at < bytes.len() => bytes[at] = piece,
        _ => bytes.push(piece),
    }
}

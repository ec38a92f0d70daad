//! Replays what the fuzzer found worth keeping of one target: the tests that share the bodies of
//! targets do so. How to add to it: docs/inside/testing.md.

use std::fs;
use std::path::Path;

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

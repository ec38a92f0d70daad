//! Behaviour as scripts: each block of `testdata/*.txt` is some commands, a line `----` and their
//! results. `UPDATE=1 cargo test -p dunlin-engine --test scripts` writes the latter anew.
//!
//! The words are in `support/script.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a broken test may panic")]

mod support;

use std::path::PathBuf;

use support::script::Script;

#[test]
fn scripts_come_out_as_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "there are scripts in {}", folder.display());
    let mut differing = Vec::new();
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let actual = run(&expected);
        if actual == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, actual).unwrap();
        } else {
            differing.push(first_difference(&path.display().to_string(), &expected, &actual));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The script with the real results of its commands.
fn run(text: &str) -> String {
    let mut script = Script::default();
    let mut result = String::new();
    for block in text.trim_end().split("\n\n") {
        let (commands, expects) = match block.split_once("\n----") {
            Some((commands, _)) => (commands, true),
            None => (block, false),
        };
        if !result.is_empty() {
            result.push('\n');
        }
        result.push_str(commands);
        result.push('\n');
        let mut outcome = String::new();
        for line in commands.lines().filter(|line| !line.starts_with('#')) {
            outcome.push_str(&script.run(line));
        }
        if expects || !outcome.is_empty() {
            result.push_str("----\n");
            result.push_str(&outcome);
        }
    }
    result
}

fn first_difference(path: &str, expected: &str, actual: &str) -> String {
    let lines = expected.lines().chain([""]).zip(actual.lines().chain([""]));
    let differing = lines.enumerate().find(|(_, (expected, actual))| expected != actual);
    let (number, (expected, actual)) = differing.unwrap_or_default();
    format!("{path}:{}: expected\n  {expected}\nbut it is\n  {actual}", number + 1)
}

//! Scripts of tests: blocks of commands, a line `----`, their results, and an empty line.

use std::fs;
use std::path::{Path, PathBuf};

/// The scripts of a folder, by name.
///
/// # Panics
/// When there are fewer than `least`.
#[must_use]
pub fn read_all(folder: &Path, least: usize) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= least, "there are scripts in {}", folder.display());
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// Holds each script of a folder against the text that `run` makes of it; `UPDATE=1` writes that.
///
/// # Panics
/// When one differs, or there are fewer than `least`.
pub fn check_all(folder: &Path, least: usize, run: impl Fn(&str) -> String) {
    let mut differing = Vec::new();
    for (path, script) in read_all(folder, least) {
        let actual = run(&script);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, actual).unwrap();
        } else if actual != script {
            differing.push(first_difference(&path, &script, &actual));
        }
    }
    assert!(differing.is_empty(), "UPDATE=1 writes what it does now\n{}", differing.join("\n"));
}

/// Repeats a script with the results of its commands: `run` gives those of the lines of a block
/// that are no comments, each with its line end.
pub fn repeat(script: &str, mut run: impl FnMut(&[&str]) -> String) -> String {
    let mut repeated = String::new();
    for block in script.trim_end().split("\n\n") {
        let (commands, expects) = match block.split_once("\n----") {
            Some((commands, _)) => (commands, true),
            None => (block, false),
        };
        if !repeated.is_empty() {
            repeated.push('\n');
        }
        repeated.push_str(commands.trim_end());
        repeated.push('\n');
        let lines: Vec<&str> = commands.lines().filter(|line| !line.starts_with('#')).collect();
        let results = run(&lines);
        if expects || !results.is_empty() {
            repeated.push_str("----\n");
            repeated.push_str(&results);
        }
    }
    repeated
}

fn first_difference(path: &Path, expected: &str, actual: &str) -> String {
    let lines = expected.lines().chain([""]).zip(actual.lines().chain([""]));
    let differing = lines.enumerate().find(|(_, (expected, actual))| expected != actual);
    let (number, (expected, actual)) = differing.unwrap_or_default();
    let path = path.display();
    format!("{path}:{}: expected\n  {expected}\nbut it is\n  {actual}", number + 1)
}

//! Words that may stand only in some crates.

use super::Finding;
use crate::repository::{Repository, TextFile};

/// Spelled in two parts, or this file would find itself.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const SYNCS: [&str; 6] = ["fdatasync", "fsync", "sync_data", "sync_all", "DSYNC", "syncfs"];

/// The engine, the journal and the broker know no protocol.
pub(super) fn protocol_words(repository: &Repository) -> Vec<Finding> {
    let folders = ["crates/records/", "crates/engine/", "crates/journal/", "crates/broker/"];
    let files = folders.iter().flat_map(|folder| repository.under(folder, ".rs"));
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.lines() {
            let line = line.to_lowercase();
            for word in ["tube", "beanstalk"].iter().filter(|word| line.contains(**word)) {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("{word} is not a word here"),
                ));
            }
        }
    }
    findings
}

/// The journal knows no queues: its frames are opaque to it.
pub(super) fn queue_words(repository: &Repository) -> Vec<Finding> {
    let words = ["queue", "lease", "buried", "consumer", "producer", "subscription"];
    let mut findings = Vec::new();
    for file in repository.under("crates/journal/src/", ".rs") {
        for (number, line) in file.lines() {
            let parts = words_of(line).flat_map(parts_of).map(|part| part.to_lowercase());
            for part in parts.filter(|part| words.contains(&part.trim_end_matches('s'))) {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("{part} is not a word here"),
                ));
            }
        }
    }
    findings
}

/// `unsafe` stands in the disk crate and where the allocator's options are set alone.
pub(super) fn unsafe_code(repository: &Repository) -> Vec<Finding> {
    let allowed = ["crates/disk/", "crates/allocator/"];
    let elsewhere =
        repository.under("", ".rs").filter(|f| !allowed.iter().any(|a| f.path.starts_with(a)));
    let is_unsafe = |code: &str| words_of(code).any(|word| word == "unsafe");
    in_code(elsewhere, is_unsafe, "unsafe code belongs into crates/disk or allocator")
}

/// The calls that sync stand in the disk crate; one benchmark measures the raw device.
pub(super) fn syncs(repository: &Repository) -> Vec<Finding> {
    let allowed = ["crates/disk/", "crates/bench/src/raw_disk"];
    let elsewhere =
        repository.under("", ".rs").filter(|f| !allowed.iter().any(|a| f.path.starts_with(a)));
    let syncs = |code: &str| words_of(code).any(|word| SYNCS.iter().any(|s| word.ends_with(s)));
    in_code(elsewhere, syncs, "only crates/disk syncs")
}

/// A note for later names the issue that it waits for: `(#12)`.
pub(super) fn leftovers(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| !file.path.ends_with(".json")) {
        for (number, line) in file.lines().filter(|(_, line)| is_leftover(line)) {
            if !line.contains("(#") {
                findings.push(Finding::new(&file.path, number, "name the issue, as in (#12)"));
            }
        }
    }
    findings
}

/// True if the line is a note for later.
pub(crate) fn is_leftover(line: &str) -> bool {
    words_of(line).any(|word| LEFTOVERS.contains(&word))
}

fn in_code<'a>(
    files: impl Iterator<Item = &'a TextFile>,
    is_wrong: impl Fn(&str) -> bool,
    what: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.lines() {
            if is_wrong(&code_of(line)) {
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// The line without string literals and comments.
pub(super) fn code_of(line: &str) -> String {
    let outside: String = line.split('"').step_by(2).collect();
    outside.split("//").next().unwrap_or_default().to_owned()
}

pub(super) fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The words of an identifier: `QueueId` and `queue_id` are queue and id.
fn parts_of(word: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let pairs = word.char_indices().zip(word.chars().skip(1));
    for ((index, this), next) in pairs {
        if this == '_' || (this.is_lowercase() && next.is_uppercase()) {
            starts.push(index + this.len_utf8());
        }
    }
    starts.push(word.len());
    let ranges = starts.iter().zip(starts.iter().skip(1));
    ranges
        .filter_map(|(&from, &to)| word.get(from..to))
        .map(|part| part.trim_matches('_'))
        .collect()
}

//! The counts that docs/inside/testing.md tells: about as many as there are.

use std::collections::BTreeSet;

use super::Finding;
use crate::repository::Repository;

const PAGE: &str = "docs/inside/testing.md";

/// A kind of tests: the name that its row begins with, and how it is counted.
type Kind = (&'static str, fn(&Repository) -> usize);

const KINDS: [Kind; 8] = [
    ("Rust tests", |repository| tests(repository, "crates/") + tests(repository, "xtask/")),
    ("engine scripts", |repository| repository.under("crates/engine/testdata/", ".txt").count()),
    ("protocol scripts", |repository| {
        let folders = ["amqp", "beanstalk", "resp"].map(|name| format!("crates/{name}/testdata/"));
        folders.iter().map(|folder| repository.under(folder, ".txt").count()).sum()
    }),
    ("simulator tests", |repository| tests(repository, "crates/sim/tests/")),
    ("fuzz targets", |repository| repository.under("fuzz/fuzz_targets/", ".rs").count()),
    ("corpus inputs", |repository| entries(repository, "fuzz/corpus", 2)),
    ("cases", |repository| {
        let files = repository.under("interop/cases/", ".py");
        files
            .filter(|file| file.path.trim_start_matches("interop/cases/").starts_with(DIGITS))
            .count()
    }),
    ("golden directories", |repository| {
        let texts = repository.under("crates/broker/tests/golden/", ".txt");
        texts.map(|file| file.path.as_str()).collect::<BTreeSet<_>>().len()
    }),
];

const DIGITS: [char; 10] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

/// A row may tell fewer than there are, by a fifth at most, so that a new test needs no change.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let Some(page) = repository.files.iter().find(|file| file.path == PAGE) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (kind, count) in KINDS {
        let start = format!("| {kind} |");
        let Some((number, line)) = page.lines().find(|(_, line)| line.starts_with(&start)) else {
            findings.push(Finding::new(PAGE, 0, format!("no row tells the count of {kind}")));
            continue;
        };
        let cell = line.split('|').nth(3).unwrap_or_default().replace(',', "");
        let (told, count) = (cell.trim().parse().unwrap_or(0), count(repository));
        if told > count || told * 5 < count * 4 {
            findings.push(Finding::new(PAGE, number, format!("there are {count} {kind}")));
        }
    }
    findings
}

fn tests(repository: &Repository, folder: &str) -> usize {
    let lines = repository.under(folder, ".rs").flat_map(|file| file.text.lines());
    lines.filter(|line| line.trim() == "#[test]").count()
}

/// Files so many folders below this one, of any content.
fn entries(repository: &Repository, folder: &str, depth: usize) -> usize {
    let mut folders = vec![repository.root.join(folder)];
    for _ in 1..depth {
        let below = folders.iter().filter_map(|path| path.read_dir().ok()).flatten();
        folders = below.flatten().map(|entry| entry.path()).collect();
    }
    folders.iter().filter_map(|path| path.read_dir().ok()).map(Iterator::count).sum()
}

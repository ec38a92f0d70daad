//! The rules of the repository that a compiler does not hold. `cargo test -p xtask` runs them too.

mod counts;
mod edges;
mod layout;
mod links;
mod modules;
mod pages;
mod parts;
mod retired;
mod type_names;
pub(crate) mod words;

use crate::repository::Repository;
use crate::tally::Tally;

/// One broken rule: its place, and the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The path from the project's root.
    pub(crate) path: String,
    /// The line, from 1; 0 for the whole file.
    pub(crate) line: usize,
    /// The fault, and its correction.
    pub(crate) what: String,
}

/// A rule: its name and its check.
type Rule = (&'static str, fn(&Repository) -> Vec<Finding>);

const RULES: [Rule; 16] = [
    ("crates import only whom they may", edges::check),
    ("engine, journal and broker use no protocol's words", words::protocol_words),
    ("the journal uses no words of queues", words::queue_words),
    ("only the disk and the allocator are unsafe", words::unsafe_code),
    ("only the disk crate syncs", words::syncs),
    ("leftovers name an issue", words::leftovers),
    ("parts of the engine do not know the engine", parts::check),
    ("retired names stay away", retired::check),
    ("a public type's name occurs in one product crate", type_names::check),
    ("lines are at most 100 columns", layout::columns),
    ("lines of pages are at most 120 columns", pages::columns),
    ("lines end without spaces, files with a line end", layout::line_ends),
    ("files and functions stay short", layout::lengths),
    ("files of tests are compiled", modules::check),
    ("pages tell the counts of tests", counts::check),
    ("links lead somewhere", links::check),
];

/// Checks every rule, prints the findings, and counts the rules.
pub(crate) fn run(repository: &Repository) -> Tally {
    let mut tally = Tally::default();
    for (name, check) in RULES {
        let findings = check(repository);
        tally += Tally::one(findings.is_empty());
        if !findings.is_empty() {
            println!("tidy: {name}:");
        }
        for Finding { path, line, what } in findings {
            println!("  {path}:{line}: {what}");
        }
    }
    tally
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

#[cfg(test)]
#[path = "tidy_test.rs"]
mod tests;

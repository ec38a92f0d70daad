//! One word, one meaning: a public type's name occurs in one crate of the product.

use std::collections::BTreeMap;

use super::Finding;
use super::words::words_of;
use crate::repository::{Repository, TextFile};

/// The crates that the binary consists of, and the binary.
const PRODUCT: [&str; 16] = [
    "model",
    "access",
    "records",
    "engine",
    "selector",
    "journal",
    "disk",
    "input",
    "beanstalk",
    "resp",
    "amqp",
    "http",
    "broker",
    "server",
    "allocator",
    "dunlin",
];

/// Names that several crates may use, and why.
pub(super) const EXCEPTIONS: [(&str, &str); 4] = [
    ("End", "AMQP's specification calls a performative so; a list has a head and a tail end"),
    ("ListenerState", "the same of each protocol with ordered replies: shared by connections"),
    ("Options", "the same of each protocol: an operator's choices for its connections"),
    ("Session", "the same of each protocol with ordered replies: one client's state"),
];

/// Each public type with a name that a type of another product crate has.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, places) in doubles(repository) {
        if EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            continue;
        }
        for (path, line) in &places {
            let others = places.iter().map(|(other, _)| crate_of(other));
            let others = others.filter(|other| *other != crate_of(path)).collect::<Vec<_>>();
            let what = format!("{name} is a public type of {} too", others.join(", "));
            findings.push(Finding::new(path, *line, what));
        }
    }
    findings
}

/// The names of public types that two product crates have, with the files and lines.
pub(super) fn doubles(repository: &Repository) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut types: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in repository.under("crates/", ".rs").filter(|file| is_product(file)) {
        for (number, line) in file.lines() {
            if let Some(name) = public_type(line) {
                types.entry(name).or_default().push((&file.path, number));
            }
        }
    }
    types.retain(|_, places| {
        let first = places.first().map(|(path, _)| crate_of(path));
        places.iter().any(|(path, _)| Some(crate_of(path)) != first)
    });
    types
}

/// True if the file is part of the product, and not only of its tests.
fn is_product(file: &TextFile) -> bool {
    let in_sources = file.path.split('/').nth(2) == Some("src");
    in_sources && PRODUCT.contains(&crate_of(&file.path)) && !file.path.ends_with("_test.rs")
}

fn crate_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The name of the type that the line declares, if it is public beyond the crate.
fn public_type(line: &str) -> Option<&str> {
    let declaration = line.strip_prefix("pub ")?;
    let mut words = words_of(declaration);
    let is_type = matches!(words.next()?, "struct" | "enum" | "trait" | "type");
    is_type.then(|| words.next()).flatten()
}

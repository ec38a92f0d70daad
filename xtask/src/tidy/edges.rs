//! Imports that each crate may have: a table, held against the manifests of the crates.

use super::Finding;
use crate::repository::{Repository, TextFile};

/// Each crate and those of ours that it may depend on. Tests may use more: `dev-dependencies` are
/// not looked at. A new edge is a decision: change this table together with ARCHITECTURE.md.
const EDGES: [(&str, &[&str]); 21] = [
    ("model", &[]),
    ("access", &["model"]),
    ("input", &["model"]),
    ("selector", &["model"]),
    ("records", &["model"]),
    ("engine", &["model", "records", "selector"]),
    ("journal", &["model"]),
    ("disk", &["journal", "model"]),
    ("beanstalk", &["input", "model"]),
    ("amqp", &["input", "model"]),
    ("resp", &["input", "model"]),
    ("script", &["model", "resp"]),
    ("http", &["input", "model"]),
    ("broker", &["engine", "journal", "model"]),
    (
        "server",
        &[
            "access",
            "model",
            "input",
            "engine",
            "journal",
            "disk",
            "broker",
            "beanstalk",
            "amqp",
            "resp",
            "script",
            "http",
        ],
    ),
    ("client", &["amqp"]),
    ("bench", &["amqp", "client"]),
    ("allocator", &[]),
    (
        "dunlin",
        &["access", "allocator", "server", "bench", "model", "engine", "journal", "disk", "broker"],
    ),
    (
        "sim",
        &["model", "engine", "journal", "broker", "beanstalk", "amqp", "resp", "http", "testkit"],
    ),
    ("testkit", &["amqp", "client"]),
];

/// Every dependency of ours on ours that the table does not allow.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let manifests = repository.under("crates/", "/Cargo.toml");
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(manifest: &TextFile) -> Vec<Finding> {
    let path = &manifest.path;
    let name = path.split('/').nth(1).unwrap_or_default();
    let Some((_, allowed)) = EDGES.iter().find(|(from, _)| *from == name) else {
        return vec![Finding::new(path, 0, format!("{name} is not in the table of edges"))];
    };
    let mut findings = Vec::new();
    for (line, to) in dependencies(manifest) {
        if !allowed.contains(&to) {
            findings.push(Finding::new(path, line, format!("{name} may not import {to}")));
        }
    }
    findings
}

/// The lines and names of the dependencies on crates of ours, but those of tests.
fn dependencies(manifest: &TextFile) -> Vec<(usize, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (number, line) in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let counts = section.contains("dependencies") && !section.contains("dev-dependencies");
        if counts && let Some(rest) = line.strip_prefix("dunlin-") {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(rest.len());
            found.push((number, rest.get(..end).unwrap_or_default()));
        }
    }
    found
}
